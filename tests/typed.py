"""Commands as somebody types them, one after the other in one process: each line of the input is one's words, as JSON.

    python -m tests.typed

Each is answered by a line with its status and what it said. To start a process for each would take two seconds more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def typed(commands: Iterable[list[str]], env: Mapping[str, str]) -> list[tuple[int, str]]:
    """The status of each command of `manage.py` and what it said, all in one process with these variables."""
    lines = [json.dumps(words) for words in commands]
    command = [sys.executable, "-m", "tests.typed"]
    done = subprocess.run(command, cwd=ROOT, env=env, input="\n".join(lines), capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines), done.stderr
    return [(status, said) for status, said in answers]


def main() -> None:
    sys.argv = ["manage.py"]  # by which the settings know that a command runs
    os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    from django.core.management import execute_from_command_line

    for line in sys.stdin:
        said, status = StringIO(), 0
        with redirect_stdout(said), redirect_stderr(said):
            try:
                execute_from_command_line(["manage.py", *json.loads(line)])
            except SystemExit as ended:
                status = int(ended.code or 0)
        print(json.dumps([status, said.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
