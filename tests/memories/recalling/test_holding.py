"""An expired memory is used only for a question about the past, with its dates; bundled embedder."""

# ruff: noqa: E501, RUF001  statements in other scripts, a case a line
from datetime import UTC, datetime
from itertools import product

from chat.prompting.context import Found, find_for_prompt, recalled_block
from memories.models import Memory
from memories.recalling.recall import NO_LONGER_HOLDS, REPLACED, recall
from memories.recalling.workspace_search import search_workspace
from memories.writing.changing import hold_again, replace_older
from tests.conftest import Cast
from tests.factories import HERE, make_memory

NOW = datetime(2026, 6, 20, 12, 0, tzinfo=UTC)
# A valid and an expired statement, a question about today and one about the past; then other statements.
SAID = {
    "en": (
        "We use Harvest for timesheets.", "Previously kept timesheets in Excel. Replaced by Harvest.",
        "Which tool do we use for timesheets?", "Where did we keep timesheets before Harvest?",
        ("Odile waters the plants on Fridays.", "The alarm code is changed every quarter."),
    ),
    "de": (
        "Pakete verschicken wir mit DPD.", "Früher haben wir Pakete mit Hermes verschickt. Ersetzt durch DPD.",
        "Mit wem verschicken wir Pakete?", "Womit haben wir früher Pakete verschickt?",
        ("Odile gießt freitags die Pflanzen.", "Der Alarmcode wird jedes Quartal geändert."),
    ),
    "fr": (
        "Les factures sont faites avec Pennylane.", "Auparavant, les factures se faisaient sous Excel. Remplacé par Pennylane.",
        "Avec quoi fait-on les factures ?", "Avec quoi faisait-on les factures auparavant ?",
        ("Odile arrose les plantes le vendredi.", "Le code de l'alarme change chaque trimestre."),
    ),
    "es": (
        "Las nóminas las lleva la gestoría Prado.", "Antes las nóminas las llevaba Gestoría Ibarra. Sustituida por Prado.",
        "¿Quién lleva las nóminas?", "¿Quién llevaba antes las nóminas?",
        ("Odile riega las plantas los viernes.", "El código de la alarma cambia cada trimestre."),
    ),
    "zh": (
        "会议室用钉钉预订。", "之前用Excel表格预订会议室，已换成钉钉。", "会议室怎么预订？", "以前用什么预订会议室？",
        ("小田每周五浇花。", "报警密码每季度换一次。"),
    ),
}  # fmt: skip


def given(query: str, cast: Cast, *, now: datetime = NOW) -> Found:
    return find_for_prompt(query, cast.workspace, cast.editor, agent=None, room=10_000, policy=HERE, now=now)


def used(query: str, cast: Cast, **how: datetime) -> set[str]:
    return {item.memory.content for item in given(query, cast, **how).used}


def searched(query: str, cast: Cast) -> set[str]:
    found = search_workspace(query, cast.workspace, cast.editor, types=["memory"], now=NOW, policy=HERE)
    return {each.text for each in found}


def left_out(query: str, cast: Cast) -> dict[str, str]:
    found = given(query, cast)
    pairs = zip(found.recall.items, found.verdicts, strict=True)
    return {item.memory.content: reason for item, (is_used, reason) in pairs if not is_used}


def test_statement_that_says_it_is_over_is_kept_for_questions_about_the_past(cast: Cast) -> None:
    for language, (holding, over, today, past, others) in SAID.items():
        for text in (holding, over, *others):
            make_memory(text, cast.editor, cast.workspace, now=NOW)
        for choose in (used, searched):
            assert holding in choose(today, cast) and over not in choose(today, cast), language
            assert choose(past, cast) == {over}, language
        assert left_out(today, cast)[over] == NO_LONGER_HOLDS, language
        Memory.objects.all().delete()


def test_statement_with_an_end_holds_until_then(cast: Cast) -> None:
    cases = [
        ("Our web host was Strato until March 2026.", "Who is our web host?", "Which web host did we have before?"),
        ("Bis Ende März 2026 war Strato unser Webhoster.", "Wer ist unser Webhoster?", "Welchen Webhoster hatten wir früher?"),
        ("Jusqu'en mars 2026, notre hébergeur web était OVH.", "Qui est notre hébergeur web ?", "Quel était notre hébergeur web avant ?"),
        ("Hasta marzo de 2026 nuestro hosting web era Arsys.", "¿Qué hosting web tenemos?", "¿Qué hosting web teníamos antes?"),
        ("到2026年3月为止我们的网站托管在阿里云。", "我们的网站托管在哪里？", "我们的网站以前托管在哪里？"),
    ]  # fmt: skip
    for ended, today, past in cases:
        memory = make_memory(ended, cast.editor, cast.workspace, now=datetime(2026, 1, 5, tzinfo=UTC))
        make_memory("Odile waters the plants on Fridays.", cast.editor, cast.workspace, now=NOW)
        assert memory.valid_to == datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC), ended
        assert ended not in used(today, cast), ended
        assert ended in used(past, cast), ended
        assert "until 2026-03-31" in recalled_block(given(past, cast).used), ended
        assert memory.validity == "until March 2026", ended
        Memory.objects.all().delete()


def test_replaced_memory_is_left_out_says_why_and_holds_again(cast: Cast) -> None:
    older = make_memory("The team lunch takes place at Rosa's.", cast.editor, cast.workspace, now=NOW)
    newer = make_memory("The team lunch takes place at Kim's.", cast.editor, cast.workspace, now=NOW)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    query = "Where is the team lunch?"
    assert used(query, cast) == {older.content, newer.content}
    newer.refresh_from_db()
    replace_older(newer, by=cast.editor, now=NOW)
    assert used(query, cast) == {newer.content}
    assert left_out(query, cast)[older.content] == REPLACED
    assert used("Where was the team lunch before?", cast) == {older.content}
    hold_again(newer, by=cast.editor, now=NOW)
    assert used(query, cast) == {older.content, newer.content}


def test_recall_as_of_a_time_gives_what_was_valid_then(cast: Cast) -> None:
    held = {
        2023: make_memory("The bank of the club was Nordbank until 2023.", cast.editor, cast.workspace),
        2025: make_memory("The bank of the club was Sparda from 2024 to 2025.", cast.editor, cast.workspace),
        2026: make_memory("The bank of the club has been Triodos since 2026.", cast.editor, cast.workspace),
    }
    for ranking, (year, memory) in product(("hybrid", "semantic", "longterm", "lexical"), held.items()):
        found = recall(
            "bank of the club", cast.workspace, cast.editor, ranking=ranking, policy=HERE, now=NOW,
            as_of=datetime(year, 7, 1, tzinfo=UTC), floor=ranking == "hybrid",
        )  # fmt: skip
        assert [item.memory for item in found.items] == [memory], (ranking, year)


def test_words_alone_give_what_holds(cast: Cast) -> None:
    make_memory("The printer was in room 4 until 2024.", cast.editor, cast.workspace)
    holding = make_memory("The printer is in room 9.", cast.editor, cast.workspace)
    found = recall("printer room", cast.workspace, cast.editor, ranking="lexical", policy=HERE, now=NOW)
    assert [item.memory for item in found.items] == [holding]
