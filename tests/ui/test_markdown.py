from __future__ import annotations

import random
import time

import pytest

from app.ui.markdown.blocks import RUN_CHARS, Block, Segmenter, close_marks, split
from app.ui.markdown.code import DARK_CODE, LIGHT_CODE, colored
from app.ui.markdown.render import safe_link, to_html

COLORS = dict.fromkeys(("line", "code", "muted", "hover", "accent"), "#123456")

TEXTS = {
    "prose": "One.\n\nTwo\nlines.\n\n\nThree.",
    "fence": "Before\n```python\nx = 1\n\ny = 2\n```\nAfter",
    "tilde fence": "~~~\ncode\n```\nstill\n~~~\nafter",
    "four backticks around three": "````md\n```py\nx\n```\n````\n\ndone",
    "unclosed fence": "text\n\n```js\nlet a = 1\n\n// more",
    "fence in a list": "1. one\n   ```\n   code\n   ```\n2. two",
    "loose list": "- a\n\n- b\n\n  more b\n\n- c\n\ntext",
    "ordered list in small steps": "1. x\n2. y\n3. z\n\nend",
    "table": "|a|b|\n|-|-|\n|1|2|\n|3|4|\n\nend",
    "heading under a line": "Title\n=====\n\ntext\n\nOther\n---\n",
    "quote that goes on": "> a\nlazy\n\n> b\n",
    "indented code": "para\n\n    code\n\n    code\n\nend",
    "definition below": "See [this][x].\n\n[x]: https://example.org\n",
    "carriage returns": "a\r\nb\r\n\r\n```\r\nc\r\n```\r\nd\re",
    "long": "\n\n".join(f"Paragraph {number} " + "word " * 60 for number in range(30)),
    "blank": "\n\n \n",
}


def stream(text: str, sizes: list[int]) -> list[Block]:
    segmenter, blocks, place = Segmenter(), [], 0
    while place < len(text):
        size = sizes[place % len(sizes)]
        segmenter.feed(text[place : place + size])
        place += size
        blocks += segmenter.commit()
        segmenter.pending()
    return blocks + segmenter.finish()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("sizes", [[1], [3], [1, 17, 4, 2, 40]], ids=["one", "three", "mixed"])
def test_cutting_while_it_grows_gives_what_cutting_the_whole_gives(text: str, sizes: list[int]) -> None:
    assert stream(text, sizes) == split(text)[0]


def test_cutting_anywhere_loses_nothing_in_random_markdown() -> None:
    seed = random.randrange(10**9)
    random_source = random.Random(seed)
    pieces = [
        "a ",
        "**b** ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "```\n",
        "```py\n",
        "~~~\n",
        "> ",
        "    ",
        "|x|\n|-|\n",
        "# ",
        "`",
        "===\n",
    ]
    for _ in range(150):
        text = "".join(random_source.choice(pieces) for _ in range(random_source.randrange(1, 60)))
        assert stream(text, [1]) == split(text)[0], f"seed {seed}: {text!r}"


def test_a_fence_is_open_until_its_own_end_comes() -> None:
    segmenter = Segmenter()
    segmenter.feed("````\n```\nx\n```\n")
    assert segmenter.pending() == [Block("```\nx\n```\n", "", closed=False)]
    segmenter.feed("````")
    assert segmenter.pending() == [Block("```\nx\n```\n", "", closed=True)]


def test_the_pending_tail_stays_short_however_long_the_answer() -> None:
    segmenter = Segmenter()
    longest = 0
    for number in range(400):
        segmenter.feed(f"Paragraph {number} with some words in it.\n\n")
        segmenter.commit()
        longest = max(longest, sum(len(block.source) for block in segmenter.pending()))
    assert longest < RUN_CHARS + 200


def test_time_grows_with_length_and_not_with_its_square() -> None:
    def seconds(paragraphs: int) -> float:
        segmenter = Segmenter()
        started = time.perf_counter()
        for number in range(paragraphs):
            segmenter.feed(f"Paragraph {number} " + "word " * 20 + "\n\n")
            segmenter.commit()
            segmenter.pending()
        return time.perf_counter() - started

    seconds(50)
    assert seconds(1600) < 12 * seconds(400)  # four times as long; sixteen would be quadratic


