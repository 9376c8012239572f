"""Commands quoted from the docs, to run them as documented."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def documented(
    part: str, put_in: Mapping[str, str] | None = None, *, page: str = "docs/operations.md"
) -> list[str]:
    """Return the words of the one documented command that contains this part, without assignments before it.

    ``put_in`` replaces placeholders.
    """
    text = (ROOT / page).read_text().replace("\\\n", " ")
    (line,) = {line for line in re.findall(r"^ {4,}(\S.*)$", text, re.MULTILINE) if part in line}
    words = [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]
    for theirs, ours in (put_in or {}).items():
        words = [word.replace(theirs, ours) for word in words]
    return words


def statements(part: str, put_in: Mapping[str, str] | None = None) -> list[str]:
    """Return the statements of a line of psql."""
    words = documented(part, put_in)
    return [words[place + 1] for place, word in enumerate(words) if word == "-c"]
