# ruff: noqa: RUF001 signs of other scripts are the matter
"""With the bundled embedder what matters goes before the model, and small talk brings nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from memories.models import Memory
from memories.recalling import using
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import recall
from memories.recalling.receipts import split_recall
from memories.recalling.workspace_search import search_workspace
from memoryhub.llm.base import Embedder
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.fakes.embedder import FakeEmbedder

REMEMBERED = (
    "I am vegetarian", "I am allergic to walnuts", "The project deadline is March 15", "Ich wohne in Hamburg.",
    "Answers should be short bullet points", "我的猫叫小白。", "We use PostgreSQL for the billing service",
    "Mi hermana Lucía vive en Sevilla.", "The office is in Lisbon", "I get up at five to run",
)  # fmt: skip


def used(query: str, cast: Cast) -> list[str]:
    found = recall(query, cast.workspace, cast.editor, limit=10, reach=HERE, now=timezone.now())
    threshold = injection_threshold(0.57, len(REMEMBERED))
    verdicts = split_recall(found, threshold=threshold, limit=5)
    return [item.memory.content for item, (is_used, _) in zip(found.items, verdicts, strict=True) if is_used]


@pytest.fixture
def remembered(cast: Cast) -> Cast:
    for text in REMEMBERED:
        make_memory(text, cast.editor, cast.workspace)
    return cast


# A diet, an allergy, something else, and the question, in one language each.
DINNERS = (
    ("Ich bin Vegetarier.", "Ich bin gegen Walnüsse allergisch.", "Das Büro ist in Lissabon.",
     "Was kann ich heute Abend kochen?"),
    ("Soy vegetariana.", "Soy alérgica a las nueces.", "La oficina está en Lisboa.",
     "¿Qué puedo cocinar para la cena?"),
    ("Je suis végétarienne.", "Je suis allergique aux noix.", "Le bureau est à Lisbonne.",
     "Qu'est-ce que je peux cuisiner ce soir ?"),
    ("Sono vegetariana.", "Sono allergica alle noci.", "L'ufficio è a Lisbona.",
     "Che cosa posso cucinare stasera?"),
    ("Я вегетарианка.", "У меня аллергия на орехи.", "Офис находится в Лиссабоне.",
     "Что мне приготовить на ужин?"),
    ("我吃素。", "我对核桃过敏。", "办公室在里斯本。",
     "晚饭我可以做什么？"),
)  # fmt: skip


def test_dinner_brings_the_diet_and_the_allergy_in_any_language(remembered: Cast) -> None:
    assert {"I am vegetarian", "I am allergic to walnuts"} <= set(
        used("What can I cook for dinner?", remembered)
    )
    wrong = {}
    for diet, allergy, office, question in DINNERS:
        Memory.objects.all().delete()
        for text in (diet, allergy, office):
            make_memory(text, remembered.editor, remembered.workspace)
        if set(found := used(question, remembered)) != {diet, allergy}:
            wrong[question] = found
    assert wrong == {}


def test_what_is_asked_of_oneself_brings_that_alone(remembered: Cast) -> None:
    assert used("When is my project deadline?", remembered) == ["The project deadline is March 15"]
    # Between languages it is less sure: a question about a brother may bring the cat of somebody who writes Chinese.
    Memory.objects.filter(content__in=("我的猫叫小白。", "Mi hermana Lucía vive en Sevilla.")).delete()
    lacking = (
        "What's my dog's name?",
        "When does my passport expire?",
        "Who is my dentist?",
        "How old is my son?",
    )
    assert {query: found for query in lacking if (found := used(query, remembered))} == {}


def test_what_matters_is_used_in_any_language(remembered: Cast) -> None:
    wanted = {
        "When is my project deadline?": "The project deadline is March 15",
        "Wie heißt meine Katze?": "我的猫叫小白。",
        "In which city does my sister live?": "Mi hermana Lucía vive en Sevilla.",
        "Which database does billing use?": "We use PostgreSQL for the billing service",
        "Was kann ich am Wochenende in meiner Stadt machen?": "Ich wohne in Hamburg.",
    }
    found = {query: used(query, remembered) for query in wanted}
    assert {query: text for query, text in wanted.items() if text not in found[query]} == {}


def test_small_talk_brings_nothing(remembered: Cast) -> None:
    talk = ("hi", "thanks a lot!", "lol", "tell me a joke", "what is the capital of Peru?", "Guten Morgen!", "谢谢",
            "Merci beaucoup", "¿Cuánto es 7 por 8?", "переведи «кот»", "write a regex for dates",
            "Good evening, Ada", "Thanks, that answers it.", "I'm vegan and I'm in a hurry.", "What a day!",
            "Knock knock", "what time is it?", "Erzähl mir einen Witz über Ärzte", "Che ore sono?")  # fmt: skip
    assert {message: found for message in talk if (found := used(message, remembered))} == {}


def test_the_setting_says_how_sure_it_must_be(remembered: Cast, settings: Settings) -> None:
    query = "What can I cook for dinner?"
    sure = [
        item.sure
        for item in recall(
            query, remembered.workspace, remembered.editor, reach=HERE, now=timezone.now()
        ).items
    ]
    assert all(each is not None and 0 <= each <= 1 for each in sure)
    settings.RECALL_THRESHOLD = 1.0
    assert used(query, remembered) == []
    settings.RECALL_THRESHOLD = 0.0
    assert len(used(query, remembered)) == 5


def test_what_is_looked_up_is_found_and_nothing_that_has_nothing_to_do_with_it(remembered: Cast) -> None:
    def looked_up(query: str) -> list[str]:
        place, by = remembered.workspace, remembered.editor
        found = recall(query, place, by, reach=HERE, floor=True, now=timezone.now())
        searched = search_workspace(query, place, by, limit=5, now=timezone.now(), reach=HERE)
        assert [each.text for each in searched] == [item.memory.content for item in found.items]
        return [each.text for each in searched]

    wanted = {
        "deadline": "The project deadline is March 15",
        "walnut allergy": "I am allergic to walnuts",
        "billing database": "We use PostgreSQL for the billing service",
        "Wie heißt meine Katze?": "我的猫叫小白。",
        "format of answers": "Answers should be short bullet points",
    }
    assert {query: looked_up(query)[:1] for query in wanted} == {
        query: [text] for query, text in wanted.items()
    }
    unrelated = ("quantum entanglement", "printer driver error", "mortgage interest rate", "Hochzeitstag", "天气预报",
                 "telescope mirror", "photosynthesis", "kubernetes ingress timeout", "gym membership")  # fmt: skip
    assert {query: found for query in unrelated if (found := looked_up(query))} == {}


def test_another_embedder_goes_by_the_score_as_before(
    cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    use_embedder(FakeEmbedder(64))
    make_memory("The project deadline is March 15", cast.editor, cast.workspace)
    for embedder in (FakeEmbedder(64), None):  # with its vectors, and with words alone
        use_embedder(embedder)
        found = recall("the project deadline", cast.workspace, cast.editor, reach=HERE, now=timezone.now())
        assert [item.sure for item in found.items] == [None]
        assert used("the project deadline", cast) == ["The project deadline is March 15"]


def test_nothing_found_is_nothing_to_be_sure_of() -> None:
    assert using.sureness(np.ones(769, dtype=np.float32), []) == []


def test_an_embedder_that_does_not_tell_has_a_floor_of_the_score_alone() -> None:
    told = [
        using.has_to_do(score, sure) for score, sure in ((0.3, None), (0.2, None), (0.2, 0.9), (0.3, 0.01))
    ]
    assert told == [True, False, True, False]
