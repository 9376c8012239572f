# ruff: noqa: RUF001 characters of other scripts are tested
"""A question about everything gets an overview, and no other question does."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, Scope
from memories.recalling.overview import LINES
from memories.recalling.recall import Recall, recall
from memories.topics import create_node, link_memory
from memories.writing.gate import edit_memory
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from workspaces.models import User

NOW = timezone.now()
EVERYTHING = ("Catch me up, I have been away", "Was weißt du über unser Projekt?", "你对我们的项目了解多少？")
ABOUT_ME = (
    "What do you know about me?",
    "¿Qué sabes de mí?",
    "Что ты знаешь обо мне?",
    "나에 대해 무엇을 알고 있어?",
)


def asked(query: str, cast: Cast, person: User | None = None, **how: Any) -> Recall:
    how = {"policy": HERE, "now": NOW, "lines": LINES} | how
    return recall(query, cast.workspace, person or cast.editor, **how)


def contents(found: Recall) -> list[str]:
    return [item.memory.content for item in found.items]


@pytest.fixture
def notes(cast: Cast) -> list[Memory]:
    """Create twenty memories of one category, newest last."""
    return [
        make_memory(
            f"Delivery {number} came on day {number}",
            cast.editor,
            cast.workspace,
            category="event",
            now=NOW - timedelta(days=30 - number),
        )
        for number in range(20)
    ]


def test_overview_spreads_over_categories_and_topics(cast: Cast, notes: list[Memory]) -> None:
    old = NOW - timedelta(days=300)
    decision = make_memory("We chose Postgres", cast.editor, cast.workspace, category="decision", now=old)
    pinned = make_memory("The launch is in May", cast.editor, cast.workspace, pinned=True, now=old)
    important = make_memory(
        "Boxes are recycled", cast.editor, cast.workspace, category="event", importance=0.9, now=old
    )
    node = create_node(cast.workspace, name="Van", by=cast.owner, now=NOW)
    link_memory(node, notes[0], now=NOW)
    chosen = {decision.content, important.content, notes[0].content, notes[19].content}
    for question in EVERYTHING:
        found = asked(question, cast)
        assert (len(found.items), found.more) == (LINES, 23 - LINES), question
        assert contents(found)[0] == pinned.content, question
        assert chosen <= set(contents(found)), question
        assert notes[1].content not in contents(found), f"{question}: the newest of a category come first"


def test_overview_about_me_has_what_the_user_said_and_what_names_them(cast: Cast) -> None:
    make_memory("I am vegetarian", cast.editor, cast.workspace)
    make_memory("Eddie leads the design", cast.owner, cast.workspace)
    make_memory("I sleep badly", cast.editor, cast.workspace, scope=Scope.USER)
    make_memory("I play the violin", cast.owner, cast.workspace)
    make_memory("I am afraid of dogs", cast.owner, cast.workspace, scope=Scope.USER)
    others_read = replace(HERE, personal=False)
    for question in ABOUT_ME:
        found = set(contents(asked(question, cast)))
        assert found == {"I am vegetarian", "Eddie leads the design", "I sleep badly"}, question
        assert "I sleep badly" not in contents(asked(question, cast, policy=others_read)), question


def test_name_counts_as_whole_word_only(cast: Cast) -> None:
    User.objects.filter(pk=cast.editor.pk).update(first_name="Ann")
    cast.editor.refresh_from_db()
    for text in ("The annual report is late", "Hannah left", "Ask Ann's team", "ann pays"):
        make_memory(text, cast.owner, cast.workspace)
    assert set(contents(asked("What do you know about me?", cast))) == {"Ask Ann's team", "ann pays"}


def test_overview_of_project_has_what_lies_in_workspace(cast: Cast) -> None:
    make_memory("The launch is in May", cast.owner, cast.workspace)
    make_memory("I sleep badly", cast.editor, cast.workspace, scope=Scope.USER)
    assert contents(asked("What do you know about our project?", cast)) == ["The launch is in May"]


def test_forgotten_expired_and_replaced_memories_are_in_no_overview(cast: Cast) -> None:
    texts = (
        "The offsite is in Lisbon",
        "The offsite is in Porto",
        "Rent is due",
        "Gone",
        "The van is blue",
        "We rent in Rome",
    )
    old, new, expired, forgotten, standing, over = (
        make_memory(t, cast.editor, cast.workspace) for t in texts
    )
    Memory.objects.filter(pk=new.pk).update(may_replace=old)
    Memory.objects.filter(pk=expired.pk).update(expires_at=NOW - timedelta(days=1))
    Memory.objects.filter(pk=forgotten.pk).update(deleted_at=NOW)
    Memory.objects.filter(pk=over.pk).update(valid_to=NOW - timedelta(days=1))
    assert set(contents(asked("Give me an overview", cast))) == {new.content, standing.content}


def test_overview_goes_on_from_an_offset(cast: Cast, notes: list[Memory]) -> None:
    first, second = (asked("Give me an overview", cast, offset=at, lines=8) for at in (0, 8))
    assert (first.more, second.more) == (12, 4)
    assert not set(contents(first)) & set(contents(second))


def test_topic_brings_what_bears_on_it_and_general_knowledge_nothing(cast: Cast) -> None:
    health = ("I am allergic to walnuts", "I take medicine for my thyroid", "My doctor is Dr Lemmens")
    for text in (*health, "The office is in Lisbon", "We use Postgres for billing"):
        make_memory(text, cast.editor, cast.workspace)
    found = asked("What do you know about my health?", cast)
    assert found.overview is not None
    assert set(health) <= set(contents(found))
    assert asked("What do you know about black holes?", cast).overview is None


def test_other_messages_bring_no_overview(cast: Cast) -> None:
    make_memory("The deadline is March 15", cast.editor, cast.workspace)
    for message in (
        "hi",
        "How are you?",
        "Who are you?",
        "What can you do?",
        "Erzähl mir einen Witz",
        "谢谢",
        "Merci beaucoup",
        "なるほど、了解です",
        "Give me an overview of the French Revolution",
        "When is the deadline?",
        "What did you know about our former suppliers?",
    ):
        assert asked(message, cast).overview is None


def test_long_memory_is_one_line(cast: Cast) -> None:
    memory = make_memory("The van\nis blue. " * 50, cast.editor, cast.workspace)
    (item,) = asked("Give me an overview", cast).items
    assert item.text.endswith("…")
    assert len(item.text) == 200
    assert "\n" not in item.text
    edit_memory(memory, by=cast.editor, now=datetime.now(tz=NOW.tzinfo), content="The van is red")
    assert asked("Give me an overview", cast).items[0].text == "The van is red"
