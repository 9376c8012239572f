"""Fit memoryhub/llm/e5.npz, which separates language from meaning in e5 vectors.

    python -m tests.bench.fit_languages xquad_en.jsonl xquad_de.jsonl xquad_es.jsonl xquad_zh.jsonl

Two sources: Django's own catalogues, the same sentences in sixteen languages, and every second paragraph of the files
(named as bench_recall reads them, the language at the end of the name); the other paragraphs stay for measuring.
"""

import gettext
import json
import re
import sys
from pathlib import Path
from typing import Any

import django
import numpy as np

from memoryhub.llm import e5 as e5
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import FILE

LANGUAGES = [
    "en",
    "de",
    "es",
    "fr",
    "pt",
    "it",
    "nl",
    "pl",
    "tr",
    "ru",
    "ar",
    "hi",
    "zh_Hans",
    "ja",
    "ko",
    "vi",
]
SENTENCES = 250
RIDGE = 1e-3
_PLACEHOLDER = re.compile(r"%\(?\w*\)?[sd]|\{\w*\}|<[^>]*>|[“”]")


def main() -> None:
    encoder = e5.MultilingualEncoder()
    files = {path.stem[-2:]: _every_second_paragraph(path) for path in map(Path, sys.argv[1:])}
    parallel = _catalogues()
    of_catalogues = {language: encoder.encode(texts, "passage: ") for language, texts in parallel.items()}
    of_files = {language: encoder.encode(texts, "passage: ") for language, texts in files.items()}
    means = np.stack([vectors.mean(axis=0) for vectors in of_catalogues.values()])
    _, _, directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    centre = np.mean([vectors.mean(axis=0) for vectors in of_files.values()], axis=0)
    asked = {language: encoder.encode(texts, "query: ") for language, texts in parallel.items()}
    head = _english([of_catalogues, asked, of_files])
    np.savez(
        FILE, centre=centre, directions=directions[: len(LANGUAGES) - 1], english=head.astype(np.float32)
    )


def _english(sources: list[dict[str, Vectors]]) -> Any:
    """Fit a ridge regression to 1 for English and -1 for the rest, with equal weight for both; the last is the bias."""
    rows = np.concatenate([vectors for source in sources for vectors in source.values()])
    is_english = np.concatenate(
        [
            np.full(len(vectors), language == "en")
            for source in sources
            for language, vectors in source.items()
        ]
    )
    weight = np.where(is_english, 1 / is_english.sum(), 1 / (~is_english).sum())[:, None]
    wide = np.c_[rows, np.ones(len(rows))].astype(np.float64)
    penalty = RIDGE * np.diag([1.0] * rows.shape[1] + [0.0])
    target = np.where(is_english, 1.0, -1.0)
    return np.linalg.solve((wide * weight).T @ wide + penalty, (wide * weight).T @ target)


def _every_second_paragraph(path: Path) -> list[str]:
    memories = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["memories"]
    paragraphs = list(dict.fromkeys(memory["source"] for memory in memories))
    first = set(paragraphs[::2])
    return [memory["text"] for memory in memories if memory["source"] in first]


def _catalogues() -> dict[str, list[str]]:
    root = Path(django.__file__).parent
    found: dict[str, dict[str, str]] = {}
    for language in LANGUAGES[1:]:
        catalogue: dict[str, str] = {}
        for path in [
            *root.glob(f"conf/locale/{language}/*/django.mo"),
            *root.glob(f"contrib/*/locale/{language}/*/django.mo"),
        ]:
            with path.open("rb") as file:
                entries = vars(gettext.GNUTranslations(file))["_catalog"]
            catalogue |= {
                key: text for key, text in entries.items() if isinstance(key, str) and key and text != key
            }
        found[language] = catalogue
    common = [
        key
        for key in found["de"]
        if len(key.split()) >= 4 and "\n" not in key and sum(key in each for each in found.values()) >= 12
    ][:SENTENCES]
    texts = {
        language: [catalogue[key] for key in common if key in catalogue]
        for language, catalogue in found.items()
    }
    texts["en"] = common
    return {language: [_PLACEHOLDER.sub("", text).strip() for text in own] for language, own in texts.items()}


if __name__ == "__main__":
    main()
