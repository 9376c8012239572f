"""Measure what a byte of hostile text costs to render as Markdown and to highlight as code, against ordinary text.

    python -m tests.bench.bench_markdown [--size 32000] [--seed 1] [--texts 150]

The hostile text is made, not collected: each token of the grammar over and over, two and more of them in turn, one half
of this and one of that, and a jumble, drawn with the seed. The talk is every "text" and "content" in FILE, JSON lines;
without one, the prose of docs/. CPU of this process, not time. A text above its budget is cut off and shown as it was
written; what it cost until then is what counts.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()

from chat.rendering.highlighting import LANGUAGES, coloured
from chat.rendering.markdown import Budget, TooHeavy, render_markdown
from chat.rendering.stored_html import MESSAGE_STEPS

MARKDOWN = (
    *("[", "]", "(", ")", "![", "[]", "[](", "](a)", "](<", "]:", "[a]", "[a](b)", "[x][y]", "[a][", "[a]: b\n"),
    *("*", "**", "***", "*a*", "**a", "a**", "_", "_a", "a_", "~~", "~~a", "`", "``", "`a`", "\\", "\\["),
    *("<", ">", "<a@b>", "<a:b>", "<http:", "<!--", "<div>", "&amp;", "&#x", "&#1;", "://", "www.", "'", '"', '("'),
    *("-", "- ", "- a\n", "+ ", "1. ", "1. a\n  ", "> ", "> - ", "|", "| ", "|-", "|a", ":", "#", "# "),
    *("=", "===\n", "---\n", "* * *\n", "```\n", "~~~\n", "``` c\n", "```python\n", "```js\n'"),
    *("$", "$$", "$a$", "$$\n", "$$a\n", "\\(", "\\[\n", "\\]", "$\\frac", "{", "}", "^a", "$\\begin{matrix}", "&"),
    *("\n", "\n\n", " ", "  ", "    ", "\t", "\u3000", "a", "a ", "a\n", "é", "😀", "\u0301", "x" * 40),
)  # fmt: skip
CODE = (
    *("\n", " ", "  ", "\t", " \n", "é\n", "\r", "\x00", "\u2028", '"', "'", "`", '"""', "'''", "\\", '"\\', "'a"),
    *("/*", "*/", "/**", "//", "#", "--", "<!--", "-->", "<", "</", "<a ", "<script>", "</script>", ">", "->", "=>"),
    *("(", ")", "[", "]", "{", "}", "${", "$(", "$", "{{", "@", "@a(", "=", ":", "::", ";", ",", ".", "*", "&", "|"),
    *("%", "-", "- ", "+", "?", "!!", "0", "0x", "1e", "1_", "1.", "a", "A", "_", "é", "a.b.", "a<", "a-", "a:", "a="),
    *("fn ", "def ", "class ", "enum ", "import a.", "select ", "r#", "<<EOF\n", "|\n", "key: ", "#define a \\\n"),
)  # fmt: skip


def hostile_texts(tokens: tuple[str, ...], size: int, seed: int, texts: int) -> Iterator[tuple[str, str]]:
    """Yield a name and a text of ``size`` characters for every token alone, and ``texts`` random mixtures."""
    drawn = random.Random(seed)
    for token in tokens:
        yield repr(token), (token * size)[:size]
    for _ in range(texts):
        first, second = drawn.choices(tokens, k=2)
        yield f"{first!r}, then {second!r}", (first * size)[: size // 2] + (second * size)[: size // 2]
        yield f"{first!r} once, then {second!r}", (first + second * size)[:size]
        unit = "".join(drawn.choices(tokens, k=drawn.randint(2, 8)))
        yield f"{unit!r} again and again", (unit * size)[:size]
        few = drawn.choices(tokens, k=drawn.randint(2, 5))
        yield f"a jumble of {few!r}", "".join(drawn.choices(few, k=size))[:size]
        yield "a jumble of all", "".join(drawn.choices(tokens, k=size))[:size]


def nestings(size: int) -> Iterator[tuple[str, str]]:
    """Yield hostile texts that no repetition makes: deep nesting, and short text that expands."""
    half = size // 2
    yield "deep emphasis", ("*a **b " * size)[:half] + ("c** d*" * size)[:half]
    depths = range(1, 1 + int((2 * size) ** 0.5))
    yield "deep quotes", "".join(">" * depth + "\n" for depth in depths)[:size]
    yield "deep lists", "".join("  " * depth + "- a\n" for depth in depths)[:size]
    yield "deep brackets", ("[" * half) + ("](a)" * size)[:half]
    yield "a long link, often", "[a]: /" + "x" * half + "\n\n" + ("[a]" * size)[:half]
    columns = size // 6
    yield "a wide table", "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + "a\n" * columns
    yield "backticks of all lengths", "".join("`" * depth + " " for depth in depths)[:size]


def hostile_markdown(size: int, seed: int, texts: int) -> Iterator[tuple[str, str]]:
    yield from hostile_texts(MARKDOWN, size, seed, texts)
    yield from nestings(size)


def rendered(text: str) -> int:
    """Return the length of the HTML, or -1 for a text over its budget."""
    try:
        return len(render_markdown(text, Budget(MESSAGE_STEPS)))
    except TooHeavy:
        return -1


def cost(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def filled(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def _report(what: str, found: list[tuple[float, int, str]], size: int, plain: float, most: int) -> None:
    """Print a summary. ``found``: nanoseconds a byte, length of the HTML, name."""
    found.sort(reverse=True)
    heavy = sum(made < 0 for _, made, _ in found)
    middle = found[len(found) // 2][0]
    print(f"{what}: {len(found)} texts, {heavy} over their budget; median {middle:.0f} ns/byte")
    for each, made, name in found[:most]:
        said = "over its budget" if made < 0 else f"{made / size:.1f} times as long"
        print(f"{each:9.0f} ns/byte {each / plain:7.1f}x {each * size / 1e6:7.0f} ms  {name[:70]} ({said})")


def _measured(texts: Iterator[tuple[str, str]], work: Callable[[str], int]) -> list[tuple[float, int, str]]:
    found = []
    for name, text in texts:
        made = 0

        def once(text: str = text) -> None:
            nonlocal made
            made = work(text)

        found.append((cost(once) * 1e9 / len(text.encode()), made, name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=150, help="of each way to mix tokens")
    options = parser.parse_args()
    size = options.size

    prose = "\n\n".join(path.read_text() for path in sorted(Path("docs").glob("*.md")))
    plain = cost(lambda: [rendered(filled(prose, size)) for _ in range(10)]) / 10
    plain_byte = plain * 1e9 / len(filled(prose, size).encode())
    print(f"{size:,} characters each. The prose of docs/: {plain_byte:.0f} ns/byte, {plain * 1e3:.0f} ms\n")

    found = _measured(hostile_markdown(size, options.seed, options.texts), rendered)
    _report("Markdown", found, size, plain_byte, most=12)
    code = Path(__file__).read_text()
    for language in LANGUAGES:
        usual = cost(lambda name=language: coloured(filled(code, size), name)) * 1e9 / size  # type: ignore[misc]
        texts = hostile_texts(CODE, size, options.seed, options.texts // 3)
        found = _measured(texts, lambda text, name=language: len(coloured(text, name)))  # type: ignore[misc]
        _report(f"\n{language}, where this file costs {usual:.0f} ns/byte", found, size, plain_byte, most=2)


if __name__ == "__main__":
    main()
