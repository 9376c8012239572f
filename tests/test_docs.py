"""The docs name only existing commands, options, modules, paths, settings and links.

The examples of docs/api.md are run, whole, by test_api_docs.py; those of programs by tests/programs; commands by
verification/test_commands_of_docs.py, which lists the exceptions with their reasons.
"""

import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from django.core.management import BaseCommand, CommandError, get_commands, load_command_class
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.verification.faults import FAULTS, HERE, table

ROOT = Path(__file__).resolve().parent.parent
APPS = ("memoryhub", "workspaces", "memories", "chat")
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "client/README.md")]
    + list((ROOT / "docs").rglob("*.md"))
)
RUN_ELSEWHERE = {"docs/api.md"}
# Other programs, which a reader has, or which the docs say how to get.
OTHERS = {
    "apt-get", "cd", "docker", "export", "git", "haproxy", "kubectl", "npm", "npx", "pg_basebackup", "pg_ctl",
    "pg_rewind", "pip", "pre-commit", "promtool", "psql", "sh", "systemctl", "systemd-analyze",
}  # fmt: skip
OURS = re.compile(
    r"^(\w+=\S+ )*(make|(\S*/)?python3?|pytest|promtool|docker|kubectl|(\.venv/bin/python )?manage\.py) \S"
)
SETTING = re.compile(r"\b(?:MEMORYHUB_[A-Z0-9_]*[A-Z0-9]|DATABASE_URL)\b")
HOUSE = "memoryhub|workspaces|memories|chat|tests|deploy|docs|static|templates|client|requirements"
PATH = re.compile(rf"^(?:{HOUSE})(?:/[\w.-]+)+/?$|^[\w.-]+\.(?:md|toml)$")
NO_MODULES = {"venv", "pip", "timeit", "pytest"}  # third-party modules run by -m


@dataclass(frozen=True)
class Line:
    page: str
    text: str
    is_mention: bool  # in a sentence, which may name a command alone

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


