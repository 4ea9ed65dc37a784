"""The restart policy, on a clock that only moves when told to."""

from __future__ import annotations

import pytest

from app.clock import FakeClock
from app.errors import KnownError
from app.model.child.restarts import Restarts

DEATH = KnownError("run the engine", "it crashed (segmentation fault)")


def test_one_crash_may_be_followed_by_a_start():
    restarts = Restarts("engine", clock=FakeClock())
    restarts.crashed(DEATH)
    restarts.check()


def test_a_second_crash_within_a_minute_keeps_it_down_and_names_safe_mode():
    clock = FakeClock()
    restarts = Restarts("engine", clock=clock)
    restarts.crashed(DEATH)
    clock.seconds += 59
    restarts.crashed(DEATH)
    with pytest.raises(KnownError) as caught:
        restarts.check()
    assert "safe mode" in caught.value.hint
    assert caught.value.subject == DEATH.subject


def test_a_second_crash_after_a_minute_counts_as_the_first():
    clock = FakeClock()
    restarts = Restarts("engine", clock=clock)
    restarts.crashed(DEATH)
    clock.seconds += 61
    restarts.crashed(DEATH)
    restarts.check()


def test_a_base_that_crashed_while_loading_is_not_loaded_again_unasked():
    restarts = Restarts("engine", clock=FakeClock())
    restarts.crashed(DEATH, loading=True)
    with pytest.raises(KnownError) as caught:
        restarts.check()
    assert "not loaded again unasked" in caught.value.hint


def test_asking_opens_the_way_again():
    restarts = Restarts("engine", clock=FakeClock())
    restarts.crashed(DEATH, loading=True)
    restarts.asked()
    restarts.check()
    assert restarts.down is None
