"""Run `manage.py` commands one after the other in one process: each input line is a command's words as JSON.

    python -m tests.typed

Each is answered by a line with its status and output. A process for each would take two seconds more.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Typist:
    """Runs commands of `manage.py` in one process with these environment variables."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        command = [sys.executable, "-m", "tests.typed"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, env=self.env, stdin=pipe, stdout=pipe, text=True)

    def type(self, *words: str) -> tuple[int, str]:
        """Run a command. Return its status and output."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(words), file=self.process.stdin, flush=True)
        status, said = json.loads(self.process.stdout.readline())
        return status, said

    def leave(self) -> None:
        self.process.communicate()


def typed(commands: Iterable[list[str]], env: Mapping[str, str]) -> list[tuple[int, str]]:
    """Run each command of `manage.py` in one process with these variables. Return the statuses and outputs."""
    typist = Typist(env)
    try:
        return [typist.type(*words) for words in commands]
    finally:
        typist.leave()


def main() -> None:
    sys.argv = ["manage.py"]  # by which the settings recognize a command
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    from django.core.management import execute_from_command_line

    for line in sys.stdin:
        said = StringIO()
        status: object = 0
        with redirect_stdout(said), redirect_stderr(said):
            try:
                execute_from_command_line(["manage.py", *json.loads(line)])
            except SystemExit as ended:
                status = ended.code or 0
            except Exception:
                traceback.print_exc()
                status = 1
        print(json.dumps([status, said.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
