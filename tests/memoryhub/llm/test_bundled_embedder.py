# ruff: noqa: RUF001 characters of other scripts are tested
"""The bundled embedder finds statements by questions in the same and in other languages."""

import numpy as np
import pytest

from memoryhub.llm.base import Vectors
from memoryhub.llm.bundled_embedder import ENGLISH, MULTILINGUAL, TwoEncoders

# The cat's name, the allergy, the day of the meeting and the home, as statements and as questions.
LANGUAGES = {
    "en": ("My cat is called Minka.", "I am allergic to nuts.", "The team meeting is on Tuesday.", "I live in Lisbon.",
           "What is my cat's name?", "Which food must I avoid?", "When does the team meet?", "Which city is my home?"),
    "de": ("Meine Katze heißt Minka.", "Ich bin allergisch gegen Nüsse.", "Die Teamsitzung ist am Dienstag.",
           "Ich wohne in Lissabon.", "Wie heißt meine Katze?", "Welches Essen muss ich meiden?",
           "Wann trifft sich das Team?", "In welcher Stadt bin ich zu Hause?"),
    "es": ("Mi gata se llama Minka.", "Soy alérgico a los frutos secos.", "La reunión del equipo es el martes.",
           "Vivo en Lisboa.", "¿Cómo se llama mi gata?", "¿Qué comida debo evitar?", "¿Cuándo se reúne el equipo?",
           "¿En qué ciudad está mi casa?"),
    "ru": ("Мою кошку зовут Минка.", "У меня аллергия на орехи.", "Встреча команды во вторник.",
           "Я живу в Лиссабоне.", "Как зовут мою кошку?", "Какой еды мне избегать?",
           "Когда собирается команда?", "В каком городе мой дом?"),
    "zh": ("我的猫叫敏卡。", "我对坚果过敏。", "团队会议在星期二。", "我住在里斯本。",
           "我的猫叫什么名字？", "我不能吃什么食物？", "团队什么时候开会？", "我家在哪个城市？"),
    "ja": ("私の猫の名前はミンカです。", "私はナッツアレルギーです。",
           "チームの会議は火曜日です。", "私はリスボンに住んでいます。",
           "私の猫の名前は何ですか？", "避けるべき食べ物は何ですか？",
           "チームの会議はいつですか？", "私の家はどの都市にありますか？"),
    "ar": ("قطتي اسمها مينكا.", "عندي حساسية من المكسرات.", "اجتماع الفريق يوم الثلاثاء.", "أسكن في لشبونة.",
           "ما اسم قطتي؟", "أي طعام يجب أن أتجنبه؟", "متى يجتمع الفريق؟", "في أي مدينة بيتي؟"),
    "hi": ("मेरी बिल्ली का नाम मिंका है।", "मुझे मेवों से एलर्जी है।", "टीम की बैठक मंगलवार को है।", "मैं लिस्बन में रहता हूँ।",
           "मेरी बिल्ली का नाम क्या है?", "मुझे कौन सा खाना नहीं खाना चाहिए?", "टीम कब मिलती है?", "मेरा घर किस शहर में है?"),
}  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> TwoEncoders:
    return TwoEncoders()


@pytest.fixture(scope="module")
def vectors(embedder: TwoEncoders) -> tuple[Vectors, Vectors]:
    """Embed all statements and questions, in the order of the languages."""
    said = [text for texts in LANGUAGES.values() for text in texts[:4]]
    asked = [text for texts in LANGUAGES.values() for text in texts[4:]]
    return embedder.embed(said), embedder.embed_queries(asked)


def test_a_question_finds_what_was_said_in_its_language_and_in_any_other(
    vectors: tuple[Vectors, Vectors],
) -> None:
    said, asked = vectors
    right = np.zeros((len(LANGUAGES), len(LANGUAGES)))
    for question, vector in enumerate(asked):
        for language in range(len(LANGUAGES)):
            nearest = int(np.argmax(said[4 * language : 4 * language + 4] @ vector))
            right[question // 4, language] += nearest == question % 4
    right /= 4
    assert np.diag(right).mean() >= 0.95
    assert right.mean() >= 0.9


def test_no_language_is_nearer_than_another(vectors: tuple[Vectors, Vectors]) -> None:
    """Among statements in eight languages, the four nearest to a question mostly answer it."""
    said, asked = vectors
    nearest = np.argsort(-(asked @ said.T), axis=1)[:, :4] % 4
    assert (nearest == (np.arange(len(asked)) % 4)[:, None]).mean() >= 0.7


def test_vectors_have_length_one_and_what_is_stored_is_itself_again(embedder: TwoEncoders) -> None:
    texts = ["I am vegetarian.", "Ich bin Vegetarier.", "我吃素。", ""]
    stored = embedder.embed(texts)
    assert stored.shape == (4, embedder.dimension)
    np.testing.assert_allclose((stored**2).sum(axis=1), 1, rtol=1e-4)
    assert embedder.embed([]).shape == embedder.embed_queries([]).shape == (0, embedder.dimension)
    np.testing.assert_array_equal(embedder.embed(texts), stored)


def test_a_gist_is_read_by_minilm_alone_and_only_where_it_may_be_english(embedder: TwoEncoders) -> None:
    whole, gist = embedder.embed_question(["What does Melanie like to cook?", "like to cook"])
    np.testing.assert_array_equal(whole, embedder.embed_queries(["What does Melanie like to cook?"])[0])
    np.testing.assert_array_equal(gist[MULTILINGUAL], whole[MULTILINGUAL])
    alone = embedder.english.embed(["like to cook"])[0]
    assert gist[ENGLISH] @ alone / np.linalg.norm(gist[ENGLISH]) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(gist) == pytest.approx(1, abs=1e-4)
    whole, gist = embedder.embed_question(["小白是谁的猫？", "谁的猫"])
    np.testing.assert_array_equal(gist, whole)
    assert embedder.embed_question([]).shape == (0, embedder.dimension)
