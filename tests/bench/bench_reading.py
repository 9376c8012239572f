"""Measure how soon an uploaded document is read, found by its words, and found by meaning (first and last passage).

    python -m tests.bench.bench_reading [FILE …] [--pages 200]

Without files, a PDF of so many pages: sentences of this project's documentation in random order, none of them twice on
neighbouring pages. Starts a web process and a worker in a temporary folder and uploads each file through the REST API.
The last figure compares with the bundled embedder alone, asked for the same texts in one process when all is done: the
part above 1 is the product's overhead.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as http
import psycopg

from memoryhub.llm.two_encoders import TwoEncoders
from memoryhub.local.postgres import connection_settings
from tests.stack import ROOT, running_stack, signed_up
from tests.workspaces.documents.samples import pdf_of_lines

LINES = 40  # lines of a page, some sixty characters each
BATCH = 64  # texts that the product embeds at once
EVERY = 0.1  # seconds between two checks
LONGEST = 900.0  # seconds that one file may take
_VECTORS = "SELECT count(*) FROM workspaces_passagevector WHERE kind = 2"
_TEXTS = "SELECT heading, text FROM workspaces_documentpassage WHERE workspace_id = %s ORDER BY number"


@dataclass
class FirstSeen:
    """The seconds from the upload until each state was first seen."""

    at: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def note(self, what: str) -> None:
        self.at.setdefault(what, time.perf_counter() - self.began)


def pages_of_chance(pages: int) -> bytes:
    text = " ".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    sentences = [" ".join(each.split()) for each in re.findall(r"[A-Z][^.|`]{40,300}\.", text)]
    chance, lines = random.Random(1), list[str]()
    while len(lines) < pages * LINES:
        chance.shuffle(sentences)
        lines += textwrap.wrap(" ".join(sentences).encode("ascii", "ignore").decode(), 62)
    return pdf_of_lines(*(lines[LINES * page : LINES * page + LINES] for page in range(pages)))


@contextmanager
def database(folder: Path) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(**connection_settings(folder), autocommit=True) as connection:  # type: ignore[arg-type]
        yield connection


def measure(person: http.Client, folder: Path, name: str, content: bytes) -> None:
    workspace = person.post("/chat/api/workspaces", json={"name": name}).json()["id"]
    path, seen = f"/chat/api/workspaces/{workspace}", FirstSeen()
    made = person.post(f"{path}/documents", files={"file": (name, content)})
    assert made.status_code == 201, made.text
    with database(folder) as connection:
        before = connection.execute(_VECTORS).fetchone()
        assert before is not None
        while "all" not in seen.at:
            assert time.perf_counter() - seen.began < LONGEST, f"{name} is not read: {seen.at}"
            time.sleep(EVERY)
            found = person.get(f"{path}/documents/{made.json()['id']}").json()
            assert found["status"] != "failed", found["error"]
            if found["status"] != "ready":
                continue
            seen.note("words")
            now = connection.execute(_VECTORS).fetchone()
            assert now is not None
            vectors = int(str(now[0])) - int(str(before[0]))
            if vectors:
                seen.note("first")
            if vectors >= found["passages"]:
                seen.note("all")
        number = connection.execute("SELECT max(workspace_id) FROM workspaces_documentpassage").fetchone()
        texts = ["\n".join(filter(None, map(str, row))) for row in connection.execute(_TEXTS, number)]
    alone = embedded_alone(texts)
    print(
        f"{name}: {found['pages']} pages, {found['characters']:,} characters, {found['passages']} passages; found by "
        f"words after {seen.at['words']:.1f} s, the first by meaning after {seen.at['first']:.1f} s, all after "
        f"{seen.at['all']:.1f} s; the embedder alone {alone:.1f} s, ratio {seen.at['all'] / alone:.2f}"
    )


def embedded_alone(texts: list[str]) -> float:
    embedder = TwoEncoders()
    embedder.embed(["Loaded with the first."])
    began = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        embedder.embed(texts[start : start + BATCH])
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, default=200, help="of the PDF that is made without files (200)")
    asked = parser.parse_args()
    brought = [(path.name, path.read_bytes()) for path in asked.files]
    with (
        tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as name,
        running_stack(folder := Path(name)) as stack,
    ):
        stack.worker()
        person = signed_up(stack.web(), "bench")
        for each, content in brought or [("pages.pdf", pages_of_chance(asked.pages))]:
            measure(person, folder, each, content)


if __name__ == "__main__":
    main()
