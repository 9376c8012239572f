"""The house keeps its shape: one direction, dotted paths that lead somewhere, one writer, prompts in their place."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

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