@pytest.mark.parametrize(
    ("open_text", "closed_text"),
    [
        ("a **b", "a **b**"),
        ("a **", "a "),
        ("a `co", "a `co`"),
        ("a `", "a "),
        ("see [lab", "see lab"),
        ("see [lab](http", "see lab"),
        ("see [lab](http://x)", "see [lab](http://x)"),
        ("x [1] y", "x [1] y"),
        ("`**` is bold", "`**` is bold"),
        ("done **b** and `c`", "done **b** and `c`"),
        ("![a](htt", "a"),
    ],
)
def test_marks_that_are_open_at_the_end_are_closed_for_the_eye(open_text: str, closed_text: str) -> None:
    assert close_marks(open_text) == closed_text


def test_html_is_text() -> None:
    html = to_html('<script>x</script> <img src=x onerror="y">\n\n<div>z</div>', COLORS, mono="Mono")
    assert "<script" not in html
    assert "<img" not in html
    assert "<div" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    "source",
    [
        "![alt](/etc/passwd)",
        "![alt](http://127.0.0.1:9/leak)",
        "![alt](data:image/png;base64,passwd)",
        "![alt](//host/share.png)",
        "![alt][ref]\n\n[ref]: /etc/passwd",
        "[![alt](/etc/passwd)](https://example.org)",
    ],
)
def test_an_image_becomes_its_description(source: str) -> None:
    html = to_html(source, COLORS, mono="Mono")
    assert "alt" in html
    assert "<img" not in html
    assert "passwd" not in html
    assert "127.0.0.1" not in html


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://example.org/a?b", True),
        ("HTTP://example.org", True),
        ("mailto:a@example.org", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("/etc/passwd", False),
        ("data:text/html,x", False),
        ("ftp://example.org", False),
        ("ownmind:x", False),
        ("//example.org", False),
        ("http://[bad", False),
        ("", False),
    ],
)
def test_only_web_and_mail_addresses_may_be_opened(address: str, allowed: bool) -> None:
    assert (safe_link(address) is not None) is allowed


def test_addresses_are_linked_only_with_their_scheme() -> None:
    html = to_html("See https://example.org/a_b and readme.md and 10.0.0.1", COLORS, mono="Mono")
    assert html.count("<a href") == 1


def test_an_address_cannot_break_out_of_its_attribute() -> None:
    html = to_html('[x](https://e.org/"onmouseover="y)', COLORS, mono="Mono")
    assert 'onmouseover="' not in html
    assert html.count('"') == 4  # two attributes, both ours


def test_a_refused_image_is_shown_as_it_was_written() -> None:
    assert "![a](file:///x)" in to_html("![a](file:///x)", COLORS, mono="Mono")


def test_links_resolve_wherever_their_address_is_defined() -> None:
    blocks, references = split("See [this][x].\n\n```\ncode\n```\n\n[x]: https://example.org\n")
    assert 'href="https://example.org"' in to_html(blocks[0].source, COLORS, mono="Mono", references=references)


def test_structure_becomes_the_tags_that_the_window_knows() -> None:
    source = "# H\n\n- [x] a\n\n3. b\n\n|l|c|\n|:-|:-:|\n|1|2|\n\n> q\n\n---\n\n`c` ~~s~~\nnext"
    html = to_html(source, COLORS, mono="Mono")
    for piece in ("<h1>H</h1>", "☑ a", '<ol start="3">', 'align="center"', "<hr>", "<s>s</s>", "<br>next"):
        assert piece in html


def test_prices_and_stars_stay_as_they_are() -> None:
    html = to_html("From $3,000 to $5,000, and 2 * 3 * 4", COLORS, mono="Mono")
    assert "$3,000 to $5,000" in html
    assert "2 * 3 * 4" in html


def test_code_is_coloured_by_theme_and_never_guessed() -> None:
    source = "def f():\n    return 'x'  # <b>"
    light, dark = colored(source, "python", LIGHT_CODE), colored(source, "python", DARK_CODE)
    assert light is not None
    assert dark is not None
    assert light != dark
    assert "<b>" not in light
    assert "&lt;b&gt;" in light
    assert colored(source, "", LIGHT_CODE) is None
    assert colored(source, "no-such-language", LIGHT_CODE) is None
    assert colored("x" * 100_000, "python", LIGHT_CODE) is None


@pytest.mark.parametrize("depth", [50, 3000])
def test_deep_nesting_ends(depth: int) -> None:
    started = time.perf_counter()
    for source in ("> " * depth + "x", "- " * depth + "x", "[" * depth, "*" * depth, "`" * depth):
        to_html(source, COLORS, mono="Mono")
        split(source)
        close_marks(source)
    assert time.perf_counter() - started < 5
