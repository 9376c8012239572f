"""Memories with the paragraphs they come from, as one long document for ``bench_documents``.

    python -m tests.bench.as_documents xquad_de.jsonl --every 10 > de.jsonl
    python -m tests.bench.command bench_documents de.jsonl
    python -m tests.bench.as_documents xquad_en.jsonl xquad_de.jsonl --asked xquad_de.jsonl    # asked in German

A line of the file is what ``manage.py bench_recall`` takes, each memory a sentence with its paragraph as ``source``.
The paragraphs follow one another, an empty line apart; a question's answers are the sentences that are relevant to it.
A sentence that its paragraph has not (XQuAD's longest are cut off in the file) stands after it. ``--asked`` takes the
questions of another file, which asks the same in the same order.
"""

import argparse
import json
from pathlib import Path
from typing import Any


def as_document(line: dict[str, Any], every: int, asked: dict[str, Any] | None = None) -> dict[str, Any]:
    text, begins, paragraph = "", 0, None
    places: dict[str, dict[str, int]] = {}
    for memory in line["memories"]:
        if memory["source"] != paragraph:
            paragraph = memory["source"]
            text += "\n\n" if text else ""
            begins = len(text)
            text += paragraph
        at = text.find(memory["text"], begins)
        if at < 0:
            at = len(text) + 1
            text += " " + memory["text"]
        places[memory["id"]] = {"start": at, "end": at + len(memory["text"])}
    queries = [
        {"text": said["text"], "answers": [places[each] for each in query["relevant"]]}
        for query, said in list(zip(line["queries"], (asked or line)["queries"], strict=True))[::every]
    ]
    name = f"{line['name']} {asked['name']}" if asked else line["name"]
    return {"name": name, "text": text, "queries": queries}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="of how many questions one is asked (1: all)")
    parser.add_argument("--asked", type=Path, help="the file whose questions are asked")
    given = parser.parse_args()
    asking = _lines(given.asked) if given.asked else []
    for path in given.files:
        for number, line in enumerate(_lines(path)):
            asked = asking[number] if asking else None
            print(json.dumps(as_document(line, given.every, asked), ensure_ascii=False))
