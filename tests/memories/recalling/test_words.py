"""Word search in any language, with the same normalization of texts and questions."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.utils import timezone

from memories.recalling.recall import recall
from memoryhub.llm.base import Embedder
from tests.conftest import Cast
from tests.factories import HERE, make_document, make_memory
from workspaces.documents.search import find_passages

# A memory, and a question that shares inflected forms or one of several words with it.
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
        found = recall(asked, cast.workspace, cast.editor, policy=HERE, now=timezone.now()).items
        assert found[0].memory.content == said
        passages = find_passages(asked, cast.workspace, cast.editor, limit=5, policy=HERE, floor=0.0)
        assert passages[0].passage.text.strip() == said


@pytest.mark.django_db
def test_words_of_a_text() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("Internationalisation 12345678, a@b.example", {"intern", "12345678", "a@b.example"}),
        ("我love茶", {"我", "love", "茶"}),
        ("東京都 を", {"東京", "京都", "を"}),
        ("", set()),
        ("'; \\ \u200d \U0001f9d1\u200d\U0001f373 \ufffe", set()),
        ("字" * 20_000, {"字字"}),
    ]
    for said, lexemes in cases:
        with connection.cursor() as cursor:
            cursor.execute("SELECT lexeme FROM workspaces_words(%s)", [said])
            assert {lexeme for (lexeme,) in cursor.fetchall()} == lexemes, said[:20]
