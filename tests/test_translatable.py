"""Every text that a person reads on a page can be translated: in templates, scripts, forms, notices and errors."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import polib
import pytest
from django.urls import get_resolver
from django.utils.functional import Promise
from django.utils.translation.template import templatize

from memoryhub.errors import DomainError
from memoryhub.llm.errors import ModelError
from memoryhub.localization import SENTENCES_END
from tests import messages
from tests.imports import parsed
from tests.messages import PLURALS, Said, collected, faults, wrong

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
# Names and keys, which are the same in every language, and parts of prompts to type.
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
SETTING = re.compile(r"MEMORYHUB_|manage\.py|\bmake [a-z]+`|environment variable")
WORD = re.compile(r"[A-Za-z][A-Za-z']+")


class Read(HTMLParser):
    """The readable texts of a template without its tags, with attributes that a screen reader announces."""

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


def test_a_template_has_no_words_outside_translation() -> None:
    for template in TEMPLATES:
        text = TAG.sub(" ", CLASSES.sub(" ", MARKED.sub(" ", COMMENT.sub(" ", template.read_text()))))
        reader = Read()
        reader.feed(text)
        assert reader.words == [], template


def test_a_collector_of_messages_finds_what_templates_say() -> None:
    """``makemessages`` reads templates through ``templatize``, which must parse each and find each marked string."""
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
    """Yield the string literals of a script without comments."""
    for match in re.finditer(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", script):
        yield next(filter(None, match.groups()), "")


def test_a_script_says_nothing_of_its_own() -> None:
    """Scripts take texts from the page (partials/client_texts.html). A sentence, or a capitalized word that names no
    key or method, is a visible text.
    """
    for script in SCRIPTS:
        code = re.sub(r"^\s*//.*$|(?<=\s)// .*$", "", script.read_text(), flags=re.MULTILINE)
        known = {"Escape", "Enter", "ArrowDown", "ArrowUp", "Tab", "GET", "POST", "Ctrl"}
        said = [
            text for text in strings(code) if re.fullmatch(r"[A-Z][a-z]+(?: .*)?|[a-z]+ [a-z]+ [a-z ]+", text)
        ]
        assert [text for text in said if text not in known] == [], script


MODULES = sorted(
    path
    for app in ("chat", "memories", "workspaces")
    for path in (ROOT / app).rglob("*.py")
    if re.search(r"(forms|views)\.py$", path.name) and "api" not in path.parts
)


def test_forms_and_notices_are_translated() -> None:
    for module in MODULES:
        bare = []
        for node in ast.walk(parsed(module)):
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
        assert bare == [], module


DOMAIN = [
    path for app in ("memoryhub", "workspaces", "memories", "chat") for path in (ROOT / app).rglob("*.py")
]


def subclasses(kind: type[DomainError]) -> Iterator[type[DomainError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from subclasses(below)


# Visible texts beside those of domain errors: the position of a call's argument, and the names of keywords and
# attributes.
SAID_IN = {
    "ValidationError": 0,
    "ParseError": 0,
    "AuthenticationFailed": 0,
    "refuse": 0,
    "is_known": 1,
    "_fail": -1,
    "_wait": -1,
    "_halt": -1,
}
SAID_AS = {"error", "error_messages", "default_error_messages", "why_not", "about"}
CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")  # an error's code, for programs
# Texts for models, other programs, operators, and the REST documentation: in English only (docs/languages.md).
ENGLISH_ALONE = {"admin", "management", "migrations", "scim", "mcp", "openai_api", "schema"}


def literal(node: ast.AST | None) -> bool:
    """Return whether a node is literal text with words, neither a gettext call nor its arguments."""
    if isinstance(node, ast.BinOp):
        return literal(node.left) or (isinstance(node.op, ast.Add) and literal(node.right))
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    said = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return any(WORD.search(text) and not CODE.fullmatch(text) for text in said)


def assigned(tree: ast.AST) -> dict[str, list[ast.AST]]:
    """Return the values assigned to each name in a file, those of a dictionary's keys included."""
    named: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            into = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(into, ast.Name):
                named.setdefault(into.id, []).append(node.value)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            named.setdefault(node.target.id, []).append(node.value)
    return named


