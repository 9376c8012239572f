"""docs/conformance.md: every difference has a reason and a test, and every tested one is listed."""

import re
from pathlib import Path

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


def test_each_difference_that_is_tested_is_on_the_page() -> None:
    for path in sorted(Path(__file__).parent.glob("test_0*.py")):
        differing = path.read_text().partition("What differs on purpose")[2]
        assert defined_in(differing) <= set(TEST.findall(PAGE)), path.name
