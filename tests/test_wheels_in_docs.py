"""docs/security.md lists for each installed wheel its possible and its observed connections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INSTALLED = ("base", "models", "tracing")
SECTION = re.compile(r"^### What a wheel could do\n(.*?)^## ", re.MULTILINE | re.DOTALL)
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==", re.MULTILINE)


def pinned() -> set[str]:
    return {
        name for each in INSTALLED for name in PINNED.findall((ROOT / f"requirements/{each}.txt").read_text())
    }


def rows_of(text: str) -> set[str]:
    """Return the wheels in the first column of the table of connections."""
    section = SECTION.search(text)
    assert section, "the section is there"
    _before, table = section[1].split("| wheels | runs in |")
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {name for first in firsts for name in re.findall(r"`([a-z0-9._-]+)`", first)}


def test_each_wheel_that_is_installed_has_a_row() -> None:
    rows = rows_of((ROOT / "docs/security.md").read_text()) - {"requirements/tracing.txt"}
    assert sorted(pinned() - rows) == [], "say in docs/security.md what it could do, and look what it does"
    assert sorted(rows - pinned()) == [], "it is not installed any more"


@pytest.mark.parametrize("name", ["kreuzberg", "json-repair"])
def test_a_wheel_without_a_row_is_found(name: str) -> None:
    without = (ROOT / "docs/security.md").read_text().replace(f"`{name}`", name)
    assert name in pinned() - rows_of(without)
