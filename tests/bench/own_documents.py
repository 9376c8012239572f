"""This project's own documentation as one long document with questions: a text that no weight was chosen on.

    python -m tests.bench.own_documents > own.jsonl; python manage.py bench_documents own.jsonl

Each line of own_documents.tsv is a question, and the phrases with which its answer begins and ends. One whose phrases
are not there any more is left out, and said.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ASKED = Path(__file__).with_suffix(".tsv")
DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("operations", "security", "models", "options", "exchange", "page", "programs", "usage", "languages")
LONGEST = 1500  # characters of an answer: of more the phrases stand in two places


def own_document() -> dict[str, object]:
    text = "\n\n".join((DOCS / f"{name}.md").read_text() for name in NAMES)
    queries = []
    for line in ASKED.read_text().splitlines():
        question, *phrases = line.split("\t")
        first, last = (r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
        found = re.search(f"{first}.*?{last}", text, re.DOTALL)
        if found is None or len(found[0]) > LONGEST:
            print(f"Not answered any more: {question}", file=sys.stderr)
        else:
            queries.append({"text": question, "answers": [{"start": found.start(), "end": found.end()}]})
    return {"name": "own documentation", "text": text, "queries": queries}


if __name__ == "__main__":
    print(json.dumps(own_document(), ensure_ascii=False))
