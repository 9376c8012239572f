"""Run a benchmark that is written as a management command but is not part of the product.

python -m tests.bench.command bench_scale --memories 1000000 --workspaces 1000
"""

import os
import sys
from importlib import import_module

import django


def main() -> None:
    name = sys.argv[1]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    command = import_module(f"tests.bench.{name}").Command()
    command.run_from_argv(["manage.py", name, *sys.argv[2:]])


if __name__ == "__main__":
    main()
