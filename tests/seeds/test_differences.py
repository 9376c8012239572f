"""docs/conformance.md: every difference has a reason and tests that exist."""

import re

from tests.seeds.shown_elsewhere import ROOT

PAGE = (ROOT / "docs/conformance.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| specification")
]
TEST = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^    (?:async )?def (test_\w+)|^(?:async )?def (test_\w+)", re.MULTILINE)


def defined_in(text: str) -> set[str]:
    return {inner or outer for inner, outer in DEFINED.findall(text)}


def test_each_difference_says_what_why_and_which_test_shows_it() -> None:
    every = {name for path in ROOT.glob("tests/**/test_*.py") for name in defined_in(path.read_text())}
    assert len(ROWS) >= 14
    for row in ROWS:
        assert len(row) == 4 and all(row), row
        assert TEST.findall(row[3]) and set(TEST.findall(row[3])) <= every, row
