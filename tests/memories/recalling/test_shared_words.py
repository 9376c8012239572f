"""The reasons in a receipt: the words of a memory that the question mentions."""

import pytest
from django.utils import timezone

from memories.models import ReceiptItem
from memories.recalling.recall import recall, store_receipt
from memories.recalling.shared_words import mentioned
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.data_policy import DataPolicy


def phrases(asked: str, memory: str) -> list[str]:
    return [memory[begin:end] for begin, end in mentioned(asked, memory)]


def test_memory_mentions_words_of_the_question_in_every_language() -> None:
    cases: list[tuple[str, str, list[str]]] = [
        ("When is my project deadline?", "Your project deadline is March 15", ["project deadline"]),
        ("Do my cats need anything?", "You have a cat named Tom", ["cat"]),
        ("Wann ist mein Abgabetermin?", "Dein Abgabetermin ist der 15. März", ["Abgabetermin"]),
        ("¿Cuándo es la fecha límite?", "La fecha límite es el 15 de marzo", ["fecha límite"]),
        ("Quelle est l'échéance ?", "L'échéance est le 15 mars", ["échéance"]),
        ("Qual é o prazo do projeto?", "O prazo do projeto é 15 de março", ["prazo", "projeto"]),
        ("Quando scade il progetto?", "Il progetto scade il 15 marzo", ["progetto scade"]),
        ("Wanneer is mijn afspraak?", "De afspraak is op 15 maart", ["afspraak"]),
        ("Kiedy jest termin mojego projektu?", "Termin projektu to 15 marca", ["Termin projektu"]),
        ("Projenin teslim tarihi ne zaman?", "Teslim tarihi 15 Mart", ["Teslim tarihi"]),
        ("Когда срок сдачи моего проекта?", "Срок проекта 15 марта", ["Срок проекта"]),
        ("متى الموعد النهائي؟", "موعد التسليم 15 مارس", ["موعد"]),
        ("मेरी परियोजना की समय सीमा कब है?", "समय सीमा 15 मार्च है", ["समय सीमा"]),
        ("我的项目截止日期是什么时候", "项目截止日期是3月15日", ["项目截止日期"]),
        ("私のプロジェクトはいつですか", "プロジェクトは3月15日です", ["プロジェクト"]),
        ("내 프로젝트 마감일은 언제야?", "마감일이 3월 15일이다", ["마감일이"]),
        ("Hạn chót của tôi là khi nào?", "Hạn chót là 15 tháng 3", ["Hạn chót"]),
        # Words without meaning, nothing in common, the same words in parts, and hostile text.
        ("What do you want me to do when?", "When you want something, do it", []),
        ("What shall I cook tonight?", "You are vegetarian", []),
        ("Was esse ich nicht?", "Ich esse nicht, was mir nicht schmeckt", ["esse"]),
        ("", "Anything", []),
        ("<script>alert(1)</script> deadline", "The <b>deadline</b>", ["deadline"]),
        ("x" * 3000, "x" * 3000, []),
        ("\u0301" * 3000, "\u0301" * 3000, []),
    ]  # fmt: skip
    for asked, memory, wanted in cases:
        assert phrases(asked, memory) == wanted, asked


def test_two_phrases_at_most_the_longest_and_each_once() -> None:
    asked = "Does the cat, the horse or the elephant see the cat on a meadow?"
    assert phrases(asked, "A cat and a horse, and a cat and an elephant on the meadow") == [
        "elephant",
        "meadow",
    ]


@pytest.mark.django_db
def test_a_receipt_keeps_what_was_mentioned_as_long_as_the_text_that_it_stands_in(cast: Cast) -> None:
    kept = make_memory("The project deadline is March 15", cast.owner, cast.workspace)
    make_memory("The kitchen is green", cast.owner, cast.workspace)
    answer = make_message(make_chat(cast.owner, cast.workspace), "March 15", role="assistant")
    asked, here = "When is our deadline, and of which project?", DataPolicy.here(cast.workspace)
    found = recall(asked, cast.workspace, cast.owner, policy=here, now=timezone.now())
    used = [(True, "")] * len(found.items)
    store_receipt(answer.public_id, found, used, workspace=cast.workspace, user=cast.owner, threshold=0.3)
    items = {item.memory_id: item for item in ReceiptItem.objects.all()}
    assert items[kept.pk].reasons[0] == "mentions “project deadline”"
    assert not any("words" in reason or "close" in reason for reason in items[kept.pk].reasons)
    for pk in items.keys() - {kept.pk}:
        assert not any("mentions" in reason for reason in items[pk].reasons)
    ReceiptItem.objects.filter(memory=kept).update(content="")
    assert not any("deadline" in reason for reason in ReceiptItem.objects.get(memory=kept).reasons)
