"""A page's sheets and scripts are served as one; by themselves they must count on nothing but their order."""

from __future__ import annotations

import re

import pytest

from memoryhub.http.static_files import with_imports
from tests.stack import ROOT

JOINED = ("js/every-page.js", "js/conversation.js", "css/shell.css")


def test_what_is_imported_stands_in_its_place_and_each_script_keeps_its_names() -> None:
    parts = {"a.js": "const name = 1;", "b.js": "const name = 2;", "c.css": "a { color: red }"}
    script = with_imports('// Both.\nimport "./a.js";\nimport "./b.js";\n', parts.__getitem__)
    assert script == "// Both.\n{\nconst name = 1;\n}\n{\nconst name = 2;\n}\n"
    assert with_imports('@import "c.css";\n', parts.__getitem__) == "a { color: red }\n"
    assert with_imports('import "./a.js" with { type: "json" };', parts.__getitem__).startswith("import")


@pytest.mark.parametrize("name", JOINED)
def test_nothing_joined_imports_or_exports(name: str) -> None:
    folder = (ROOT / "static" / name).parent
    read: list[str] = []

    def note(part: str) -> str:
        read.append((folder / part).read_text())
        return read[-1]

    whole = with_imports((ROOT / "static" / name).read_text(), note)
    assert len(read) >= 5
    assert not re.search(r"^\s*(?:import|export)\b(?!\()|^@import|\bimport\.meta\b", whole, re.M)
