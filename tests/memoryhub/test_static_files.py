"""A page's style sheets and scripts are served as one file each, and depend only on their order."""

import asyncio
import gzip
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoryhub.http.static_files import StaticFiles, with_imports
from tests.stack import ROOT

SHEET = b"a { color: red }\n" * 99
JOINED = ("js/every-page.js", "js/conversation.js", "css/shell.css")


def test_what_is_imported_stands_in_its_place_and_each_script_keeps_its_names() -> None:
    parts = {
        "a.js": "  // One.\nconst name = 1; // 1\n// End",
        "b.js": "const name = 2;",
        "c.css": "/* Red,\n   as ever. */\na { color: red /* red */ }",
    }
    script = with_imports('// Both.\nimport "./a.js";\nimport "./b.js";\n', parts.__getitem__)
    assert script == "// Both.\n{\nconst name = 1; // 1\n// End\n}\n{\nconst name = 2;\n}\n"
    assert with_imports('@import "c.css";\n', parts.__getitem__) == "a { color: red  }\n"
    assert with_imports('import "./a.js" with { type: "json" };', parts.__getitem__).startswith("import")


def read_noted(folder: Path, read: list[Path], part: str) -> str:
    read.append(folder / part)
    return read[-1].read_text()


def test_nothing_joined_imports_or_exports() -> None:
    for name in JOINED:
        path = ROOT / "static" / name
        read: list[Path] = []
        whole = with_imports(path.read_text(), partial(read_noted, path.parent, read))
        assert len(read) >= 5, name
        assert not re.search(r"^\s*(?:import|export)\b(?!\()|^@import|\bimport\.meta\b", whole, re.M), name


async def page(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "page"})


def ask(
    files: StaticFiles, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    said = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "method": method, "headers": [*said, (b"x-\xff", b"\xff")]}
    asyncio.run(files(scope, None, send))  # type: ignore[arg-type]  # nothing is received
    if sent[0]["type"] == "page":
        return 0, {}, b""
    assert len(sent) == 2
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.fixture
def files(settings: Any, tmp_path: Path) -> StaticFiles:
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "a.css").write_bytes(SHEET)
    (tmp_path / "a.css.gz").write_bytes(gzip.compress(SHEET))
    (tmp_path.parent / "secret.css").write_text("a { color: blue }")
    return StaticFiles(page)


def test_a_static_file_is_answered_before_a_page_is_looked_for(files: StaticFiles) -> None:
    status, headers, body = ask(files, "/static/a.css")
    assert (status, body) == (200, SHEET)
    assert headers[b"content-type"].startswith(b"text/css")
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"content-length"] == str(len(SHEET)).encode()

    packed, headers, body = ask(files, "/static/a.css", Accept_Encoding="gzip")
    assert (packed, headers[b"content-encoding"], gzip.decompress(body)) == (
        200,
        b"gzip",
        SHEET,
    )
    assert ask(files, "/static/a.css", If_None_Match=headers[b"etag"].decode())[::2] == (304, b"")
    assert ask(files, "/static/a.css", Range="bytes=0-2")[::2] == (206, b"a {")
    assert ask(files, "/static/a.css", "HEAD")[::2] == (200, b"")
    assert ask(files, "/static/a.css", "POST")[::2] == (405, b"")


def test_what_is_no_static_file_goes_on_to_the_pages(files: StaticFiles) -> None:
    for path in ("/", "/static/", "/static/b.css", "/static/../secret.css", "/static/a.css/", "/\0\ud800"):
        assert ask(files, path)[0] == 0
