#!/usr/bin/env python
"""Django's command line for MemoryHub."""

import gc
import os
import signal
import sys

SET_UP_BY_DJANGO = ("--settings", "--pythonpath")  # which it reads first


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    gc.disable()  # what is loaded stays: to look through it for garbage took a sixth of the start
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        if not any(each.startswith(SET_UP_BY_DJANGO) for each in sys.argv):
            django.setup()
        gc.freeze()
        gc.enable()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"MemoryHub did not start. {error}")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None):
            raise  # the database answered: this is no matter of reaching it
        sys.exit(f"The database cannot be reached. Is MemoryHub running (make run)?\n{error}")
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
