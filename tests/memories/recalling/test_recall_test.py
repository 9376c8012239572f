"""Saved questions: results by user, scheduled reruns, and reports of misses."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from memories.models import Memory, RecallQuestion, Scope
from memories.recalling import recall_tests
from memories.tasks import ask_recall_questions
from memories.writing.gate import delete_memory, edit_memory
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_agent, make_memory
from workspaces.access import default_workspace, get_workspace
from workspaces.index import reembedding
from workspaces.tasks import rebuild

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def launch(cast: Cast) -> Memory:
    make_memory("The office plants are watered on Mondays", cast.owner, cast.workspace)
    return make_memory("The launch of Apollo is on March 15", cast.owner, cast.workspace)


@pytest.fixture
def question(cast: Cast, launch: Memory) -> RecallQuestion:
    return recall_tests.save_question(
        cast.workspace, "When is the launch of Apollo?", [launch], by=cast.editor, now=NOW
    )


def now_of(question: RecallQuestion, cast: Cast) -> tuple[int | None, bool]:
    workspace = get_workspace(cast.viewer, question.workspace.public_id)
    [expected] = recall_tests.get_question(
        cast.viewer, question.public_id, workspace=workspace
    ).expected.all()
    return expected.rank, expected.used


def test_it_is_asked_at_once_and_again_when_content_or_threshold_change(
    cast: Cast, question: RecallQuestion, launch: Memory, settings: Any
) -> None:
    assert now_of(question, cast) == (1, True)
    accessed = Memory.objects.get(pk=launch.pk).last_accessed_at
    assert accessed is None, "a test is no use"
    assert ask_recall_questions() == "0 questions asked", "nothing has changed"
    edit_memory(launch, by=cast.editor, now=NOW, content="Bananas are yellow")
    assert ask_recall_questions() == "1 questions asked"
    assert now_of(question, cast)[1] is False
    edit_memory(launch, by=cast.editor, now=NOW, content="The launch of Apollo is on March 15")
    ask_recall_questions()
    assert now_of(question, cast) == (1, True)
    settings.RECALL_THRESHOLD = 2.0
    assert ask_recall_questions() == "1 questions asked"
    rank, used = now_of(question, cast)
    assert (rank, used) == (1, False), "found, and not used"


def test_another_embedder_asks_again(cast: Cast, question: RecallQuestion, fake_embedder: Any) -> None:
    assert ask_recall_questions() == "0 questions asked", "its vectors are not there yet"
    reembedding.notice_settings()
    rebuild()
    assert ask_recall_questions() == "1 questions asked"


def test_a_question_about_a_personal_memory_is_its_persons_alone(cast: Cast) -> None:
    own = default_workspace(cast.owner)
    own.memberships.create(user=cast.editor, role="editor")
    boat = make_memory("I dream of a small boat", cast.owner, own, scope=Scope.USER)
    kept = recall_tests.save_question(own, "What do I dream of?", [boat], by=cast.owner, now=NOW)
    [expected] = kept.expected.all()
    assert (expected.rank, expected.used) == (1, True)
    with pytest.raises(NotFound):
        recall_tests.get_question(cast.editor, kept.public_id, workspace=own)
    assert Api(cast.editor).get(f"workspaces/{own.public_id}/recall-questions").json()["items"] == []
    out = StringIO()
    delete_memory(boat, by=cast.owner, now=NOW)
    make_memory("Boats are small", cast.owner, own)
    call_command("recall_test", own.public_id, stdout=out)
    assert "dream" not in out.getvalue(), "nor does the operator read it"


def test_a_shared_question_is_asked_without_anybodys_personal_memories(cast: Cast, launch: Memory) -> None:
    own = default_workspace(cast.owner)
    for at in range(6):
        text = f"The launch of Apollo is on March {at + 20}, I think"
        make_memory(text, cast.owner, own, scope=Scope.USER)
    asked = recall_tests.save_question(
        cast.workspace, "When is the launch of Apollo?", [launch], by=cast.owner, now=NOW
    )
    assert now_of(asked, cast) == (1, True)


def test_what_is_refused(cast: Cast, launch: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(text: str, *memories: Memory) -> None:
        recall_tests.save_question(cast.workspace, text, memories, by=cast.owner, now=NOW)

    agents = make_memory(
        "Be brief",
        cast.owner,
        cast.workspace,
        scope=Scope.AGENT,
        agent=make_agent(cast.owner, cast.workspace),
    )
    for text, memories in (("", [launch]), ("x" * 501, [launch]), ("Why?", []), ("How?", [agents])):
        with pytest.raises(Invalid):
            keep(text, *memories)
    with pytest.raises(SecretRefused):
        keep("What is sk-proj-Zx81kLq0PmVn37TyRb46WcUe92Hs for?", launch)
    monkeypatch.setattr(recall_tests, "MOST_QUESTIONS", 0)
    with pytest.raises(Conflict):
        keep("When is the launch?", launch)
    elsewhere = make_memory("Cats purr", cast.stranger)
    refused = Api(cast.owner).post(
        f"workspaces/{cast.workspace.public_id}/recall-questions",
        {"text": "Do cats purr?", "memory_ids": [elsewhere.public_id]},
    )
    assert (refused.status_code, error_of(refused)["code"]) == (404, "not_found")


def test_the_page_offers_what_is_found_keeps_it_and_lists_misses_first(cast: Cast, launch: Memory) -> None:
    client, page = Client(), f"/workspaces/{cast.workspace.public_id}/recall-test/"
    client.force_login(cast.editor)
    assert "Your questions will be here" in client.get(page).content.decode()
    offered = client.get(f"{page}offered/", {"text": "When is the launch?"}).content.decode()
    assert launch.public_id in offered
    by_words = client.get(f"{page}offered/", {"text": "", "words": "plants"}).content.decode()
    assert "watered" in by_words
    assert launch.public_id not in by_words
    refused = client.post(page, {"text": "When is the launch?"})
    assert (refused.status_code, "Choose 1 to 10 memories" in refused.content.decode()) == (422, True)
    client.post(page, {"text": "When is the launch?", "memories": launch.public_id})
    assert "Nothing is missed" in client.get(page).content.decode()
    edit_memory(launch, by=cast.editor, now=NOW, content="Bananas are yellow")
    client.post(f"{page}run/")
    shown = client.get(page).content.decode()
    assert "The question misses something." in shown
    question = RecallQuestion.objects.get()
    client.post(f"{page}{question.public_id}/remove/")
    assert not RecallQuestion.objects.exists()


def test_the_command_lists_misses_and_fails(cast: Cast, question: RecallQuestion, launch: Memory) -> None:
    out = StringIO()
    call_command("recall_test", stdout=out)
    assert "1 questions asked, 0 with" in out.getvalue()
    edit_memory(launch, by=cast.editor, now=NOW, content="Bananas are yellow")
    with pytest.raises(CommandError):
        call_command("recall_test", cast.workspace.public_id, stdout=out)
    assert f"{launch.public_id} at place" in out.getvalue() or "not found" in out.getvalue()
    assert "Bananas are yellow" in out.getvalue()
