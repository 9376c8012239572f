"""Right-to-left pages: style sheets name no side, and texts of people and models have their own direction."""

import re
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHEETS = sorted((ROOT / "static" / "css").glob("*.css"))
TEMPLATES = sorted(path for path in (ROOT / "templates").rglob("*.html") if "admin" not in path.parts)
SIDED = re.compile(
    r"^\s*(?:left|right|(?:margin|padding|border|scroll-margin|scroll-padding)-(?:left|right)(?:-\w+)?"
    r"|border-(?:top|bottom)-(?:left|right)-radius)\s*:"
    r"|(?:text-align|float|clear)\s*:\s*(?:left|right)\b",
    re.MULTILINE,
)
QUARTET = re.compile(r"^\s*(?:margin|padding|inset)\s*:\s*([^;]+);", re.MULTILINE)


def sides(value: str) -> list[str]:
    """Return the lengths of a shorthand; a function counts as one of them."""
    while "(" in value:
        value = re.sub(r"\([^()]*\)", lambda found: str(abs(hash(found[0]))), value)
    return value.split()


def sided(sheet: str) -> list[str]:
    """Return declarations of a style sheet that keep their side of the screen on a mirrored page."""
    quartets = [found for found in QUARTET.finditer(sheet) if len(sides(found[1])) == 4]
    uneven = [found[0] for found in quartets if sides(found[1])[1] != sides(found[1])[3]]
    return [found[0] for found in SIDED.finditer(sheet)] + uneven


def test_a_style_sheet_names_no_side() -> None:
    for sheet in SHEETS:
        assert sided(sheet.read_text()) == [], sheet


def test_what_names_a_side_is_found() -> None:
    said = [
        "left: 0;",
        "margin-right: 1px;",
        "border-left-color: red;",
        "text-align: right;",
        "inset: 0 auto 0 0;",
    ]
    kept = [
        "padding: 0 calc(1px + 2px) 1px calc(1px + 2px);",
        "text-align: start;",
        "margin-inline-end: 1px;",
    ]
    assert [len(sided(f"a {{\n  {one}\n}}")) for one in said] == [1] * 5
    assert [sided(f"a {{\n  {one}\n}}") for one in kept] == [[]] * 3


# User content that templates show: a chat by its title, and these fields of any object.
WRITTEN = re.compile(
    r"{{ (?:chat(?=[ |])|[a-z_.]+\.(?:content|title|objective|description|category|quote|summary))\b[^}]*}}"
)


class Written(HTMLParser):
    """Finds user content without its own text direction in a template.

    Exempt are attributes and hidden texts, fields, and message bubbles, whose lines get it from css/base.css.
    """

    def __init__(self, template: str) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.found: list[str] = []
        self.feed(re.sub(r"{%.*?%}", "", template, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        classes = {*(has.get("class") or "").split()}
        minds = (
            bool(classes & {"visually-hidden", "bubble"})
            or tag in {"bdi", "textarea", "option", "title"}
            or has.get("dir") == "auto"
        )
        if tag not in {"input", "img", "br", "hr", "link", "meta", "col"}:
            self.open.append((tag, minds))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(minds for _tag, minds in self.open):
            self.found += WRITTEN.findall(data)


# A browser's tab has no direction, and a translated sentence keeps its own around names.
ASIDE = re.compile(
    r"{% block (?:title|toolbar_title) %}.*?{% endblock|{% blocktranslate .*?{% endblocktranslate", re.DOTALL
)


def test_what_was_written_runs_by_its_own_letters() -> None:
    found = {path.name: Written(ASIDE.sub("{%", path.read_text())).found for path in TEMPLATES}
    assert {name: words for name, words in found.items() if words} == {}
    assert len(TEMPLATES) > 150


def test_written_words_without_a_direction_are_found() -> None:
    template_cases = [
        ("<p>{{ memory.content }}</p>", 1),
        ("<p>Before: <b>{{ chat.title|truncatechars:60 }}</b> <bdi>{{ chat }}</bdi></p>", 1),
        ('<p dir="auto">{{ chat }}</p><a href="{{ node.title }}">{{ chat }}</a>', 1),
        ('<p dir="auto"><b>{% if chat %}{{ chat }}{% endif %}</b></p>', 0),
        ('<br><span class="visually-hidden">{{ document.title }}</span>', 0),
    ]
    for template, found in template_cases:
        assert len(Written(template).found) == found, (template, found)


NAMED = re.compile(r"\b(?:name|title|username)=\w+\.(?:name|title|username|label)\b(?!\|isolated)")


def test_a_name_within_a_sentence_turns_nothing_round() -> None:
    for template in TEMPLATES:
        sentences = re.findall(r"{% blocktrans(?:late)? with [^%]*%}", template.read_text())
        assert [sentence for sentence in sentences if NAMED.search(sentence)] == [], template