@cache
def tokens_of(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def inlines(page: Path, kind: str) -> Iterator[Token]:
    for token in tokens_of(page):
        yield from (child for child in token.children or () if child.type == kind)


def lines() -> Iterator[Line]:
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for token in tokens_of(page):
            is_shell = (token.type == "fence" and token.info == "sh") or token.type == "code_block"
            if is_shell and name not in RUN_ELSEWHERE:
                for text in token.content.replace("\\\n", " ").splitlines():
                    if shlex.split(text, comments=True):
                        yield Line(name, text, is_mention=False)
        for code in inlines(page, "code_inline"):
            if OURS.match(code.content):
                yield Line(name, code.content, is_mention=True)


def commands(line: Line) -> Iterator[list[str]]:
    """Yield each command of a line, without assignments before it, including its optional parts."""
    text = re.sub(r"<[\w ]+>", "PLACE", re.sub(r"[\[\]]|(?<=\w) …", "", line.text))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word == ">":
            continue  # a file of the reader's
        if word in {"&&", "||", "|", ";", "&"}:
            while words and re.match(r"\w+=", words[0]):
                words.pop(0)
            if words:
                yield words
            words = []
        else:
            words.append(word)


ALL = [(line, words) for line in lines() for words in commands(line)]


def wrong_with(line: Line, words: list[str]) -> str:
    """Return the fault of a command as a sentence, or an empty string."""
    program, *rest = words
    if re.search(r"(^|/)python3?$", program) and rest and rest[0] == "manage.py":
        program, *rest = rest
    if program == "manage.py":
        return wrong_with_manage(line, rest)
    if program == "make":
        return wrong_with_make(rest)
    if program == "pytest" or (rest[:2] == ["-m", "pytest"]):
        return missing_paths(rest)
    if re.search(r"(^|/)python3?$", program):
        return wrong_with_python(rest)
    if Path(program).name in OTHERS:
        return missing_paths(rest)
    return f"{program} is no command that a reader can be expected to have"


def wrong_with_manage(line: Line, rest: list[str]) -> str:
    name, *arguments = rest
    known: dict[str, BaseCommand | str] = get_commands()
    if name.endswith("…"):
        return "" if any(each.startswith(name[:-1]) for each in known) else f"no command begins with {name}"
    if name not in known:
        return f"there is no manage.py {name}"
    if (line.is_mention and not arguments) or arguments == ["--only"]:
        return ""
    app = known[name]
    command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    try:
        command.create_parser("manage.py", name).parse_args(arguments)
    except CommandError as error:
        return str(error)
    return ""


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def wrong_with_make(rest: list[str]) -> str:
    for word in rest:
        name, is_value, value = word.partition("=")
        if not re.search(rf"^{name}\s*\??=" if is_value else rf"^{name}:", makefile(), re.MULTILINE):
            return f"the Makefile has no {name}"
        if name == "T" and is_value and (trouble := missing_paths([value])):
            return trouble
    return ""


def wrong_with_python(rest: list[str]) -> str:
    """Check that modules and scripts exist, and that options are in their source."""
    if rest[0] == "-m":
        if rest[1] in NO_MODULES:
            return ""
        found = find_spec(rest[1])
        if found is None or found.origin is None:
            return f"there is no module {rest[1]}"
        source, arguments = Path(found.origin), rest[2:]
    else:
        source, arguments = ROOT / rest[0], rest[1:]
        if not source.is_file():
            return f"there is no {rest[0]}"
    options = [word.split("=")[0] for word in arguments if word.startswith("--")]
    unknown = [each for each in options if f'"{each}"' not in source.read_text()]
    return f"{source.name} knows no {', '.join(unknown)}" if unknown else ""


def missing_paths(words: list[str]) -> str:
    missing = [word for word in words if PATH.match(word) and not (ROOT / word.split("::")[0]).exists()]
    return f"there is no {', '.join(missing)}" if missing else ""


def test_every_command_can_be_typed() -> None:
    assert len(ALL) > 120
    wrong = [f"{line}: {trouble}" for line, words in ALL if (trouble := wrong_with(line, words))]
    assert wrong == []


def test_a_command_that_cannot_is_found() -> None:
    for text in (
        "make lunch",
        "make test U=tests",
        "make test T=tests/nowhere.py",
        "manage.py bakup",
        "manage.py backup",
        "manage.py restore --drll x.zip",
        "manage.py up --only moddel",
        "python manage.py backup --encrypt many",
        "python -m tests.bench.bench_lunch",
        "python -m tests.messages --lunch",
        "python tests/bench/bench_lunch.py",
        "pytest tests/nowhere.py",
        "promtool test rules deploy/nowhere.yml",
        "lunch --now",
        ".venv/bin/lunch",
    ):
        line = Line("a page", text, is_mention=False)
        assert any(wrong_with(line, words) for words in commands(line)), text


def test_make_itself_knows_what_it_is_asked_for() -> None:
    asked = {tuple(words[1:]) for _, words in ALL if words[0] == "make"}
    targets = {word for words in asked for word in words if "=" not in word}
    assert {"run", "test", "quick", "lock", "docs-site"} <= targets
    done = subprocess.run(
        ["make", "-n", *sorted(targets)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_every_setting_that_is_named_is_one() -> None:
    known = set(SETTING.findall((ROOT / "docs/options.md").read_text()))
    gone = set(SETTING.findall((ROOT / "docs/upgrading.md").read_text().split("## What is gone")[1]))
    of_clients = {"MEMORYHUB_KEY", "MEMORYHUB_URL"}  # of clients, which are other programs
    for page in PAGES:
        named = {name.removesuffix("_FILE") for name in SETTING.findall(page.read_text())}
        families = {name for name in named if any(other.startswith(f"{name}_") for other in known)}
        assert named - known - gone - of_clients - families == set(), page.name


def test_every_file_and_test_that_is_named_is_there() -> None:
    tests = set(
        re.findall(r"def (test_\w+)", "\n".join(path.read_text() for path in ROOT.glob("tests/**/*.py")))
    )
    missing = []
    for page in PAGES:
        if page.name == "CHANGELOG.md" or page.parent.name == "decisions":
            continue  # a record of its time
        for code in inlines(page, "code_inline"):
            text = code.content.rstrip("/")
            gone = PATH.match(text) and not any((folder / text).exists() for folder in (ROOT, page.parent))
            if gone or (re.fullmatch(r"test_\w+", text) and text not in tests):
                missing.append(f"{page.name}: {text}")
    assert missing == []


def test_decisions_fit_a_screen_and_are_numbered_without_a_gap_and_listed_in_the_index() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    numbers = [int(path.name[:4]) for path in records]
    assert numbers == [*range(1, len(records) + 1)]
    assert [
        path.name for path in records if not path.read_text().startswith(f"# {int(path.name[:4])}. ")
    ] == []
    long = [path.name for path in records if sum(-(-len(line) // 160) or 1 for line in path.open()) > 50]
    assert long == []
    index = ROOT / "docs" / "decisions" / "README.md"
    assert list(links(index)) == [path.name for path in records]
    naming = re.compile(r"decisions/(\d{4})|\((00\d\d)\)|\bdecision (\d+)\b")
    read = [*PAGES, *(path for app in APPS for path in (ROOT / app).rglob("*.py"))]
    named = {(path.name, int(max(found))) for path in read for found in naming.findall(path.read_text())}
    assert {each for each in named if each[1] not in numbers} == set()


def anchors(page: Path) -> tuple[set[str], set[str]]:
    """Return the anchors of a page's headings, as code hosts and as the site's builder make them."""
    tokens = tokens_of(page)
    hosts, site = set(), set()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in tokens[number + 1].children or ())
            hosts.add(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-"))
            plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
            site.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    named = set(re.findall(r'<a id="([\w-]+)"></a>', page.read_text()))
    hosts, site = hosts | named, site | named
    return hosts, site


def links(page: Path) -> Iterator[str]:
    yield from (str(token.attrs["href"]) for token in inlines(page, "link_open"))
    yield from (str(token.attrs["src"]) for token in inlines(page, "image"))


def test_no_page_was_left_in_the_middle_of_a_merge() -> None:
    marked = [page.name for page in PAGES if re.search(r"^(<{7}|={7}|>{7})", page.read_text(), re.MULTILINE)]
    assert marked == []


def test_links_lead_somewhere_in_the_checkout_and_in_the_site() -> None:
    seen, wrong = 0, []
    for page in PAGES:
        for link in links(page):
            if re.match(r"https?:|mailto:", link):
                continue
            seen += 1
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and not all(anchor in each for each in anchors(target))):
                wrong.append(f"{page.name}: {link}")
    assert seen > 60
    assert wrong == []


def test_the_site_is_built_without_a_warning_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "deploy/docs-site/mkdocs.yml", "-d"]
    done = subprocess.run([*build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    fetched = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?([^"'\s>]+)|<link[^>]*\shref=["']?([^"'\s>]+)"""
    )
    for page in pages:
        found = [one or other for one, other in fetched.findall(page.read_text())]
        assert found
        for address in found:
            assert not re.match(r"(https?:)?//", address), f"{page.name} fetches {address}"
            assert (page.parent / address.split("?")[0].split("#")[0]).exists() or address.startswith("/"), (
                address
            )
    styles = "".join(path.read_text() for path in tmp_path.rglob("*.css"))
    assert not re.search(r"url\(['\"]?(https?:)?//|@import\s+(url\()?['\"]?(https?:)?//", styles)


def test_what_is_survived_is_what_its_tests_print() -> None:
    assert f"\n{table()}\n" in (ROOT / "docs" / "operations.md").read_text()
    for test in {test for fault in FAULTS for test in fault.shown_by}:
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / HERE / file).read_text(), "a test of that name is there"
