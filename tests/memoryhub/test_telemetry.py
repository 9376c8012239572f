"""onnxruntime sends telemetry unless a variable is set before it is loaded: every process sets it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspaces.documents.reading.parent_process import _environment

ROOT = Path(__file__).resolve().parents[2]
SAY = "import os, sys; sys.stdout.write(os.environ.get('ORT_DISABLE_TELEMETRY', 'unset'))"


@pytest.mark.parametrize("module", ["memoryhub.llm.bert", "memoryhub.asgi", "memoryhub.local.model_server"])
def test_loading_any_part_of_ours_turns_telemetry_off(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    program = f"import importlib.util; importlib.import_module({module!r}); {SAY}"
    ended = subprocess.run(
        [sys.executable, "-c", f"import importlib; {program}"],
        cwd=ROOT,
        env=environment | {"DJANGO_SETTINGS_MODULE": "memoryhub.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "1"


def test_the_reader_of_documents_gets_it_too() -> None:
    assert _environment()["ORT_DISABLE_TELEMETRY"] == "1"
