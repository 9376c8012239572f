"""The page for tidying up: its lists, their permissions, and undo of every click."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import tidy
from memories.models import KeptAsIs, Memory, Receipt, ReceiptItem, Scope
from memories.models.memory import MEMORY
from memories.tidy import LISTS, Pair, pairs_in
from memories.writing.gate import Draft, edit_memory, save_memory
from memoryhub.errors import Invalid
from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_agent, make_memory
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import PassageVector, User, Workspace

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LIKELY = ("Olive looks after the garden", "Olive takes care of the garden")


def said(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.older.content, pair.newer.content) for pair in pairs]


def post(person: User, workspace: Workspace, act: str, **data: Any) -> Any:
    return signed_in(person).post(f"/workspaces/{workspace.public_id}/tidy/{act}/", data)


def test_pairs_are_of_one_place_and_told_apart(cast: Cast) -> None:
    """The workspace has rewordings, other values, unrelated texts, and small talk, with the real embedder."""
    for text in (
        "The project deadline is March 15, 2026",
        "The project deadline is the 15th of March 2026",
        "Our office is on the third floor",
        "Our office is on the fifth floor",
        "See ya!",
        "Later!",
        "Olive plays the cello",
        "I am vegetarian",
        "I do not eat meat or fish, I am vegetarian",
        "My sister Marta lives in Lisbon",
        "My sister Marta lives in Lisbon and her birthday is on 4 May",
        "I am allergic to nuts",
        "I am allergic to penicillin",
        "My sister Marta lives in Porto",
    ):
        make_memory(text, cast.owner, cast.workspace)
    agent = make_agent(cast.owner, cast.workspace)
    make_memory("Olive plays the cello", cast.owner, cast.workspace, scope=Scope.AGENT, agent=agent)
    found = pairs_in(cast.workspace, cast.viewer, timezone.now())
    assert said(found.duplicates) == [
        ("The project deadline is March 15, 2026", "The project deadline is the 15th of March 2026"),
        ("My sister Marta lives in Lisbon", "My sister Marta lives in Lisbon and her birthday is on 4 May"),
        ("I am vegetarian", "I do not eat meat or fish, I am vegetarian"),
    ]
    assert said(found.contradictions) == [
        ("My sister Marta lives in Lisbon", "My sister Marta lives in Porto"),
        ("Our office is on the third floor", "Our office is on the fifth floor"),
        ("My sister Marta lives in Lisbon and her birthday is on 4 May", "My sister Marta lives in Porto"),
    ]
    assert not found.partly


def test_personal_pairs_are_their_persons_alone(cast: Cast) -> None:
    own = default_workspace(cast.owner)
    for _ in range(2):
        make_memory("I dream of a small boat", cast.owner, own, scope=Scope.USER)
    own.memberships.create(user=cast.editor, role="editor")
    assert len(pairs_in(own, cast.owner, timezone.now()).duplicates) == 1
    assert pairs_in(own, cast.editor, timezone.now()).duplicates == []
    page = signed_in(cast.editor).get(f"/workspaces/{own.public_id}/tidy/").content.decode()
    assert "small boat" not in page


def test_one_click_keeps_one_with_the_words_of_the_other_and_undo_brings_it_back(cast: Cast) -> None:
    older = make_memory("The kiosk closes at six", cast.owner, cast.workspace)
    newer = make_memory("The kiosk closes at 6", cast.owner, cast.workspace)
    page = signed_in(cast.editor).get(f"/workspaces/{cast.workspace.public_id}/tidy/").content.decode()
    assert "Keep the older" in page
    answer = post(cast.editor, cast.workspace, "forget", memory=newer.public_id, into=older.public_id)
    assert f"/memories/{newer.public_id}/restore/" in answer.content.decode()
    assert older.revisions.filter(action="also_said", before__content=newer.content).exists()
    assert not Memory.objects.live().filter(pk=newer.pk).exists()
    signed_in(cast.editor).post(f"/workspaces/{cast.workspace.public_id}/memories/{newer.public_id}/restore/")
    assert said(pairs_in(cast.workspace, cast.editor, timezone.now()).duplicates) == [
        (older.content, newer.content)
    ]


@pytest.mark.parametrize(
    ("who", "code"), [("owner", 200), ("editor", 200), ("viewer", 403), ("stranger", 404)]
)
def test_the_older_of_two_that_differ_is_kept_as_replaced(cast: Cast, who: str, code: int) -> None:
    older = make_memory("Our office is on the third floor", cast.owner, cast.workspace)
    newer = make_memory("Our office is on the fifth floor", cast.owner, cast.workspace)

    def contradictions() -> list[tuple[str, str]]:
        return said(pairs_in(cast.workspace, cast.owner, timezone.now()).contradictions)

    assert contradictions() == [(older.content, newer.content)]
    person = getattr(cast, who)
    answer = post(person, cast.workspace, "replace", memory=older.public_id, into=newer.public_id)
    assert answer.status_code == code
    older.refresh_from_db()
    if code != 200:
        assert older.replaced_by is None
        return
    assert (older.replaced_by, older.deleted_at, older.is_over(timezone.now())) == (newer, None, True)
    assert "kept for questions about the past" in answer.content.decode()
    newer.refresh_from_db()
    assert (newer.replaced, contradictions()) == (older, [])
    assert [find(cast.workspace, person, NOW + timedelta(days=400)).count() for find in LISTS.values()][
        :2
    ] == [0, 1]
    assert post(person, cast.workspace, f"replaced/{older.public_id}/undo").status_code == 200
    older.refresh_from_db()
    assert (older.replaced_by, older.valid_to) == (None, None)
    assert contradictions() == [(older.content, newer.content)]


def test_one_is_not_replaced_by_what_it_replaces_or_by_another_place(cast: Cast) -> None:
    older, newer = (
        make_memory(f"The vault is at {bank}", cast.owner, cast.workspace) for bank in ("Ava", "Bo")
    )
    own = make_memory("The vault is at Cy", cast.owner)
    edit_memory(older, by=cast.owner, now=NOW, replaced_by=newer)
    for one, other in ((newer, older), (newer, newer), (newer, own)):
        with pytest.raises(Invalid):
            edit_memory(one, by=cast.owner, now=NOW, replaced_by=other)
    with pytest.raises(Invalid) as refused:
        edit_memory(older, by=cast.owner, now=NOW, replaced_by=newer, valid_to=None)
    assert [*refused.value.fields] == ["valid_to"]


def test_both_stay_until_one_reads_otherwise_and_undo_links_them_again(cast: Cast) -> None:
    older = make_memory("The launch is on March 15", cast.owner, cast.workspace)
    newer = save_memory(
        Draft("The launch is on March 16", cast.workspace, cast.owner), by=cast.owner, now=NOW
    ).memory
    assert newer.may_replace_id == older.pk, "the gate has linked them"

    def contradictions() -> list[tuple[str, str]]:
        return said(pairs_in(cast.workspace, cast.editor, timezone.now()).contradictions)

    assert contradictions() == [(older.content, newer.content)]
    post(cast.editor, cast.workspace, "keep", memory=older.public_id, beside=newer.public_id)
    kept = KeptAsIs.objects.get()
    newer.refresh_from_db()
    assert (contradictions(), newer.may_replace_id) == ([], None)
    assert post(cast.editor, cast.workspace, f"kept/{kept.pk}/undo").status_code == 200
    newer.refresh_from_db()
    assert (contradictions(), newer.may_replace_id) == ([(older.content, newer.content)], older.pk)
    assert post(cast.editor, cast.workspace, f"kept/{kept.pk}/undo").status_code == 404
    tidy.record_as_kept(newer, beside=older, by=cast.editor, now=NOW)
    edit_memory(newer, by=cast.editor, now=NOW, content="The launch is on March 17")
    assert contradictions() == [(older.content, "The launch is on March 17")]


def test_what_is_rather_the_same_than_not_is_for_a_person_to_decide(cast: Cast) -> None:
    """The writer keeps and links both; here they appear as duplicates, not as a contradiction."""
    older = make_memory(LIKELY[0], cast.owner, cast.workspace)
    newer = save_memory(Draft(LIKELY[1], cast.workspace, cast.owner), by=cast.owner, now=NOW)
    assert newer.created and newer.memory.may_replace == older
    found = pairs_in(cast.workspace, cast.editor, timezone.now())
    assert (said(found.duplicates), found.contradictions) == ([LIKELY], [])


def test_pairs_that_were_kept_make_room_for_what_is_less_near(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.tidy.JUDGED", 1)
    for text in ("Olive plays the cello", "The kiosk closes at six", "The kiosk closes at 6"):
        make_memory(text, cast.owner, cast.workspace)
    twice = Draft("Olive plays the cello", cast.workspace, cast.owner)
    save_memory(twice, by=cast.owner, now=NOW, dedupe="create")
    [pair] = pairs_in(cast.workspace, cast.editor, timezone.now()).duplicates
    assert pair.newer.content == "Olive plays the cello"
    tidy.record_as_kept(pair.newer, beside=pair.older, by=cast.editor, now=NOW)
    assert pairs_in(cast.workspace, cast.editor, timezone.now()).duplicates == []
    assert said(pairs_in(cast.workspace, cast.editor, timezone.now()).duplicates) == [
        ("The kiosk closes at six", "The kiosk closes at 6")
    ]


def test_lists_of_what_is_old_unused_unindexed_and_waiting(cast: Cast) -> None:
    long_ago, last_month = NOW - timedelta(days=200), NOW - timedelta(days=40)
    texts = {
        name: make_memory(name, cast.owner, cast.workspace, now=at)
        for name, at in {
            "Forgotten subject": long_ago,
            "Recalled lately": long_ago,
            "Used in an answer": last_month,
            "Left out of an answer": last_month,
            "Said yesterday": NOW - timedelta(days=1),
        }.items()
    }
    Memory.objects.filter(pk=texts["Forgotten subject"].pk).update(last_accessed_at=NOW - timedelta(days=190))
    Memory.objects.filter(pk=texts["Recalled lately"].pk).update(last_accessed_at=last_month)
    receipt = Receipt.objects.create(
        message_id="msg_1", workspace=cast.workspace, user=cast.owner, ranking="hybrid", threshold=0.5
    )
    for at, (name, used) in enumerate(
        {"Used in an answer": True, "Left out of an answer": False, "Forgotten subject": True}.items()
    ):
        memory = texts[name]
        ReceiptItem.objects.create(
            receipt=receipt, memory=memory, position=at, score=1, content=memory.content, used=used
        )
    PassageVector.objects.filter(kind=MEMORY, ref=texts["Said yesterday"].pk).delete()
    save_memory(Draft("Somebody thinks so", cast.workspace, cast.viewer).to_review(), by=cast.viewer, now=NOW)

    def listed() -> dict[str, list[str]]:
        rows = {name: find(cast.workspace, cast.viewer, NOW) for name, find in LISTS.items()}
        return {name: [memory.content for memory in found] for name, found in rows.items()}

    expected = {
        "stale": ["Forgotten subject"],
        "unused": ["Recalled lately", "Left out of an answer"],
        "unindexed": ["Said yesterday"],
        "waiting": ["Somebody thinks so"],
    }
    assert listed() == expected
    api = Api(cast.viewer)
    for name, contents in expected.items():
        items = api.get(f"workspaces/{cast.workspace.public_id}/tidy", show=name).json()["items"]
        assert [item["content"] for item in items] == contents
    stale = texts["Forgotten subject"]
    kept = Api(cast.editor).post(
        f"workspaces/{cast.workspace.public_id}/tidy/kept", {"memory_id": stale.public_id}
    )
    assert listed()["stale"] == [], "somebody has looked at it"
    Api(cast.editor).delete(f"workspaces/{cast.workspace.public_id}/tidy/kept/{kept.json()['id']}")
    assert listed()["stale"] == ["Forgotten subject"]


def test_two_places_are_no_pair(cast: Cast) -> None:
    shared = make_memory("Cats purr", cast.owner, cast.workspace)
    agent = make_agent(cast.owner, cast.workspace)
    other = make_memory("Cats purr", cast.owner, cast.workspace, scope=Scope.AGENT, agent=agent)
    for act in (tidy.merge, tidy.record_as_kept):
        with pytest.raises(Invalid):
            if act is tidy.merge:
                tidy.merge(shared, into=other, by=cast.owner, now=NOW)
            else:
                tidy.record_as_kept(shared, beside=other, by=cast.owner, now=NOW)
    assert Memory.objects.live().count() == 2
