# ruff: noqa: RUF001 characters of other scripts are tested
"""With the bundled embedder the relevant memories enter the prompt, and small talk uses none."""

from collections.abc import Callable

import numpy as np
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from memories.models import Memory
from memories.recalling import relevance
from memories.recalling.ranked_search import Recalled
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import (
    BELOW_THRESHOLD,
    NO_LONGER_HOLDS,
    NOTHING_ASKED,
    OVER_LIMIT,
    Recall,
    recall,
    split_recall,
)
from memories.recalling.workspace_search import search_workspace
from memories.views.panel_context import PanelFilters, search_panel
from memoryhub.llm.base import Embedder
from memoryhub.llm.bundled_embedder import TwoEncoders
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.fakes.embedder import FakeEmbedder

REMEMBERED = (
    "I am vegetarian", "I am allergic to walnuts", "The project deadline is March 15", "Ich wohne in Hamburg.",
    "Answers should be short bullet points", "我的猫叫小白。", "We use PostgreSQL for the billing service",
    "Mi hermana Lucía vive en Sevilla.", "The office is in Lisbon", "I get up at five to run",
)  # fmt: skip


def used(query: str, cast: Cast) -> list[str]:
    found = recall(query, cast.workspace, cast.editor, limit=10, policy=HERE, now=timezone.now())
    threshold = injection_threshold(0.57, len(REMEMBERED))
    verdicts = split_recall(found, threshold=threshold, limit=5)
    return [item.memory.content for item, (is_used, _) in zip(found.items, verdicts, strict=True) if is_used]


@pytest.fixture
def remembered(cast: Cast) -> Cast:
    for text in REMEMBERED:
        make_memory(text, cast.editor, cast.workspace)
    return cast


# A diet, an allergy, an unrelated fact, and the question, in one language each.
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
    # Across languages it is less certain: a question about a brother may match a Chinese memory of a cat.
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
    }
    found = {query: used(query, remembered) for query in wanted}
    assert {query: text for query, text in wanted.items() if text not in found[query]} == {}


def test_city_of_the_person_is_used_for_advice_about_it(remembered: Cast) -> None:
    assert "Ich wohne in Hamburg." in used("Was kann ich am Wochenende in meiner Stadt machen?", remembered)


def test_small_talk_brings_nothing(remembered: Cast) -> None:
    talk = ("hi", "thanks a lot!", "lol", "tell me a joke", "what is the capital of Peru?", "Guten Morgen!", "谢谢",
            "Merci beaucoup", "¿Cuánto es 7 por 8?", "переведи «кот»", "write a regex for dates",
            "Good evening, Ada", "Thanks, that answers it.", "I'm vegan and I'm in a hurry.", "What a day!",
            "Knock knock", "what time is it?", "Erzähl mir einen Witz über Ärzte", "Che ore sono?")  # fmt: skip
    assert {message: found for message in talk if (found := used(message, remembered))} == {}


def test_the_setting_says_how_sure_it_must_be(remembered: Cast, settings: Settings) -> None:
    query = "What can I cook for dinner?"
    found = recall(query, remembered.workspace, remembered.editor, policy=HERE, now=timezone.now())
    judged = [item.relevance for item in found.items]
    assert all(each is not None and 0 <= each.value <= 1 for each in judged)
    settings.RECALL_THRESHOLD = 1.0
    assert used(query, remembered) == []
    settings.RECALL_THRESHOLD = 0.0
    assert len(used(query, remembered)) == 5


def test_what_is_looked_up_is_found_and_nothing_that_has_nothing_to_do_with_it(remembered: Cast) -> None:
    def looked_up(query: str) -> list[str]:
        place, by = remembered.workspace, remembered.editor
        found = recall(query, place, by, policy=HERE, floor=True, now=timezone.now())
        searched = search_workspace(query, place, by, limit=5, now=timezone.now(), policy=HERE)
        assert [each.text for each in searched] == [item.memory.content for item in found.items]
        return [each.text for each in searched]

    wanted = {
        "deadline": "The project deadline is March 15",
        "walnut allergy": "I am allergic to walnuts",
        "billing database": "We use PostgreSQL for the billing service",
        "Wie heißt meine Katze?": "我的猫叫小白。",
        "format of answers": "Answers should be short bullet points",
        "PostgreSQL": "We use PostgreSQL for the billing service",
        "猫": "我的猫叫小白。",
    }
    assert {query: looked_up(query)[:1] for query in wanted} == {
        query: [text] for query, text in wanted.items()
    }
    unrelated = ("quantum entanglement", "printer driver error", "mortgage interest rate", "Hochzeitstag", "天气预报",
                 "telescope mirror", "photosynthesis", "kubernetes ingress timeout", "gym membership")  # fmt: skip
    assert {query: found for query in unrelated if (found := looked_up(query))} == {}


