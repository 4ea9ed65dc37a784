"""The parent's promises about a child, kept with a real process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from app.errors import BugError, KnownError
from app.model.child.process import ChildProcess
from app.model.child.protocol import Json

MODULE = "tests.child.scripted"


@contextlib.asynccontextmanager
async def started(**knobs) -> AsyncIterator[ChildProcess]:
    child = ChildProcess(MODULE, name="helper", **knobs)
    await child.start()
    try:
        yield child
    finally:
        await child.close()


async def everything(child: ChildProcess, method: str, params: Json) -> list[Json]:
    return [message async for message in child.stream(method, params)]


def test_events_arrive_in_order_and_the_result_last():
    async def run():
        async with started() as child:
            return await everything(child, "echo", {"words": ["a", "ü", "😀"]})

    assert asyncio.run(run()) == [{"word": "a"}, {"word": "ü"}, {"word": "😀"}, {"done": {"words": ["a", "ü", "😀"]}}]


def test_two_who_start_it_at_once_get_the_same_child():
    async def run():
        child = ChildProcess(MODULE, name="helper")

        async def one(wait):
            await asyncio.sleep(wait)
            await child.start()
            return child.pid, await child.call("echo", {"wait": wait})

        try:
            return await asyncio.gather(*(one(wait) for wait in (0.0, 0.05, 0.1)))
        finally:
            await child.close()

    answers = asyncio.run(run())
    assert len({pid for pid, _ in answers}) == 1
    assert [answer["wait"] for _, answer in answers] == [0.0, 0.05, 0.1]


def test_stray_output_cannot_break_a_message():
    async def run():
        async with started() as child:
            return [await child.call("echo", {"n": n}) for n in range(3)]

    assert asyncio.run(run()) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_long_messages_pass_both_ways():
    text = "x" * 5_000_000

    async def run():
        async with started() as child:
            return await child.call("echo", {"text": text})

    assert asyncio.run(run()) == {"text": text}


def test_lone_surrogates_pass_unchanged():
    async def run():
        async with started() as child:
            return await child.call("echo", {"text": "\ud800"})

    assert asyncio.run(run()) == {"text": "\ud800"}


def test_cancel_ends_the_running_request_and_the_next_one_works():
    async def run():
        async with started() as child:
            messages = []
            async for message in child.stream("count", {"to": 10_000}):
                messages.append(message)
                if message == {"number": 3}:
                    asked = time.monotonic()
                    await child.cancel()
            return messages[-1], time.monotonic() - asked, await child.call("echo", {})

    last, seconds, after = asyncio.run(run())
    assert last == {"cancelled": True}
    assert seconds < 0.5
    assert after == {}


def test_closing_a_stream_early_cancels_its_request():
    async def run():
        async with started() as child:
            async with contextlib.aclosing(child.stream("count", {"to": 10_000})) as messages:
                await anext(messages)
            before = time.monotonic()
            await child.call("echo", {})
            return time.monotonic() - before

    assert asyncio.run(run()) < 0.5


def test_requests_run_one_at_a_time_in_order_of_arrival():
    async def run():
        async with started() as child:
            order: list[str] = []

            async def one(name: str) -> None:
                order.extend([name async for message in child.stream("count", {"to": 3}) if "number" in message])

            await asyncio.gather(one("first"), one("second"), one("third"))
            return order

    assert asyncio.run(run()) == ["first"] * 3 + ["second"] * 3 + ["third"] * 3


def test_a_request_that_is_cancelled_while_it_waits_never_reaches_the_child():
    async def run():
        async with started() as child:
            running = asyncio.create_task(everything(child, "count", {"to": 30}))
            await asyncio.sleep(0.05)
            waiting = asyncio.create_task(everything(child, "die", {"exit": 1}))
            await asyncio.sleep(0.02)
            waiting.cancel()
            first = await running
            return first[-1], child.alive

    assert asyncio.run(run()) == ({"done": {"last": 30}}, True)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"signal": "SIGKILL"}, "it was killed from outside"),
        ({"signal": "SIGSEGV"}, "it crashed (segmentation fault)"),
        ({"signal": "SIGABRT"}, "it gave up (aborted)"),
        ({"signal": "SIGBUS"}, "a file it was reading changed or vanished (bus error)"),
        ({"signal": "SIGILL"}, "it was built for another processor (illegal instruction)"),
        ({"exit": 3}, "it ended with code 3"),
        ({"exit": 0}, "it ended by itself"),
    ],
)
def test_a_child_that_dies_fails_its_request_with_the_real_reason(how, words):
    async def run():
        async with started() as child:
            messages = await everything(child, "die", how)
            again = await everything(child, "echo", {})
            alive = child.alive
            await child.start()
            return messages, again, alive, await child.call("echo", {"back": 1})

    messages, again, alive, back = asyncio.run(run())
    assert messages[0] == {"going": True}
    assert len(messages) == 2
    assert messages[1]["failed"]["kind"] == "KnownError"
    assert messages[1]["failed"]["subject"] == words
    assert again[-1]["failed"]["subject"] == words
    assert not alive
    assert back == {"back": 1}


@pytest.mark.parametrize("how", ["python", "native"])
def test_running_out_of_memory_is_named(how):
    async def run():
        async with started() as child:
            with pytest.raises(KnownError) as caught:
                await child.call("gobble", {"how": how})
            return caught.value

    error = asyncio.run(run())
    assert "memory" in error.sentence()


def test_silence_is_a_hang_and_the_child_is_ended():
    async def run():
        async with started(silence_timeout_s=0.5) as child:
            pid = child.pid
            messages = await everything(child, "hang", {})
            return pid, messages

    pid, messages = asyncio.run(run())
    assert messages[-1]["failed"]["subject"] == "it stopped responding"
    assert not psutil.pid_exists(pid)


def test_steady_events_are_no_silence():
    async def run():
        async with started(silence_timeout_s=0.5) as child:
            return (await everything(child, "count", {"to": 8, "pause_s": 0.1}))[-1]

    assert asyncio.run(run()) == {"done": {"last": 8}}


def test_a_silent_handler_that_looks_at_its_cancel_is_not_hung():
    async def run():
        async with started(silence_timeout_s=1.5) as child:
            return await everything(child, "ponder", {"seconds": 3.5})

    assert asyncio.run(run()) == [{"done": {}}]


def test_a_stopped_child_counts_as_hung():
    async def run():
        async with started(silence_timeout_s=0.5) as child:
            psutil.Process(child.pid).suspend()
            return (await everything(child, "echo", {}))[-1]

    assert asyncio.run(run())["failed"]["subject"] == "it stopped responding"


def test_errors_of_a_handler_keep_their_kind_and_never_show_text():
    async def run():
        async with started() as child:
            return [(await everything(child, "fail", {"how": how}))[-1] for how in ("known", "value", "memory")]

    known, value, memory = [message["failed"] for message in asyncio.run(run())]
    assert known["kind"] == "KnownError"
    assert known["hint"] == "Choose another."
    assert value["kind"] == "BugError"
    assert value["subject"] == "ValueError"
    assert "secret" not in str(value)
    assert memory["kind"] == "KnownError"
    assert "memory" in memory["what"]


def test_no_message_text_reaches_the_log(caplog):
    async def run():
        async with started() as child:
            await everything(child, "fail", {"how": "value"})
            await everything(child, "die", {"signal": "SIGSEGV"})

    asyncio.run(run())
    assert "ended: it crashed" in caplog.text
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_an_unknown_method_is_our_bug():
    async def run():
        async with started() as child:
            with pytest.raises(BugError):
                await child.call("nothing", {})
            return await child.call("echo", {})

    assert asyncio.run(run()) == {}


def test_a_child_that_breaks_the_protocol_is_ended_and_named():
    async def run():
        async with started() as child:
            return (await everything(child, "break_protocol", {}))[-1]

    assert asyncio.run(run())["failed"]["kind"] == "BugError"


def test_the_environment_is_clean_and_offline(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")

    async def run():
        async with started(env={"EXTRA": "1"}) as child:
            return await child.call("about", {})

    about = asyncio.run(run())
    assert "SOME_API_KEY" not in about["environment"]
    assert "PYTHONSTARTUP" not in about["environment"]
    assert about["environment"]["HF_HUB_OFFLINE"] == "1"
    assert about["environment"]["EXTRA"] == "1"
    assert "" not in about["path"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has priority classes instead")
def test_the_child_takes_its_nice_value():
    async def run():
        async with started(nice=11) as child:
            return await child.call("about", {})

    assert asyncio.run(run())["nice"] == 11


def test_a_module_that_cannot_start_says_so():
    async def run():
        child = ChildProcess("tests.child.no_such_module", name="helper")
        with pytest.raises(KnownError) as caught:
            await child.start()
        return caught.value, child.alive

    error, alive = asyncio.run(run())
    assert error.subject == "it ended with code 1"
    assert not alive


def test_a_start_that_takes_too_long_is_given_up():
    async def run():
        child = ChildProcess(MODULE, name="helper", start_timeout_s=0.001)
        with pytest.raises(KnownError) as caught:
            await child.start()
        return caught.value

    assert "no answer" in asyncio.run(run()).subject


def test_close_ends_the_child_and_may_be_called_twice():
    async def run():
        child = ChildProcess(MODULE, name="helper")
        await child.start()
        pid = child.pid
        await child.close()
        await child.close()
        return pid, child.alive

    pid, alive = asyncio.run(run())
    assert not psutil.pid_exists(pid)
    assert not alive


def test_closing_under_a_running_request_fails_it():
    async def run():
        child = ChildProcess(MODULE, name="helper")
        await child.start()
        running = asyncio.create_task(everything(child, "hang", {}))
        await asyncio.sleep(0.1)
        await child.kill()
        return (await running)[-1]

    assert asyncio.run(run())["failed"]["subject"] == "it was ended"


@pytest.mark.skipif(sys.platform == "win32", reason="uses signals")
@pytest.mark.parametrize("method", ["echo", "hang"])
def test_a_child_whose_parent_was_killed_ends_by_itself(method):
    script = (
        "import asyncio, sys\n"
        "from app.model.child.process import ChildProcess\n"
        "async def run():\n"
        "    child = ChildProcess('tests.child.scripted', name='helper')\n"
        "    await child.start()\n"
        "    print(child.pid, flush=True)\n"
        f"    async for _ in child.stream('{method}', {{}}): pass\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(run())\n"
    )

    async def run():
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=Path.cwd()
        )
        assert parent.stdout is not None
        pid = int(await parent.stdout.readline())
        await asyncio.sleep(0.2)
        os.kill(parent.pid, signal.SIGKILL)
        await parent.wait()
        for _ in range(60):
            if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
            await asyncio.sleep(0.1)
        return False

    assert asyncio.run(run())


def test_params_that_json_cannot_hold_fail_the_request_only():
    async def run():
        async with started() as child:
            bad = await everything(child, "echo", {"x": float("nan")})
            return bad[-1], await child.call("echo", {})

    bad, after = asyncio.run(run())
    assert bad["failed"]["kind"] == "BugError"
    assert after == {}
