"""Convert public question sets about articles and reports to long documents for ``bench_documents``.

    python -m tests.bench.outside_documents 200423_covidQA.json tatqa_dataset_dev.json tatqa_dataset_test_gold.json

COVID-QA (deepset-ai/COVID-QA, Apache 2.0): medical articles, four documents of up to 300,000 characters; an answer is
the sentence that experts marked. TAT-QA (NExTplusplus/TAT-QA, MIT): pages of annual reports with tables, one document
a file; questions that the text answers, the answer being the sentence it stands in. The first two medical documents and
the reports' dev file have been looked at, the others were held back. For measuring only.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENTS, ASKED = 4, 150
CHARACTERS = 300_000  # of a medical document
LONGEST = 700  # characters of an answer
LEAST_WORDS = 8  # in a question about a report, since shorter ones do not identify it
_BETWEEN = re.compile(r"(?<=[.!?])\s+")


def sentence(text: str, start: int, end: int) -> dict[str, int]:
    """Return the position of the sentence or sentences around these characters."""
    begins = 0
    for between in _BETWEEN.finditer(text):
        if between.end() <= start:
            begins = between.end()
        elif between.start() >= end:
            return {"start": begins, "end": min(between.start(), begins + LONGEST)}
    return {"start": begins, "end": min(len(text), begins + LONGEST)}


def moved(answer: dict[str, int], by: int) -> dict[str, int]:
    return {name: place + by for name, place in answer.items()}


def medical(data: list[dict[str, Any]], rng: random.Random) -> Iterator[dict[str, Any]]:
    articles = [paragraph for article in data for paragraph in article["paragraphs"]]
    rng.shuffle(articles)
    for number in range(DOCUMENTS):
        text, queries = "", []
        while articles and len(text) + len(articles[0]["context"]) <= CHARACTERS:
            article = articles.pop(0)
            said = article["context"]
            text += "\n\n" if text else ""
            for asked in article["qas"]:
                for answer in asked["answers"][:1]:
                    start = answer["answer_start"]
                    where = sentence(said, start, start + len(answer["text"]))
                    queries.append({"text": asked["question"], "answers": [moved(where, len(text))]})
            text += said
        yield document(f"medical {number + 1}", text, queries, rng)


def reports(name: str, pages: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    text, queries = "", []
    for page in pages:
        text += "\n\n" if text else ""
        text += "\n".join(" | ".join(filter(None, row)) for row in page["table"]["table"])
        begins: dict[str, tuple[int, str]] = {}
        for paragraph in sorted(page["paragraphs"], key=lambda each: each["order"]):
            text += "\n\n"
            begins[str(paragraph["order"])] = len(text), paragraph["text"]
            text += paragraph["text"]
        for asked in page["questions"]:
            if asked["answer_from"] != "text" or len(asked["question"].split()) < LEAST_WORDS:
                continue
            said = asked["answer"] if isinstance(asked["answer"], list) else [asked["answer"]]
            answers = [
                moved(sentence(own, own.find(str(each)), own.find(str(each)) + len(str(each))), at)
                for at, own in (begins[str(order)] for order in asked["rel_paragraphs"])
                for each in said
                if str(each) in own
            ]
            if answers:
                queries.append({"text": asked["question"], "answers": answers})
    return document(name, text, queries, rng)


def document(name: str, text: str, queries: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    rng.shuffle(queries)
    return {"name": name, "text": text, "queries": queries[:ASKED]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("medical", type=Path, help="a file of COVID-QA")
    parser.add_argument("reports", type=Path, nargs="+", help="files of TAT-QA")
    given = parser.parse_args()
    rng = random.Random(1)
    made = list(medical(json.loads(given.medical.read_text())["data"], rng))
    made += [reports(path.stem, json.loads(path.read_text()), rng) for path in given.reports]
    for line in made:
        print(json.dumps(line, ensure_ascii=False))
