"""Words in any language, stored and asked alike, and the change of those that were counted before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from memories.recalling.kind import MEMORIES
from memories.recalling.recall import recall
from memoryhub.llm.base import Embedder
from tests.conftest import Cast
from tests.factories import HERE, make_document, make_memory
from tests.steps import do_again, take_back
from workspaces.documents.finding import find_passages
from workspaces.index.words import index_words
from workspaces.models import CommonWord, PassageWord, PlaceStatistics

STEPS = (("workspaces", "0019_words"), ("memories", "0023_words"))
# What is remembered, and a question that shares other forms of its words, or one word amid others, with it.
SAID = {
    "en": ("We migrated the billing service to Frankfurt", "When was the migration of billing?"),
    "de": ("Die Kündigungsfristen des Mietvertrages betragen drei Monate", "Welche Kündigungsfrist gilt?"),
    "es": ("Las reuniones del equipo serán los martes", "¿Cuándo es la reunión del equipo?"),
    "ru": ("Моя сестра живёт в Лиссабоне", "Кто из Лиссабона?"),
    "zh": ("我对花生过敏。", "谁对花生有反应"),
    "ja": ("会議は毎週火曜日に行われます。", "火曜日には何がありますか"),
    "th": ("ผมแพ้ถั่วลิสงมาก", "ใครแพ้ถั่วลิสง"),
    "ko": ("우리 사무실은 리스본에 있습니다", "리스본에서 일하는 사람은?"),
}


@pytest.fixture
def everything(cast: Cast, use_embedder: Callable[[Embedder | None], None]) -> None:
    use_embedder(None)
    for said, _ in SAID.values():
        make_memory(said, cast.editor, cast.workspace)
        make_document(cast.editor, cast.workspace, text=said)


def test_words_alone_find_it_in_every_language(everything: None, cast: Cast) -> None:
    for said, asked in SAID.values():
        found = recall(asked, cast.workspace, cast.editor, reach=HERE, now=timezone.now()).items
        assert found[0].memory.content == said
        passages = find_passages(asked, cast.workspace, cast.editor, limit=5, reach=HERE, floor=0.0)
        assert passages[0].passage.text.strip() == said


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("said", "lexemes"),
    [
        ("Internationalisation 12345678, a@b.example", {"intern", "12345678", "a@b.example"}),
        ("我love茶", {"我", "love", "茶"}),
        ("東京都 を", {"東京", "京都", "を"}),
        ("", set()),
        ("'; \\ \u200d \U0001f9d1\u200d\U0001f373 \ufffe", set()),
        ("字" * 20_000, {"字字"}),
    ],
)
def test_what_the_words_of_a_text_are(said: str, lexemes: set[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT lexeme FROM workspaces_words(%s)", [said])
        assert {lexeme for (lexeme,) in cursor.fetchall()} == lexemes


def stored() -> set[tuple[object, ...]]:
    rows = PassageWord.objects.values_list("place", "lexeme", "kind", "ref", "weight")
    return {(*key, round(weight, 4)) for *key, weight in rows}


@pytest.fixture
def counted_anew(transactional_db: None) -> Iterator[None]:
    """Whatever a test does, the next finds the database of today."""
    yield
    do_again(*STEPS)


@pytest.mark.django_db(transaction=True)
def test_what_was_counted_before_is_counted_anew_and_a_killed_run_goes_on(
    everything: None, counted_anew: None, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = stored()
    take_back(*reversed(STEPS))
    before = stored()
    assert "kündigungsfristen" in {row[1] for row in before}
    assert before & now != before
    PlaceStatistics.objects.create(
        place=cast.workspace.pk, kind=1, passage_count=8, counted_at=cast.owner.date_joined
    )
    CommonWord.objects.create(place=cast.workspace.pk, kind=1, lexeme="kündigungsfristen", passage_count=8)
    monkeypatch.setattr("workspaces.index.recounting.BATCH", 3)
    usual, batches = CursorWrapper.execute, []

    def killed(self: CursorWrapper, sql: object, params: object = None) -> object:
        if "workspaces_recount SET reached" in str(sql):
            batches.append(params)
            if len(batches) == 6:
                raise DatabaseError("the server closed the connection unexpectedly")
        return usual(self, sql, params)  # type: ignore[arg-type]

    monkeypatch.setattr(CursorWrapper, "execute", killed)
    with pytest.raises(DatabaseError):
        do_again(*STEPS)
    assert stored() not in (before, now)
    do_again(*STEPS)
    assert stored() == now
    assert batches[6] == batches[5], "it goes on where it was killed"
    assert not PlaceStatistics.objects.exists() and not CommonWord.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_regclass('workspaces_recount'), to_regproc('memories_counted_words_before')"
        )
        assert cursor.fetchone() == (None, None)
    index_words(MEMORIES, list(PassageWord.objects.filter(kind=1).values_list("ref", flat=True)))
    assert stored() == now, "and as every write counts them"