def imported(tree: ast.AST) -> dict[str, list[ast.AST]]:
    """Return the same for constants imported from another file of the project."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            path = (ROOT / node.module.replace(".", "/")).with_suffix(".py")
            names = [alias.name for alias in node.names if alias.name.isupper()]
            there = assigned(parsed(path)) if names and path.exists() else {}
            found |= {name: there[name] for name in names if name in there}
    return found


def said_at(node: ast.AST, errors: set[str]) -> list[ast.AST]:
    """Return the visible texts of a call, an assignment or a dictionary."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        place = 0 if name in errors else SAID_IN.get(name, len(node.args))
        under = SAID_AS | {"message", "fields"} if name in errors else SAID_AS
        return [*node.args[place:][:1], *(word.value for word in node.keywords if word.arg in under)]
    if isinstance(node, ast.Assign) and any(getattr(into, "id", "") in SAID_AS for into in node.targets):
        return [node.value]
    if isinstance(node, ast.Dict):
        keyed = {
            key.value: text
            for key, text in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
        return [keyed["message"]] if {"code", "message"} <= keyed.keys() else []
    return []


def texts_in(said: ast.AST, named: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """Yield the possible values: each value of a dictionary, either side of a choice, every value of a name."""
    inside: list[ast.AST] = []
    if isinstance(said, ast.Name):
        inside = named.get(said.id, [])
        named = {name: meant for name, meant in named.items() if name != said.id}
    elif isinstance(said, ast.Dict):
        inside = [*said.values]
    elif isinstance(said, ast.DictComp):
        inside = [said.value]
    elif isinstance(said, ast.IfExp):
        inside = [said.body, said.orelse]
    elif isinstance(said, ast.Call) and getattr(said.func, "attr", "") == "fromkeys":
        inside = [*said.args[1:]]
    else:
        yield said
    for each in inside:
        yield from texts_in(each, named)


def unmarked(tree: ast.AST, errors: set[str]) -> list[str]:
    """Return the visible texts without translation, in place or by a name from this or another file."""
    said = [each for node in ast.walk(tree) for each in said_at(node, errors)]
    named = imported(tree) | assigned(tree) if said else {}
    return [ast.unparse(text) for each in said for text in texts_in(each, named) if literal(text)]


def test_what_people_are_told_is_translated() -> None:
    assert get_resolver().url_patterns  # imports every module of the URLs, with its errors
    kinds = [kind for kind in subclasses(DomainError) if not kind.__module__.startswith("tests.")]
    assert len(kinds) > 15
    assert [kind for kind in kinds if not isinstance(kind.default_message, Promise)] == []
    names = {kind.__name__ for kind in kinds}
    read = [path for path in DOMAIN if not ENGLISH_ALONE & {*path.parts, path.stem}]
    assert [(path, text) for path in read for text in unmarked(parsed(path), names)] == []


def test_an_unmarked_sentence_of_an_error_is_found() -> None:
    saids = [
        'Conflict("Taken.")',
        'errors.Conflict(f"{name} is taken.")',
        'Conflict(message="Taken.")',
        'Conflict("Taken by %s." % name)',
        'Conflict(_("Taken.") + " Try another.")',
        'Conflict("Taken." if one else _("All are taken."))',
        'Conflict(_("Taken."), fields={"name": "is taken"})',
        'why = "Taken."\nConflict(why)',
        'wrong = {}\nwrong["name"] = "is taken"\nConflict(fields=wrong)',
        'why = why if one else "Taken."\nConflict(why)',
        'ValidationError({"name": "Is taken."})',
        'ValidationError(dict.fromkeys(names, f"{name} is taken."))',
        'class Field:\n    default_error_messages = {"taken": "Is taken."}',
        'TAKEN: Any = {"taken": "Is taken."}\nField(error_messages=TAKEN)',
        'record.refuse("is taken")',
        'record.is_known(other, "is taken")',
        "from chat.runs.step import ONLY_FINISH\nrecord.refuse(ONLY_FINISH)",
        'Outcome(False, error="Taken.")',
        'JsonResponse({"error": {"code": "taken", "message": "Taken."}})',
    ]
    for said in saids:
        assert unmarked(ast.parse(said), {"Conflict"}) != [], said


def test_a_marked_sentence_of_an_error_passes() -> None:
    saids = [
        'Conflict(_("Taken by %s.") % "you", code="taken")',
        'why = later("Taken.")\nConflict(why, fields={"name": _("is taken")})',
        'Conflict(f"{why} ({more})")',
        'Other("Taken.")',
        'record.is_known("the one")',
        "from chat.runs.step import MISFIT\nrecord.refuse(MISFIT)",
        'authorize(error="access_denied")',
        'shown(role="user", message="What?")',
    ]
    for said in saids:
        assert unmarked(ast.parse(said), {"Conflict"}) == [], said


@pytest.fixture(scope="module")
def said() -> list[Said]:
    """Collect all marked texts, in half a second."""
    return collected()


def ungrouped(tree: ast.AST) -> list[str]:
    """Return arguments of translated sentences that contain a number with English grouping."""
    fills = [
        node.right
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Call)
    ]
    texts = [text for fill in fills for text in ast.walk(fill) if isinstance(text, ast.FormattedValue)]
    return [ast.unparse(text) for text in texts if text.format_spec and "," in ast.unparse(text.format_spec)]


def test_numbers_in_a_sentence_are_grouped_as_its_language_does() -> None:
    grouping = [path for path in DOMAIN if re.search(r",[.\d\w]*}", path.read_text())]
    assert [(path, text) for path in grouping for text in ungrouped(parsed(path))] == []
    both = '_("At most %s.") % f"{most:,}"; _("%(a)s") % {"a": f"{a:,.2f} of {b}"}'
    assert len(ungrouped(ast.parse(both))) == 2


def test_nobody_meets_a_setting_or_a_command_on_a_page(said: list[Said]) -> None:
    """A user asks an administrator, who finds settings and commands in the docs and in the log."""
    told = [text for each in said for text in (each.one, each.many or "") if SETTING.search(text)]
    assert told == []
    assert SETTING.search("Set MEMORYHUB_LLM_MODEL.") and SETTING.search("Run `make run`.")


def test_what_is_kept_of_a_models_failure_is_marked_sentence_by_sentence(said: list[Said]) -> None:
    kinds = [ModelError, *ModelError.__subclasses__()]
    assert len(kinds) > 10
    kept = [sentence for kind in kinds for sentence in SENTENCES_END.split(kind.sentence)]
    assert set(kept) - {each.one for each in said} == set()


@pytest.mark.parametrize("language", PLURALS)
def test_a_language_says_all_of_it_and_nothing_is_broken(
    language: str, said: list[Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``make messages``, then ``make untranslated`` list what is missing (docs/languages.md)."""
    assert len(said) > 1500
    monkeypatch.setattr(messages, "collected", lambda: said)
    assert messages.main(["--missing", language]) == 0
    assert len(faults(language, [*said, Said(None, "Nobody says this.", None, "here")])) == 1


def test_a_broken_translation_is_found() -> None:
    for one, many, forms, problem in (
        ("%(n)s of {count}", "", ["{count}, davon %(n)s"], ""),
        ("Go", "", [" "], "is not translated"),
        ("Go to %(place)s", "", ["Nach %(ort)s"], "has other placeholders"),
        ("Wait {count} s, %s", "", ["%s, {count} {count} s"], "has other placeholders"),
        ("Read <b>this</b>", "", ["Lies <b>das"], "has other HTML"),
        ("Now: ", "", ["Jetzt:"], "has space at an end"),
        ("%(n)s chat", "%(n)s chats", ["Ein Chat", "%(n)s Chats"], ""),
        ("%(n)s chat", "%(n)s chats", ["%(n)s Chat", ""], "is not translated"),
        ("%(n)s chat", "%(n)s chats", ["%(n)s Chat", "%s Chats"], "has other placeholders"),
    ):
        entry = polib.POEntry(msgid=one, msgid_plural=many)
        entry.msgstr, entry.msgstr_plural = ("", dict(enumerate(forms))) if many else (forms[0], {})
        found = wrong(entry)
        assert found.startswith(problem) if problem else found == "", one
        entry.flags = ["fuzzy"]
        assert wrong(entry) != "", one
