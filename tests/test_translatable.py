"""Every word that a person reads on a page can be translated: in templates, scripts, forms and notices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.test import Client
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
# Names and keys, which are the same in every language, and parts of prompts that people type.
SAME_EVERYWHERE = {
    "MemoryHub",
    "Ctrl",
    "Enter",
    "Esc",
    "UTC",
    "JSON",
    "URL",
    "API",
    "HTTP",
    "ID",
    "AI",
    "CSV",
    "DOCTYPE",
}
READ = {"title", "aria-label", "placeholder", "alt", "aria-description", "aria-roledescription"}
MARKED = re.compile(r"{%\s*blocktrans(?:late)?\b.*?{%\s*endblocktrans(?:late)?\s*%}", re.DOTALL)
CLASSES = re.compile(r"{%\s*block \w+_(?:class|attributes)\b.*?{%\s*endblock[^%]*%}", re.DOTALL)
COMMENT = re.compile(r"{#.*?#}|{%\s*comment\b.*?{%\s*endcomment\s*%}", re.DOTALL)
TAG = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
WORD = re.compile(r"[A-Za-z][A-Za-z']+")


class Read(HTMLParser):
    """What is left to read of a template without its tags: text, and attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in {"script", "style"}
        for name, value in attrs:
            if name in READ:
                self._take(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._take(data)

    def _take(self, text: str) -> None:
        self.words += [word for word in WORD.findall(text) if word not in SAME_EVERYWHERE]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_a_template_has_no_words_outside_translation(template: Path) -> None:
    text = TAG.sub(" ", CLASSES.sub(" ", MARKED.sub(" ", COMMENT.sub(" ", template.read_text()))))
    reader = Read()
    reader.feed(text)
    assert reader.words == []


def test_a_collector_of_messages_finds_what_templates_say() -> None:
    """``makemessages`` reads templates through ``templatize``: it must read each, and find each marked string."""
    found = 0
    for template in TEMPLATES:
        source = template.read_text()
        code = templatize(source, origin=str(template))
        said = re.findall(r"{%\s*translate\s+(\"[^\"]+\"|'[^']+')", COMMENT.sub("", source))
        for text in said:
            assert f"gettext(u{text[1:-1]!r})" in code, (template, text)
        found += len(said)
    assert found > 500


def strings(script: str) -> Iterator[str]:
    """String literals of a script that has no comments."""
    for match in re.finditer(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", script):
        yield next(filter(None, match.groups()), "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_nothing_of_its_own(script: Path) -> None:
    """What it says comes from the page (partials/client_texts.html). A sentence, or a word with a capital that is no
    key's or method's name, would be read by people."""
    code = re.sub(r"^\s*//.*$|(?<=\s)// .*$", "", script.read_text(), flags=re.MULTILINE)
    known = {"Escape", "Enter", "ArrowDown", "ArrowUp", "Tab", "GET", "POST", "Ctrl"}
    said = [
        text for text in strings(code) if re.fullmatch(r"[A-Z][a-z]+(?: .*)?|[a-z]+ [a-z]+ [a-z ]+", text)
    ]
    assert [text for text in said if text not in known] == []


MODULES = sorted(
    path
    for app in ("chat", "memories", "workspaces")
    for path in (ROOT / app).rglob("*.py")
    if re.search(r"(forms|views)\.py$", path.name) and "api" not in path.parts
)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_forms_and_notices_are_translated(module: Path) -> None:
    bare = []
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call):
            continue
        named = {word.arg: word.value for word in node.keywords}
        read = [named.get(name) for name in ("label", "help_text", "empty_label", "placeholder")]
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in {
            "notices",
            "messages",
        }:
            read += node.args[1:2]
        bare += [
            value.value
            for value in read
            if isinstance(value, ast.Constant)
            and isinstance(value.value, str)
            and WORD.search(re.sub(r"https?://\S+", "", value.value))
        ]
    assert bare == []


@pytest.mark.django_db
def test_no_page_is_half_in_another_language() -> None:
    """Django's own sentences come in a hundred languages, ours in one."""
    html = Client().post("/accounts/login/", {}, headers={"Accept-Language": "de"}).content.decode()
    assert '<html lang="en">' in html
    assert "This field is required." in html
