"""Formulas in answers: what becomes MathML, what stays as written, and that neither is dangerous."""

import re

import pytest

from chat.rendering.markdown import MOST, Budget, TooHeavy, mathml, render_markdown
from chat.rendering.stored_html import MESSAGE_STEPS

INLINE, BLOCK = '<math display="inline">', '<math display="block">'


def rendered(text: str) -> str:
    return str(render_markdown(text, Budget(MESSAGE_STEPS)))


def test_formula_becomes_mathml() -> None:
    for text, display in (
        ("so $a^2+b^2=c^2$ holds", INLINE),
        ("for $n$, $2x$ and $3 \\times 4$", INLINE),
        (r"so \(a_b\) holds", INLINE),
        (r"thus \[x = 1\] here", BLOCK),
        ("$$\\int_0^1 x\\,dx$$", BLOCK),
        ("before\n$$\nx_1\n$$\nafter", BLOCK),
        ("- a point\n\n  $$\n  y\n  $$", BLOCK),
        ("> \\[\n> z^2\n> \\]", BLOCK),
        ("| a |\n|---|\n| $x_1$ |", INLINE),
        ("\\[\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n\\]", BLOCK),
    ):
        html = rendered(text)
        assert display in html, text
        assert not re.search(r"\$|\\[(\[]|_\d", html), html


def test_text_without_a_formula_stays_as_written() -> None:
    for text in (
        "Costs are $5 and $10, or US$5 and CA$6.",
        "from $5 to 10$ a head, between $1,000 and 2,000$",
        "export PATH=$HOME/bin:$PATH and $x:$y",
        "`$x^2$` and\n\n```\n$$x$$\n```",
        r"escaped \$x^2\$, \[1\] and \(see below\)",
        "$ a $ and $$ $$",
        "a lone $ and another\nline $",
    ):
        assert "<math" not in rendered(text), text


def test_one_that_is_being_written_is_shown_as_its_source_until_it_ends() -> None:
    text = "It is\n\n$$\n\\frac{a_1}{b} + *c*\n$$\n\nindeed"
    for end in range(text.index("$$") + 3, text.index("\n$$\n\nind")):
        html = rendered(text[:end])
        assert "<em>" not in html
        assert "<math" not in html
        assert "<code>$$" in html
    assert BLOCK in rendered(text)


def test_invalid_formula_is_shown_as_code() -> None:
    for source in ("$\\frac{$", "$x^a^b$", "$" + "{" * 900 + "}" * 900 + "$"):
        assert f"<code>{source}</code>" in rendered(source), source[:20]


def test_formula_adds_no_markup_or_attributes_of_its_own() -> None:
    for formula in (
        r"\text{<script>alert(1)</script>}",
        r"\text{&lt;img src=x onerror=alert(1)&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(//evil.example)}{x}",
        r"\class{evil}{x}\color{red}{y}",
        r"\text{</mtext></math><img src=x onerror=alert(1)>}",
        r'\text{" onload="alert(1)}',
    ):
        for html in (mathml(formula, display=False), rendered(f"${formula}$")):
            assert not re.search(r"<(?!/?(?:math|m[a-z]+|p|code)\b)", html), html
            tags = "".join(re.findall(r"<[^>]*>", html))
            assert not re.search(r"href|style=|class=.evil|onload|onerror|javascript|mathcolor", tags), html


def test_formulas_cost_of_the_budget_what_they_take() -> None:
    long = "$" + "x" * (MOST - 10) + "+1$ "
    assert "<math" in rendered(long)
    with pytest.raises(TooHeavy):
        rendered(long * 10)
    assert "<math" not in rendered("$" + "x+" * MOST + "1$")


def test_pictures_of_ones_own_files_are_shown_and_no_others() -> None:
    own = "/workspaces/ws_abc/documents/doc_abc/content/"
    assert f'<img src="{own}" alt="A cat" loading="lazy">' in rendered(f"![A cat]({own})")
    for other in (
        "/accounts/logout/",
        "//evil.example/a.png",
        "https://evil.example/a.png",
        own + "?x=/../..",
    ):
        html = rendered(f"![A cat]({other})")
        assert "<img" not in html, html
        assert "\u25a3 A cat</a>" in html