def test_all_that_a_name_is_in_is_found_by_it(cast: Cast) -> None:
    about = {"Maria likes tea", "Maria works in Oslo", "Maria is allergic to nuts"}
    for text in (*about, "The deadline is May 3"):
        make_memory(text, cast.editor, cast.workspace)
    found = search_workspace("Maria", cast.workspace, cast.editor, limit=5, now=timezone.now(), policy=HERE)
    assert {each.text for each in found} == about


def test_another_embedder_goes_by_the_score_as_before(
    cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    use_embedder(FakeEmbedder(64))
    make_memory("The project deadline is March 15", cast.editor, cast.workspace)
    for embedder in (FakeEmbedder(64), None):  # with its vectors, and with words alone
        use_embedder(embedder)
        found = recall("the project deadline", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
        assert [item.relevance for item in found.items] == [None]
        assert used("the project deadline", cast) == ["The project deadline is March 15"]


def test_nothing_found_is_nothing_to_judge() -> None:
    message = relevance.read_message("hello", np.ones(769, dtype=np.float32))
    assert relevance.judge(message, [], []) == []


def test_search_has_a_floor_of_the_score_where_relevance_is_unknown() -> None:
    near, far = relevance.Relevance(0.9, 0.9, 0.9), relevance.Relevance(0.01, 0.9, 0.9)
    cases = ((0.3, None), (0.2, None), (0.2, near), (0.3, far))
    assert [relevance.is_found(score, each) for score, each in cases] == [True, False, True, False]


def test_list_shows_what_is_near_a_bare_word_and_nothing_far_from_it(remembered: Cast) -> None:
    def shown(query: str) -> list[str]:
        return [
            each.content for each in search_panel(place, remembered.editor, PanelFilters(q=query)).memories
        ]

    place = remembered.workspace
    wanted = {"diet": "I am vegetarian", "food": "I am vegetarian", "cat": "我的猫叫小白。"}
    assert {word: shown(word)[:1] for word in wanted} == {word: [text] for word, text in wanted.items()}
    unrelated = ("quantum entanglement", "Hochzeitstag", "天气预报", "telescope mirror", "photosynthesis")
    assert {query: found for query in unrelated if (found := shown(query))} == {}
    far = relevance.Relevance(0.01, 0.01, 0.9)
    assert not relevance.is_shown(0.9, far) and not relevance.is_shown(0.2, None)


FACTS = {
    "backups": "Backups run every night at 2:00 and are kept for 30 days.",
    "refunds": "Refunds above 200 euros have to be approved by Carla.",
    "errors": "Errors are collected in Sentry, which calls whoever is on call.",
    "billing": "The billing team is Anna, Ben and Chioma; Ben is on call this week.",
    "database": "We use Postgres 16 for all services.",
    "shipping": "Orders are shipped with DHL within two working days.",
    "staging": "The staging server is rebuilt every Monday morning.",
    "vat": "Prices are shown with VAT, with the exception of business customers.",
    "report": "The monthly report is due on the third working day.",
}
ANSWERS = {
    "Who is on call?": "billing",
    "Where do errors end up?": "errors",
    "Which database do we use?": "database",
    "pg?": "database",
    "Write the shipping section of our help page": "shipping",
    "When should an exception be shown to a business customer?": "vat",
    "how long do we keep backups": "backups",
    "Can I refund 350 euros myself?": "refunds",
    "When is the report due?": "report",
}


def test_short_facts_about_a_project_are_used_where_they_answer(cast: Cast) -> None:
    for text in FACTS.values():
        make_memory(text, cast.editor, cast.workspace)
    missed = {query for query, name in ANSWERS.items() if FACTS[name] not in used(query, cast)}
    extra = sum(len(set(used(query, cast)) - {FACTS[name]}) for query, name in ANSWERS.items())
    assert missed == set()
    assert extra <= len(ANSWERS) // 2
    talk = ("Good morning!", "thanks, that helps", "Who painted Guernica?", "What is 12 times 14?")
    assert {message: found for message in talk if (found := used(message, cast))} == {}


def test_strong_first_is_used_whatever_the_message_seems_to_be() -> None:
    """The kind of a message alone does not veto the memory that clearly answers it."""
    vector = np.zeros(769, dtype=np.float32)
    vector[384] = 1.0
    message = relevance.read_message("Ben on call", vector)._replace(
        kinds=np.array([4.0, -4.0, -4.0, -4.0, 1.0])
    )
    clear = relevance.Found("Ben is on call this week", 0.95, 1.0, 0.6, (0.0, 1.5, 0.0, -2.0, -2.0, 0.0))
    far = relevance.Found("The office is in Lisbon", 0.05, 0.0, 0.05, (0.0, 0.1, 0.0, -2.0, -2.0, 0.0))
    judged = relevance.judge(message, [clear, far, far], [far.products[:3]] * 20)
    assert judged[0].value > 0.57 > judged[1].value


def test_message_that_asks_for_several_facts_needs_more_memories() -> None:
    pairs = {
        "Who is on call?": "Who is on call this week, and who has to approve a refund of 300 euros?",
        "Wann öffnet die Praxis?": "Wann öffnet die Praxis, wer vertritt sie im August, und was kostet ein Termin?",
        "Quel est le délai de livraison ?": "Quel est le délai, qui livre et que faire si un colis est perdu ?",
    }
    embedder = TwoEncoders()

    def number(text: str) -> float:
        return float(relevance.read_message(text, embedder.embed_queries([text])[0]).kinds[-1])

    numbers = {(one, several): (number(one), number(several)) for one, several in pairs.items()}
    assert all(one < several - 0.3 for one, several in numbers.values()), numbers


def test_what_is_over_is_judged_by_whether_the_past_is_asked_for(cast: Cast) -> None:
    for text in ("Previously used Salesforce as CRM. Replaced by HubSpot.", *FACTS.values()):
        make_memory(text, cast.editor, cast.workspace)

    def judged(query: str) -> relevance.Relevance:
        found = recall(query, cast.workspace, cast.editor, limit=20, policy=HERE, now=timezone.now())
        [over] = [each for each in found.items if each.memory.content.startswith("Previously")]
        assert over.relevance is not None
        return over.relevance

    now, before = judged("Which CRM do we use?"), judged("What CRM did we use before?")
    assert now.value < now.if_current
    assert before.value > max(now.value, 0.8)


def test_reason_says_what_kept_a_memory_out() -> None:
    cases = {
        relevance.Relevance(0.3, 0.3, 0.9): NO_LONGER_HOLDS,
        relevance.Relevance(0.3, 0.9, 0.3): NOTHING_ASKED,
        relevance.Relevance(0.3, 0.4, 0.5): BELOW_THRESHOLD,
    }
    items = [Recalled(Memory(), 0.9, {}, judged) for judged in cases]
    verdicts = split_recall(Recall(items), threshold=0.5, limit=5)
    assert verdicts == [(False, reason) for reason in cases.values()]


def test_no_more_are_used_than_the_limit() -> None:
    items = [Recalled(Memory(), score, {}) for score in (0.9, 0.2, 0.8, 0.7)]
    verdicts = split_recall(Recall(items), threshold=0.5, limit=2)
    assert verdicts == [(True, ""), (False, BELOW_THRESHOLD), (True, ""), (False, OVER_LIMIT)]


def test_order_adds_a_tenth_of_relevance_and_puts_what_is_over_behind() -> None:
    scores = {1: 0.60, 2: 0.58, 3: 0.30, 4: 0.90}
    judged = {
        1: relevance.Relevance(0.1, 0.1, 0.1),
        2: relevance.Relevance(0.9, 0.9, 0.9),
        4: relevance.Relevance(0.2, 0.2, 0.8, is_over=True),
    }
    assert relevance.in_order(scores, judged) == [2, 1, 3, 4]
