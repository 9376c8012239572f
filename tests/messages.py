"""Translation catalogues of the pages, kept in step with the marked strings of code and templates.

    python -m tests.messages              collect every marked string into memoryhub/locale/*/LC_MESSAGES/django.po
    python -m tests.messages --missing de what German lacks, as lines of a .po, and what is wrong with what it has

Collecting keeps translations, adds new strings without one and drops unused ones. Neither needs GNU gettext: templates
are read by Django's own reader, Python by its syntax tree.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polib
from django.utils.translation.template import templatize

from tests.imports import parsed

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "memoryhub" / "locale"
APPS = ("memoryhub", "workspaces", "memories", "chat")
# Texts in English only (docs/languages.md): for staff in the admin, for models and their programs.
ENGLISH = ("templates/admin/", "chat/programs/openai_api/", "chat/programs/mcp_")
# The classical rules: two forms for the Romance languages, whose third one is only for millions.
PLURALS = {
    "de": "nplurals=2; plural=(n != 1);",
    "es": "nplurals=2; plural=(n != 1);",
    "fr": "nplurals=2; plural=(n > 1);",
    "pt_BR": "nplurals=2; plural=(n > 1);",
    "zh_Hans": "nplurals=1; plural=0;",
    "ar": "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 :"
    " n%100>=11 && n%100<=99 ? 4 : 5;",
}
# The arguments of each gettext function: context, singular, plural.
TAKES = {
    "gettext": (None, 0, None),
    "ngettext": (None, 0, 1),
    "pgettext": (0, 1, None),
    "npgettext": (0, 1, 2),
    "kept": (None, 0, None),  # each of its texts separately
}
IN_TEMPLATE = re.compile(r"\b(n?p?gettext|_)\s*\(")
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|%(?:[sd]|\.\d+f)|\{(\w*)\}|(%%)")
HTML = re.compile(r"</?\w+|&\w+;")


@dataclass(frozen=True)
class Said:
    context: str | None
    one: str
    many: str | None
    where: str


def collected() -> list[Said]:
    """Return every marked text, where it first appears, in the order of files and lines."""
    found: dict[tuple[str | None, str], Said] = {}
    for said in [*_in_templates(), *_in_python()]:
        if said.where.startswith(ENGLISH) or "/admin/" in said.where:
            continue
        before = found.setdefault((said.context, said.one), said)
        if said.many and not before.many:
            found[said.context, said.one] = Said(said.context, said.one, said.many, before.where)
    return [*found.values()]


def _in_templates() -> Iterator[Said]:
    folder = ROOT / "templates"
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.txt")]):
        code = templatize(path.read_text(encoding="utf-8"), origin=str(path))
        for call in IN_TEMPLATE.finditer(code):
            texts = _literals(code[call.end() :])
            yield _said(call[1].replace("_", "gettext") if call[1] == "_" else call[1], texts, path)


def _literals(code: str) -> list[str]:
    """Return the string literals at the beginning of a call's arguments, from ``templatize``'s output."""
    texts = []
    while found := re.match(r"\s*,?\s*(u?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))", code, re.DOTALL):
        texts.append(ast.literal_eval(found[1]))
        code = code[found.end() :]
    return texts


def _in_python() -> Iterator[Said]:
    for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
        tree = parsed(path)
        names = _names(tree)
        if not names:
            continue
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            function = names.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
            if function:
                texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                # A call without a literal marks a text that is marked where it is defined.
                for said in [[text] for text in texts] if function == "kept" else filter(None, [texts]):
                    yield _said(function, said, path)


def _names(tree: ast.Module) -> dict[str, str]:
    """Return the names by which this file calls gettext's functions."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
            for name in node.names:
                function = name.name.removesuffix("_lazy").removesuffix("_noop")
                if function in TAKES:
                    found[name.asname or name.name] = function
        if isinstance(node, ast.ImportFrom) and node.module == "memoryhub.stored_messages":
            found["kept"] = "kept"
    return found


def _said(function: str, texts: list[str], path: Path) -> Said:
    context, one, many = (None if place is None else texts[place] for place in TAKES[function])
    assert one is not None
    return Said(context, one, many, str(path.relative_to(ROOT)))


def path_of(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def read(language: str) -> polib.POFile:
    path = path_of(language)
    return polib.pofile(str(path), wrapwidth=0) if path.exists() else polib.POFile(wrapwidth=0)


def merge(language: str, said: list[Said]) -> None:
    """Rewrite a language's catalogue: these strings in this order, each with its existing translation."""
    before = read(language)
    had = {(entry.msgctxt, entry.msgid): entry for entry in before}
    after = polib.POFile(wrapwidth=0)
    after.header = before.header
    after.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": PLURALS[language],
    }
    forms = range(int(PLURALS[language][9]))
    for each in said:
        entry = polib.POEntry(
            msgctxt=each.context, msgid=each.one, msgid_plural=each.many or "", occurrences=[(each.where, "")]
        )
        old = had.get((each.context, each.one))
        if each.many:
            entry.msgstr_plural = {form: (old.msgstr_plural.get(form, "") if old else "") for form in forms}
        else:
            entry.msgstr = old.msgstr if old else ""
        if "%(" in each.one or re.search(r"%[sd]", each.one):
            entry.flags = ["python-format"]
        after.append(entry)
    path_of(language).parent.mkdir(parents=True, exist_ok=True)
    path_of(language).write_text(str(after) + "\n", encoding="utf-8")


def wrong(entry: polib.POEntry) -> str:
    """Return the fault of a translation, or an empty string."""
    forms = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
    if not all(form.strip() for form in forms):
        return "is not translated"
    if entry.fuzzy:
        return "is marked fuzzy"
    sources = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
    for form in forms:
        for what, pattern in (("placeholders", PLACEHOLDER), ("HTML", HTML)):
            allowed = [sorted(found[0] for found in pattern.finditer(source)) for source in sources]
            has = sorted(found[0] for found in pattern.finditer(form))
            # The singular may omit its number: “one memory”, and dual forms of Arabic.
            without = len(sources) > 1 and what == "placeholders" and set(has) < set(max(allowed, key=len))
            if has not in allowed and not without:
                return f"has other {what}: {has} instead of {allowed[-1]}"
        edges = [(source[:1].isspace(), source[-1:].isspace()) for source in sources]
        if (form[:1].isspace(), form[-1:].isspace()) not in edges:
            return "has space at an end where the original has none, or none where it has"
    return ""


def faults(language: str, said: list[Said]) -> list[str]:
    """Return the missing strings of a language and the faults of others, a line each."""
    has = {(entry.msgctxt, entry.msgid): entry for entry in read(language)}
    forms = [*range(int(PLURALS[language][9]))]
    lines = []
    for each in said:
        entry = has.get((each.context, each.one))
        problem = (
            wrong(entry)
            if entry and bool(entry.msgid_plural) == bool(each.many)
            else "is not in the catalogue"
        )
        if not problem and entry and entry.msgid_plural and sorted(entry.msgstr_plural) != forms:
            problem = "has not as many plural forms as its language"
        if problem:
            lines.append(f"{each.where}: {each.one!r} {problem}")
    return lines


def main(arguments: list[str]) -> int:
    said = collected()
    if arguments[:1] == ["--missing"]:
        found = {language: faults(language, said) for language in arguments[1:] or PLURALS}
        for language, lines in found.items():
            print(*lines, f"{language}: {len(lines)} of {len(said)} to be done", sep="\n")
        return 1 if any(found.values()) else 0
    for language in PLURALS:
        merge(language, said)
    print(f"{len(said)} strings in {len(PLURALS)} languages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
