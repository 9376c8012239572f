"""Commands as somebody types them, one after the other in one process: each line of the input is one's words, as JSON.

    python -m tests.typed

Each is answered by a line with its status and what it said. To start a process for each would take two seconds more.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO


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
