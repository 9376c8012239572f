"""The architecture: no circle of imports, valid dotted paths, time passed in. ``make lint`` checks their direction."""

import ast
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from io import StringIO
from pathlib import Path

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddIndex, CreateModel
from django.utils.module_loading import import_string

from tests.attacks import KINDS
from tests.imports import APPS, ROOT, circles, imports, parsed, sources
from workspaces.data_policy import DataPolicy

SOURCES = sources()


def test_no_two_files_import_each_other_in_a_circle() -> None:
    assert circles(imports()) == []


def test_a_circle_is_seen(tmp_path: Path) -> None:
    """It is found at the end of a chain, inside a function, and as a relative import as well."""
    for name, text in {
        "memoryhub/ids.py": "def make():\n    from workspaces import access\n",
        "workspaces/access.py": "from workspaces.models import users\n",
        "workspaces/models/__init__.py": "",
        "workspaces/models/users.py": "from . import places\n",
        "workspaces/models/places.py": "def load():\n    import workspaces.access\n",
        "memories/gate.py": "import workspaces.access\n",
        "chat/turn.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import chat.stream\n",
        "chat/stream.py": "import chat.turn\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tied = {"workspaces.access", "workspaces.models.users", "workspaces.models.places"}
    assert circles(imports(tmp_path)) == [tied]


def test_the_map_in_contributing_names_twenty_files_and_what_they_alone_define() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| [^|`]+ \| `([^`]+)` \| `(\w+)` \|$", text, re.MULTILINE)
    files = {name: file for file, name in rows}
    assert len(files) == 20
    defined: dict[str, list[str]] = {name: [] for name in files}
    for path in SOURCES:
        for node in parsed(path).body:
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                and node.name in defined
            ):
                defined[node.name].append(path.relative_to(ROOT).as_posix())
    assert defined == {name: [file] for name, file in files.items()}


def test_docstrings_name_files_that_are_there() -> None:
    """``a.file.of_the_project`` in double backticks, or a name inside one."""
    named = re.compile(rf"``((?:{'|'.join(APPS)})(?:\.[a-z]\w*)+)(?<!\.json)(?:\.[A-Z]\w*)?``")
    said = {(path, name) for path in SOURCES for name in named.findall(path.read_text())}
    assert len(said) > 40
    assert [(path.name, name) for path, name in said if not _is_there(ROOT, name.split("."))] == []


def _is_there(place: Path, names: list[str]) -> bool:
    name, *more = names
    if (place / name).is_dir():
        return not more or _is_there(place / name, more)
    inside = place / "__init__.py" if not (place / f"{name}.py").is_file() else place / f"{name}.py"
    wanted = name if inside.name == "__init__.py" else more[0] if more else ""
    return inside.is_file() and wanted in inside.read_text()


def test_the_project_names_no_app_but_where_django_mounts_them() -> None:
    """The settings and the URLs list the apps, as Django needs them; nothing else of ``memoryhub`` refers to one."""
    named = re.compile(
        r"""["'](workspaces|memories|chat)\.\w+|get_model\(\s*["'](workspaces|memories|chat)"""
    )
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if path.parts[len(ROOT.parts)] == "memoryhub" and named.search(path.read_text())
    }
    assert knowing <= {
        "memoryhub/settings/accounts.py",
        "memoryhub/settings/web.py",
        "memoryhub/settings/storage.py",
        "memoryhub/urls.py",
    }


def test_nothing_else_reaches_up_by_a_name() -> None:
    """A model by its label or a table in SQL is an import without a contract: these files have a reason."""
    reaching: dict[str, set[str]] = {}
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        above = APPS[APPS.index(name.partition("/")[0]) + 1 :]
        rooms = "|".join(above) or "-"
        asked = rf"""(?:get_model|import_module|import_string)\(\s*["']({rooms})"""
        in_sql = rf"\b(?:FROM|JOIN|INTO|UPDATE)\s+({rooms})_\w"
        if found := set(re.findall(asked, path.read_text()) + re.findall(in_sql, path.read_text())):
            reaching[name] = found
    assert reaching == {
        "memoryhub/backup/restore.py": {"workspaces"},
        "memoryhub/management/commands/doctor.py": {"workspaces"},
        "memoryhub/http/health.py": {"workspaces"},
        "memories/recalling/recall.py": {"chat"},
        "workspaces/api/workspaces.py": {"memories"},
    }


def test_an_app_has_few_files_beside_its_packages() -> None:
    """A package for related files, instead of twenty files side by side."""
    for app in APPS:
        files = [path.name for path in (ROOT / app).glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= (18 if app == "memoryhub" else 12), files


def test_nothing_else_asks_which_mode_an_answer_is_made_in() -> None:
    """A mode is one class; a choice of texts may check a property of the mode."""
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if path.is_relative_to(ROOT / "chat")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Compare | ast.MatchValue)
        if re.search(r"\bMode\.[A-Z]|\.mode (==|!=|in) ['(]", ast.unparse(node))
    }
    assert asking == {"chat/modes/registry.py", "chat/models/answer_steps.py"}


# Long-running: the time differs at each step.
LONG = {
    "chat/runs": {"transitions", "worker", "workspace_tools"},
    "chat/import_export": {"import_jobs"},
    "chat": {"answer_steps"},
    "chat/modes": {"deep_think", "research"},
    "chat/tools": {"loop"},
    "chat/turns": {"prepare", "stream", "turn"},
    "memories/forgetting": {"clear", "for_good"},
    "memoryhub/backup": {"archive"},
    "workspaces/documents": {"reading_jobs"},
    "workspaces/accounts": {"unsent_mail"},
    "workspaces/index": {"reembedding"},
    "workspaces/webhooks": {"sending"},
}
# Called by all endpoints, after a commit or beside a model's call: the time is not the caller's.
STAMPS = {
    "memories": {"access"},
    "memories/models": {"memory"},
    "memories/writing": {"drafts_from_turns", "gate"},
    "memoryhub/http": {"health"},
    "memoryhub/llm": {"openai_errors"},
    "workspaces": {"audit"},
    "workspaces/accounts": {"invitations", "sessions", "sign_in"},
    "workspaces/index": {"embedding"},
    "workspaces/spending": {"usage_records"},
    "workspaces/webhooks": {"hooks"},
}
DOORS = re.compile(r"/(pages|views|api|admin|management|rest|programs|templatetags|tasks|\w+_views)\b")


def test_time_is_passed_in_but_to_what_is_listed() -> None:
    asking: dict[str, set[str]] = {}
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        if re.search(r"\b(timezone|datetime)\.now\(", path.read_text()) and not DOORS.search(name):
            asking.setdefault(name.rpartition("/")[0], set()).add(path.stem)
    assert asking == {folder: LONG.get(folder, set()) | STAMPS.get(folder, set()) for folder in LONG | STAMPS}


def test_every_queued_job_resolves() -> None:
    paths = {
        path
        for source in SOURCES
        for path in re.findall(r'"((?:memories|chat|workspaces)\.tasks\.\w+)"', source.read_text())
    }
    assert paths >= {"memories.tasks.embed_memories", "memories.tasks.extract_turn", "chat.tasks.sweep"}
    assert all(callable(import_string(path)) for path in paths)


def test_models_and_processes_know_no_tables() -> None:
    for source in SOURCES:
        if source.is_relative_to(ROOT / "memoryhub/llm") or source.is_relative_to(ROOT / "memoryhub/local"):
            assert "django.db" not in source.read_text(), source


def test_indexes_of_tables_that_stand_are_built_beside_readers_and_writers() -> None:
    """A plain CREATE INDEX blocks every writer of the table until it is done."""
    locking = set()
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        made = {each.name.lower() for each in migration.operations if isinstance(each, CreateModel)}
        for each in migration.operations if app in APPS else ():
            if type(each) is AddIndex and each.model_name.lower() not in made:
                locking.add((app, name))
            if isinstance(each, AddIndexConcurrently):
                assert not migration.atomic, name
    assert locking == set()


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


def test_what_may_leave_is_said_by_every_caller() -> None:
    """A required value without an unsafe default: omitting it is an error, not a leak. Only ``DataPolicy``'s own
    constructors create it.
    """
    asking, silent, making = set[str](), set[str](), set[str]()
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            for annotation, has_default in _annotated(node):
                if re.search(r"\bDataPolicy\b", annotation):
                    (silent if has_default else asking).add(path.stem)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "DataPolicy":
                making.add(path.stem)
    assert {"recall", "embedding", "hybrid_search", "sources", "deep_think", "data_policy"} <= asking
    assert silent == making == set()
    assert all(field.default is MISSING for field in fields(DataPolicy))


def _annotated(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the annotation of each parameter or field that this declares, and whether it has a default."""
    if isinstance(node, ast.AnnAssign):
        yield ast.unparse(node.annotation), node.value is not None
    elif isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        without = len(named) - len(node.defaults)
        defaults = [number >= without for number in range(len(named))] + [
            each is not None for each in node.kw_defaults
        ]
        for each, has_default in zip([*named, *node.kwonlyargs], defaults, strict=True):
            if each.annotation is not None:
                yield ast.unparse(each.annotation), has_default


def test_every_family_of_attacks_is_somewhere() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    lost = [start for start in KINDS if not any(name.startswith(start.split("::")[0]) for name in files)]
    assert lost == []
