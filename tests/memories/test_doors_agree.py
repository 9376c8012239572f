"""Every route of writing has the same result for the same text and memories: each route in each situation."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memories import tasks
from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Review
from memories.writing import review
from memories.writing.changing import restore_memory
from memories.writing.decide import (
    Known,
    New,
    Stored,
    Update,
    decide,
)
from memories.writing.drafts import Draft
from memories.writing.gate import delete_memory, save_memory
from memoryhub.errors import DomainError
from memoryhub.llm.registry import get_embedder
from tests.api import V1, Api
from tests.bulk import save_memories
from tests.chat.import_export.test_exchange import imported_whole
from tests.chat.import_export.test_exchange_rules import file_of
from tests.chat.import_export.test_exchange_rules import memory as line
from tests.conftest import Cast
from tests.factories import HERE, make_key_text, make_memory
from workspaces.index.embedding import embed_one

pytestmark = pytest.mark.django_db
SAID, NEARLY = "I prefer answers in bullet points", "I prefer my answers in bullet points"
SECRET = "sk-ant-api03-" + "Ab1" * 30


@dataclass(frozen=True)
class Situation:
    content: str
    key: str | None = None
    there: tuple[tuple[str, dict[str, Any]], ...] = ()
    forgotten: bool = False
    source_type: str = "import"


PAST = timezone.now() - timedelta(days=1)
SITUATIONS = {
    "nothing there": Situation(SAID, "style"),
    "equal text": Situation(SAID.upper(), there=((SAID, {}),)),
    "near duplicate": Situation(NEARLY, there=((SAID, {"key": "style"}),)),
    "another number": Situation("Rufus weighs 14 kilos", there=(("Rufus weighs 12 kilos", {}),)),
    "key taken": Situation("Coffee", "drink", there=(("Tea", {"key": "drink"}),)),
    "key expired": Situation("Coffee", "drink", there=(("Tea", {"key": "drink", "expires_at": PAST}),)),
    "key, equal text without": Situation(SAID.upper(), "style", there=((SAID, {}),)),
    "key, near duplicate without": Situation(NEARLY, "style", there=((SAID, {}),)),
    "key, equal text of another": Situation(SAID, "style", there=((SAID, {"key": "format"}),)),
    "key, near duplicate of another": Situation(NEARLY, "style", there=((SAID, {"key": "format"}),)),
    "forgotten for good": Situation(SAID, "style", forgotten=True),
    "a secret": Situation(f"Mine is {SECRET}", "style"),
}
# The outcome. "kept": the existing memory stays, and nothing is added.
EXPECTED = {
    "nothing there": "new",
    "equal text": "kept",
    "near duplicate": "kept",
    "another number": "linked",
    "key taken": "update",
    "key expired": "new",
    "key, equal text without": "update",
    "key, near duplicate without": "update",
    "key, equal text of another": "new",
    "key, near duplicate of another": "new",
    "forgotten for good": "nothing",
    "a secret": "nothing",
}
FORCED = {name: "nothing" if name in {"forgotten for good", "a secret"} else "new" for name in EXPECTED}
A_PERSON = {"forgotten for good": "new"}  # a person who repeats it wants it stored again
# Model extractions with review: an existing memory stays, key included, and a person decides.
REVIEWED = {name: what if what in {"kept", "nothing"} else "proposed" for name, what in EXPECTED.items()}


@dataclass
class Door:
    """A route. ``enter`` writes the text; ``before`` runs first, where the route needs an existing row."""

    enter: Callable[[Cast, Situation, Any], Any]
    before: Callable[[Cast, Situation], Any] = lambda cast, situation: None
    differs: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=lambda: EXPECTED)
    reviewed: dict[str, str] | None = None  # for model extractions with review, where the route has them


def draft(cast: Cast, situation: Situation, **fields: Any) -> Draft:
    fields = {"source_type": situation.source_type, "key": situation.key, **fields}
    return Draft(situation.content, cast.workspace, cast.editor, **fields)


def singly(dedupe: str) -> Callable[[Cast, Situation, Any], Any]:
    return lambda cast, said, _: save_memory(draft(cast, said), by=None, now=timezone.now(), dedupe=dedupe)


def many(dedupe: str) -> Callable[[Cast, Situation, Any], Any]:
    return lambda cast, said, _: save_memories(
        [draft(cast, said)], by=None, now=timezone.now(), dedupe=dedupe
    )


def over_rest(cast: Cast, said: Situation, _: Any) -> Any:
    path = f"workspaces/{cast.workspace.public_id}/memories"
    return Api(cast.editor).post(path, {"content": said.content, "key": said.key})


def over_v1(cast: Cast, said: Situation, _: Any) -> Any:
    api = Api(base=V1, key=make_key_text(cast.editor, cast.workspace))
    return api.post("memories", {"value": said.content, "key": said.key})


def a_list(cast: Cast, said: Situation, _: Any) -> Any:
    data = json.dumps([{"content": said.content, "key": said.key}]).encode()
    imported = imported_whole(cast.owner, data, cast.workspace)
    assert imported.outcomes == imported.foreseen


def an_export(cast: Cast, said: Situation, _: Any) -> Any:
    imported = imported_whole(
        cast.owner, file_of(line(said.content, key=said.key, source_type=said.source_type)), cast.workspace
    )
    assert imported.outcomes == imported.foreseen


def propose(cast: Cast, said: Situation) -> Memory | None:
    with suppress(DomainError):
        waiting = draft(cast, said, source_type="user").to_review()
        return save_memory(waiting, by=cast.viewer, now=timezone.now()).memory
    return None


def approve(cast: Cast, _: Situation, proposed: Memory | None) -> Any:
    return proposed and review.approve(proposed, by=cast.owner, now=timezone.now())


def delete(cast: Cast, said: Situation) -> Memory:
    """Create a deleted memory as one stored under older secret rules."""
    made = make_memory("Was in use", cast.editor, cast.workspace, key=said.key)
    delete_memory(made, by=cast.editor, now=timezone.now())
    Memory.objects.filter(pk=made.pk).update(content=said.content)
    return made


def restore(cast: Cast, _: Situation, deleted: Memory) -> Any:
    return restore_memory(deleted, by=cast.editor, now=timezone.now())


def save_without_vector(cast: Cast, said: Situation, use_embedder: Callable[[Any], None]) -> None:
    """Save without an embedder, and compare once it works."""
    embedder = get_embedder()
    use_embedder(None)
    saved = save_memory(draft(cast, said), by=None, now=timezone.now())
    use_embedder(embedder)
    if saved.created:
        tasks.embed_memories(memory_ids=[saved.memory.pk])


AS_THEY_WERE = {"near duplicate": "new", "another number": "new", "key taken": "kept"} | {
    "key, near duplicate without": "new"
}
DOORS = {
    "the gate": Door(singly("key"), reviewed=REVIEWED),
    "the gate, forced": Door(singly("create"), expected=FORCED),
    "many at once": Door(many("key"), reviewed=REVIEWED),
    "many at once, forced": Door(many("create"), expected=FORCED),
    "REST": Door(over_rest, differs=A_PERSON),
    "organisation memory": Door(over_v1, differs=A_PERSON),
    "a list of statements": Door(a_list),
    # As exported: near-duplicates are stored and taken keys stay. Live memories stay live, since importers may approve
    # them.
    "an export": Door(an_export, differs=AS_THEY_WERE, reviewed=EXPECTED | AS_THEY_WERE),
    # A proposal does not change a live memory with its key; a person's approval lifts a tombstone.
    "approval": Door(approve, propose, differs={"key taken": "proposed", **A_PERSON}),
    # An undo restores a memory without a key taken since; a person's undo lifts a tombstone.
    "restore": Door(
        restore,
        delete,
        expected=FORCED,
        differs={"key taken": "new without its key", **A_PERSON},
    ),
    # A memory with a key is not merged away.
    "a late vector": Door(
        lambda cast, said, given: save_without_vector(cast, said, given),
        differs={"key, near duplicate without": "new"},
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_says_the_same(
    door: str, cast: Cast, use_embedder: Callable[[Any], None], tmp_path: Any, settings: Any
) -> None:
    settings.DATA_DIR = tmp_path
    entered = DOORS[door]
    for situation, said in in_turn(SITUATIONS):
        came = enter(entered, said, cast, use_embedder)
        assert came == (entered.expected | entered.differs)[situation], situation


@pytest.mark.parametrize("door", ["the gate", "many at once", "an export"])
def test_every_door_says_the_same_of_what_a_model_noticed_where_that_is_reviewed(
    door: str, cast: Cast, use_embedder: Callable[[Any], None], tmp_path: Any, settings: Any
) -> None:
    settings.DATA_DIR = tmp_path
    cast.workspace.reviews_proposals = True
    cast.workspace.save()
    for situation, said in in_turn(SITUATIONS):
        came = enter(DOORS[door], replace(said, source_type="auto_chat"), cast, use_embedder)
        assert came == (DOORS[door].reviewed or {})[situation], situation


def in_turn(situations: dict[str, Situation]) -> Iterator[tuple[str, Situation]]:
    """Yield each situation before an empty table: the rows of the one before are rolled back."""
    for situation in situations.items():
        with transaction.atomic():
            yield situation
            transaction.set_rollback(True)


def enter(entered: Door, said: Situation, cast: Cast, use_embedder: Callable[[Any], None]) -> str:
    if said.forgotten:
        gone = make_memory(said.content, cast.editor, cast.workspace)
        forget_memories([gone], by=cast.editor, now=timezone.now())
    prepared = entered.before(cast, said)
    there = {
        memory.pk: memory
        for content, fields in said.there
        for memory in [make_memory(content, cast.editor, cast.workspace, **fields)]
    }
    with suppress(DomainError):
        entered.enter(cast, said, use_embedder if entered is DOORS["a late vector"] else prepared)
    keys = list(Memory.objects.filter(deleted_at=None, key__isnull=False).values_list("key", flat=True))
    assert len(keys) == len(set(keys))
    return what_came(said, there)


def what_came(said: Situation, there: dict[int, Memory]) -> str:
    live = {memory.pk: memory for memory in Memory.objects.filter(deleted_at=None)}
    new = [memory for pk, memory in live.items() if pk not in there]
    if new:
        assert [memory.content for memory in new] == [said.content]
        if new[0].key != said.key:
            return "new without its key"
        return "linked" if new[0].may_replace_id else "new"
    if any((memory.content, memory.key) != (live[pk].content, live[pk].key) for pk, memory in there.items()):
        assert [(each.content, each.key) for each in live.values()] == [(said.content, said.key)]
        return "update"
    if waiting := Memory.objects.filter(review=Review.PENDING).first():
        assert (waiting.content, waiting.key) == (said.content, said.key)
        return "proposed"
    return "kept" if live else "nothing"


def test_the_decision_itself_stores_nothing(cast: Cast) -> None:
    make_memory(SAID, cast.editor, cast.workspace, key="style")
    before, now = list(Memory.objects.values()), timezone.now()
    asked = {
        Known: draft(cast, Situation(NEARLY)),
        Update: draft(cast, Situation("Other", "style")),
        New: draft(cast, Situation(NEARLY, "another")),
    }
    for kind, each in asked.items():
        beside = Stored(each, embed_one(each.content, "", HERE), now)
        assert isinstance(decide(each, beside, now=now, forgotten=False), kind)
    assert list(Memory.objects.values()) == before
