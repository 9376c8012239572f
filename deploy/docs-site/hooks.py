"""Pages of the site from outside docs/: the README as its first page, CONTRIBUTING, the changelog, the client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "client/README.md": "client.md",
    "LICENSE": "licence.md",
}
LINK = re.compile(r"\]\((?P<to>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for source, page in PAGES.items():
        text = _linked((ROOT / source).read_text(), Path(source).parent)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links of the docs to what lies outside them."""
    if page.file.generated_by is not None:
        return markdown
    return LINK.sub(
        lambda link: _to(link, Path("docs") / Path(page.file.src_uri).parent, page.file.src_uri), markdown
    )


def _linked(text: str, folder: Path) -> str:
    return LINK.sub(lambda link: _to(link, folder, "index.md"), text)


def _to(link: re.Match[str], folder: Path, from_page: str) -> str:
    """The same link as it is in the site, whose root is docs/."""
    target = (ROOT / folder / link["to"]).resolve().relative_to(ROOT).as_posix()
    found = PAGES.get(target) or target.removeprefix("docs/")
    if found == target:
        return link[0]  # to what the site does not have: its build says so
    up = "../" * from_page.count("/")
    return f"]({up}{found}{link['anchor'] or ''})"
