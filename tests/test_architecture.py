"""The house keeps its shape: one direction, dotted paths that lead somewhere, one writer, prompts in their place."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from graphlib import CycleError, TopologicalSorter
from io import StringIO
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

from chat.modes.check import memories_beside
from chat.prompting.short_term import recent, short_term_for
from memories.recalling.recall import recall
from memories.recalling.workspace_search import search_workspace
from tests.attacks import KINDS
from workspaces.index.embedding import embed_one, embed_texts
from workspaces.leaving_machine import Reach

ROOT = Path(__file__).resolve().parent.parent
APPS = ("memoryhub", "workspaces", "memories", "chat")
SOURCES = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]


def test_imports_keep_the_one_direction() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@cache
def _imports() -> dict[str, set[str]]:
    """Which file imports which, of all four apps: at the top, inside functions, and by names in strings."""
    files = {_module(path): path for path in SOURCES}
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text())
        typing_only = {
            node
            for guard in ast.walk(tree)
            if isinstance(guard, ast.If) and "TYPE_CHECKING" in ast.unparse(guard.test)
            for node in ast.walk(guard)
        }
        named: set[str] = set()
        for node in ast.walk(tree):
            if node in typing_only:
                continue
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                room = ".".join([*above, *filter(None, [node.module])])
                named |= {
                    f"{room}.{alias.name}" if f"{room}.{alias.name}" in files else room
                    for alias in node.names
                }
        found[module] = {name for name in named if name in files and name != module}
    return found


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_two_files_import_each_other_in_a_circle() -> None:
    sorter = TopologicalSorter(_imports())
    try:
        sorter.prepare()
    except CycleError as circle:
        pytest.fail(f"a circle of files: {' imports '.join(reversed(circle.args[1]))}")


def test_no_file_imports_from_above() -> None:
    order = {app: floor for floor, app in enumerate(APPS)}
    upward = [
        f"{module} imports {name}"
        for module, names in _imports().items()
        for name in names
        if order[name.split(".")[0]] > order[module.split(".")[0]]
    ]
    assert upward == []


def test_the_project_names_no_app_but_where_django_mounts_them() -> None:
    """The settings and the addresses list the apps, as Django wants it; nothing else of ``memoryhub`` knows one."""
    named = re.compile(r"""["'](workspaces|memories|chat)\.[a-z_]+""")
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if path.parts[len(ROOT.parts)] == "memoryhub" and named.search(path.read_text())
    }
    assert knowing <= {"memoryhub/settings.py", "memoryhub/urls.py"}


@pytest.mark.parametrize("app", APPS)
def test_a_hall_is_short(app: str) -> None:
    """A wing for what belongs together, not twenty files side by side."""
    files = [path.name for path in (ROOT / app).glob("*.py") if path.name != "__init__.py"]
    most = 25 if app == "memoryhub" else 12
    assert len(files) <= most, files


def test_every_queued_job_resolves() -> None:
    paths = {
        path
        for source in SOURCES
        for path in re.findall(r'"((?:memories|chat|workspaces)\.tasks\.\w+)"', source.read_text())
    }
    assert paths >= {"memories.tasks.embed_memories", "memories.tasks.extract_turn", "chat.tasks.sweep"}
    assert all(callable(import_string(path)) for path in paths)


def test_only_the_gate_inserts_memories() -> None:
    writers = {
        source.relative_to(ROOT).as_posix()
        for source in SOURCES
        if re.search(r"\bMemory(\.objects\.(bulk_)?create|\()", source.read_text())
    }
    assert writers == {"memories/writing/gate.py", "memories/models/memory.py"}


@pytest.mark.parametrize("folder", ["memoryhub/llm", "memoryhub/local"])
def test_model_and_process_rooms_know_no_tables(folder: str) -> None:
    for source in (ROOT / folder).rglob("*.py"):
        assert "django.db" not in source.read_text(), source


def test_migrations_say_what_the_models_say(db: None) -> None:
    from django.core.management import call_command

    said = StringIO()
    call_command("makemigrations", "--dry-run", stdout=said)
    assert said.getvalue().strip() == "No changes detected"


def test_the_sprite_has_the_icons_that_are_named_and_no_others() -> None:
    drawn = set(re.findall(r'<symbol id="([\w-]+)"', (ROOT / "static/vendor/icons.svg").read_text()))
    pages = "".join(page.read_text() for page in (ROOT / "templates").rglob("*.html"))
    named = set(re.findall(r'{% icon "([\w-]+)"', pages))
    assert named <= drawn
    code = pages + "".join(source.read_text() for source in [*SOURCES, *(ROOT / "static/js").glob("*.js")])
    assert {icon for icon in drawn if not re.search(rf"""["'#]{icon}["']""", code)} == set()


@pytest.mark.parametrize(
    "function",
    [recall, search_workspace, embed_texts, embed_one, short_term_for, recent, memories_beside],
    ids=lambda function: function.__name__,
)
def test_what_may_leave_is_said_by_every_caller(function: Callable[..., object]) -> None:
    """One value, and no default on the unsafe side: a caller that forgets it is an error, not a leak."""
    named = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name in {"reach", "reaches"}
    }
    assert len(named) == 1
    assert all(parameter.default is inspect.Parameter.empty for parameter in named.values())
    assert all(field.default is MISSING for field in fields(Reach))


def test_every_family_of_attacks_is_somewhere() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    lost = [start for start in KINDS if not any(name.startswith(start.split("::")[0]) for name in files)]
    assert lost == []
