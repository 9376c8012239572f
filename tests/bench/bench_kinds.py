"""Measure the seconds for reading a document of 200 pages, by kind, in this and another checkout in turn.

    python -m tests.bench.bench_kinds [--beside FOLDER] [--pages 200] [--rounds 3]

Each file goes through the process that reads it in the product; of the rounds, the fastest counts.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import docx
import pptx
from openpyxl import Workbook

from tests.workspaces.documents.odd_office import odf, saved
from tests.workspaces.documents.samples import pdf_of_lines

LINES = 40  # a page
PROGRAM = (
    "import os, sys, time, pathlib; os.environ['DJANGO_SETTINGS_MODULE'] = 'memoryhub.settings'\n"
    "import django; django.setup()\n"
    "from workspaces.documents.files import media_type\n"
    "from workspaces.documents.reading.parent_process import CouldNotRead, read_file\n"
    "path = pathlib.Path(sys.argv[1]); began = time.perf_counter()\n"
    "kind = media_type(path.name, path.read_bytes()[:512])\n"
    "try: said = sum(len(each.text) for each in read_file(path, kind).blocks)\n"
    "except CouldNotRead as error: said = error\n"
    "print(f'{time.perf_counter() - began:.2f} {said}')"
)


def line(page: int, number: int) -> str:
    return f"Page {page}, line {number}: the depot keeps {page * number} barrels for keeper {number}."


def word(pages: int) -> bytes:
    made = docx.Document()
    for page in range(pages):
        made.add_heading(f"Section {page}", 1)
        for number in range(LINES):
            made.add_paragraph(line(page, number))
    return saved(made)


def slides(pages: int) -> bytes:
    made = pptx.Presentation()
    for page in range(pages):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = f"Slide {page}"
        slide.placeholders[1].text = "\n".join(line(page, number) for number in range(LINES))
    return saved(made)


def sheets(pages: int) -> bytes:
    book = Workbook()
    for page in range(pages):
        for number in range(LINES):
            book.active.append([page, number, line(page, number), page * number / 7])
    return saved(book)


def odt(pages: int) -> bytes:
    return odf(
        "text",
        "".join(
            f"<text:h text:outline-level='1'>Section {page}</text:h>"
            + "".join(f"<text:p>{line(page, number)}</text:p>" for number in range(LINES))
            for page in range(pages)
        ),
    )


def pdf(pages: int) -> bytes:
    return pdf_of_lines(*([line(page, number) for number in range(LINES)] for page in range(pages)))


def text(pages: int) -> bytes:
    out = io.StringIO()
    for page in range(pages):
        out.writelines(line(page, number) + "\n" for number in range(LINES))
    return out.getvalue().encode()


MADE: dict[str, Callable[[int], bytes]] = {
    "a.docx": word, "a.pptx": slides, "a.xlsx": sheets, "a.odt": odt, "a.pdf": pdf, "a.txt": text, "a.csv": text,
}  # fmt: skip


def once(checkout: Path, path: Path) -> tuple[float, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], cwd=checkout, capture_output=True, text=True, check=True
    )
    seconds, said = done.stdout.split(maxsplit=1)
    return float(seconds), said.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    checkouts = [Path(__file__).parents[2]] + ([asked.beside.resolve()] if asked.beside else [])
    print("| file | seconds here | characters |" + (" seconds beside | characters |" if asked.beside else ""))
    print("|---|---|---|" + ("---|---|" if asked.beside else ""))
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MADE.items():
            path = Path(folder) / name
            path.write_bytes(make(asked.pages))
            best: dict[Path, tuple[float, str]] = {}
            for _ in range(asked.rounds):
                for checkout in checkouts:
                    seconds, said = once(checkout, path)
                    best[checkout] = min(best.get(checkout, (time.monotonic(), "")), (seconds, said))
            cells = [f"{best[each][0]:.2f} | {best[each][1]}" for each in checkouts]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
