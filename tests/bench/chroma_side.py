"""The Chroma side of bench_chroma, queried over standard input and run by a Python that has chromadb.

    chroma_side.py FOLDER        # with the files that chroma's own MiniLM is made of

Lines of JSON in and out: a list of texts is stored, a text is searched for; the answer to either is ``[seconds of
embedding, seconds of all]``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

K = 10
BATCH = 64


class AsItShips(ONNXMiniLM_L6_V2):
    """Chroma's default: every text padded to 256 tokens, as many threads as there are cores."""

    def tokens(self, text: str) -> Any:
        return self.tokenizer.encode(text)


class Unpadded(AsItShips):
    def tokens(self, text: str) -> Any:
        self.tokenizer.no_padding()
        return super().tokens(text)

    def __call__(self, input: list[str]) -> list[Any]:
        return [self._alone(text) for text in input]

    def _alone(self, text: str) -> Any:
        ids = np.array([self.tokens(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self.model.run(None, feed)
        mean = states[0].mean(axis=0)
        return mean / np.linalg.norm(mean)


def main() -> None:
    ONNXMiniLM_L6_V2.DOWNLOAD_PATH = Path(sys.argv[1])
    embed = Unpadded() if "unpadded" in sys.argv else AsItShips()
    client = chromadb.EphemeralClient()
    collection: Any = None
    for number, line in enumerate(sys.stdin):
        given = json.loads(line)
        began = embedded = time.perf_counter()
        if isinstance(given, list):
            collection = client.create_collection(f"conversation-{number}")
            for start in range(0, len(given), BATCH):
                batch = given[start : start + BATCH]
                keys = [str(start + each) for each in range(len(batch))]
                collection.add(ids=keys, documents=batch, embeddings=embed(batch))
        else:
            vectors = embed([given])
            embedded = time.perf_counter()
            collection.query(query_embeddings=vectors, n_results=K)
        print(json.dumps([embedded - began, time.perf_counter() - began]), flush=True)


if __name__ == "__main__":
    main()
