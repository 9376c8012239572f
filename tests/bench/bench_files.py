"""What reading makes of real files: pages, passages, seconds, and which words of them are lost.

    python -m tests.bench.bench_files FOLDER [--most 30]

Of the files below the folder that are of a kind that is read, as many of each kind as fit into ``--most``, the largest
first. Each goes through the process that reads it in the product. Lost are words of four letters and more that plainer
means find in the file (the text of all XML in an archive, of HTML without its tags, PDF by ``pdftotext`` where it is
installed) and that are in none of the passages; where those find nothing to compare with, it says "-".
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

import django

KINDS = {".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".epub", ".eml", ".html", ".md", ".csv", ".json", ".rst", ".txt",
         ".py", ".png", ".jpg"}  # fmt: skip
MOST_BYTES = 20_000_000
# Of an archive, the parts that a reader sees; not styles, settings and what the program notes of itself.
PARTS = re.compile(
    r"word/document\.xml|ppt/(slides|notesSlides)/\w+\.xml|xl/(sharedStrings|worksheets/\w+)\.xml|content\.xml|.*\.x?html"
)
UNSEEN = re.compile(
    r"(?is)<(script|style|head|svg|template|noscript)\b.*?</\1>|<!--.*?-->|<!\[CDATA\[|<!DOCTYPE[^>]*>"
)


def chosen(folder: Path, most: int) -> list[Path]:
    """Of every kind in turn, the largest first."""
    by_kind: dict[str, list[Path]] = defaultdict(list)
    for path in folder.rglob("*"):
        if path.suffix.lower() in KINDS and path.is_file() and 0 < path.stat().st_size <= MOST_BYTES:
            by_kind[path.suffix.lower()].append(path)
    ordered = [
        sorted(paths, key=lambda path: (-path.stat().st_size, str(path))) for paths in by_kind.values()
    ]
    found = [path for path in chain.from_iterable(zip_longest(*ordered)) if path is not None]
    return sorted(found[:most], key=lambda path: (path.suffix, path.name))


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{4,}", text.casefold()))


def tagless(data: bytes) -> str:
    import html

    text = UNSEEN.sub(" ", data.decode(errors="replace"))
    return html.unescape(re.sub(r"</?(w:t|a:t|span|b|i|em|strong|code|a|text:span|text:s)\b[^>]*>", "", text))


def plainly(path: Path) -> set[str]:
    """The words that plainer means find."""
    kind, data = path.suffix.lower(), path.read_bytes()
    if kind == ".pdf":
        if shutil.which("pdftotext") is None:
            return set()
        done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, timeout=120, check=False)
        return words(done.stdout.decode(errors="replace").replace("-\n", ""))
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            parts = [archive.read(name) for name in archive.namelist() if PARTS.fullmatch(name)]
        return words(" ".join(re.sub(r"<[^>]*>", " ", tagless(part)) for part in parts))
    if kind == ".html":
        return words(re.sub(r"<[^>]*>", " ", tagless(data)))
    return set() if kind in (".png", ".jpg", ".eml") else words(data.decode(errors="replace"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=30, help="files (30)")
    asked = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    from workspaces.documents.cutting import passages_of
    from workspaces.documents.media import media_type
    from workspaces.documents.reading.process import SENTENCES, CouldNotRead, read_file

    print("| file | kB | pages | passages | seconds | words lost |\n|---|---|---|---|---|---|")
    for path in chosen(asked.folder, asked.most):
        with path.open("rb") as file:
            kind = media_type(path.name, file.read(512))
        began = time.perf_counter()
        try:
            passages = passages_of(read_file(path, kind).blocks)
            seconds = time.perf_counter() - began
            there = plainly(path)
            lost = there - words("".join(f"{each.heading} {each.text}" for each in passages))
            said = f"{len(lost)} of {len(there)}" if there else "-"
        except CouldNotRead as error:
            passages, said, seconds = [], str(SENTENCES[str(error)]), time.perf_counter() - began
        pages = max((each.page for each in passages), default=0)
        size = path.stat().st_size / 1000
        print(
            f"| {path.name} | {size:,.0f} | {pages or ''} | {len(passages)} | {seconds:.1f} | {said} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
