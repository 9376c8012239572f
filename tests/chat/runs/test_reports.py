"""Reports of research: visible to the readers of their chat; outside texts in them wait for review."""

from collections.abc import Sequence

import pytest
from django.utils import timezone

from chat.chats.services import set_private
from chat.models import Chat, Message, Run
from chat.models.runs import RunEvent, RunTemplate
from chat.runs.run_display import text_for_webhook
from chat.runs.services import RunRequest, rerun, save_template, start_run
from chat.runs.transitions import _end, locked_run
from chat.runs.workspace_tools import caller_of
from memories.models import Memory
from memories.writing.extraction_jobs import extract, queue_extraction
from tests.chat.turns.test_auto_saved import found
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_webhook
from tests.fakes.openai_server import ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.access import get_workspace
from workspaces.models import User, WebhookDelivery

pytestmark = pytest.mark.django_db
PLAN = {"tasks": [{"id": "report", "title": "Report", "description": "Report it."}]}
PAGE = "Refunds are always approved without asking anybody, and invoices are paid at once."


def answered(chat: Chat, text: str = "", asked: str = "What does hosting cost?") -> Message:
    return make_message(chat, text, "assistant", reply_to=make_message(chat, asked))


def researched(cast: Cast, answer: Message) -> Run:
    place = get_workspace(cast.editor, cast.workspace.public_id)
    wanted = RunRequest("What does hosting cost?", "research", answer=answer)
    return start_run(place, wanted, by=cast.editor, now=timezone.now())


def seen(cast: Cast, run: Run) -> list[bool]:
    people = (cast.editor, cast.owner, cast.viewer)
    told = text_for_webhook(cast.workspace, run.public_id) is not None
    return [*(Run.objects.visible_to(each).filter(pk=run.pk).exists() for each in people), told]


def test_the_run_of_a_chat_is_as_private_as_the_chat_is_now(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    make_webhook(cast.workspace, cast.owner, with_text=True)
    chat = make_chat(cast.editor, cast.workspace)
    run = researched(cast, answered(chat))
    assert seen(cast, run) == [True] * 4
    for is_private in (True, False):
        set_private(chat, is_private=is_private, by=cast.editor, now=timezone.now())
        assert seen(cast, run) == [True, *[not is_private] * 3]
        assert caller_of(run, is_local=True).policy.personal is is_private
        with locked_run(run.pk) as locked:
            _end(locked, "done", "", now=timezone.now())
        assert WebhookDelivery.objects.exists() is not is_private


def test_copies_of_a_chats_research_have_the_readers_of_the_chat(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    """The owner copies the editor's run whole, and the editor copies that copy from a step on."""
    chat = make_chat(cast.editor, cast.workspace)
    run = researched(cast, answered(chat))
    Run.objects.filter(pk=run.pk).update(plan=PLAN, states={"steps": {"report": "done"}, "tasks": {}})
    theirs = rerun(Run.objects.get(), by=cast.owner, now=timezone.now())
    Run.objects.filter(pk=theirs.pk).update(plan=PLAN, states={"steps": {"report": "done"}, "tasks": {}})
    theirs.refresh_from_db()
    mine = rerun(theirs, by=cast.editor, now=timezone.now(), from_step="report")
    of_no_chat = start_run(
        get_workspace(cast.owner, cast.workspace.public_id),
        RunRequest("Else", plan=PLAN),
        by=cast.owner,
        now=timezone.now(),
    )
    template = save_template(theirs, "Hosting", by=cast.owner, now=timezone.now())
    copies = (run, theirs, mine)
    assert all(seen(cast, each) == [True] * 4 for each in copies)
    set_private(chat, is_private=True, by=cast.editor, now=timezone.now())
    made_since = rerun(Run.objects.get(pk=mine.pk), by=cast.editor, now=timezone.now())
    copies = (*copies, made_since)
    assert all(seen(cast, each) == [True, False, False, False] for each in copies)
    for user in (cast.owner, cast.viewer, cast.stranger):
        assert statuses_for(user, cast, copies, template) == {404}
    assert statuses_for(cast.editor, cast, copies, template) == {200}
    assert seen(cast, of_no_chat) == [True] * 4
    theirs.refresh_from_db()
    mine.refresh_from_db()
    stops = [(event.run_id, event.data) for event in RunEvent.objects.filter(kind="run")]
    assert stops == [(theirs.pk, {"status": "stopped"})]  # its follower receives the reason
    assert (theirs.status, mine.status) == (
        "stopped",
        "running",
    )  # no more work for a user who cannot read it
    reaches = [caller_of(each, is_local=True).policy.personal for each in (run, theirs, mine)]
    assert reaches == [True, False, True]  # personal memories are never shown to others
    set_private(chat, is_private=False, by=cast.editor, now=timezone.now())
    assert all(seen(cast, each) == [True] * 4 for each in copies)
    assert statuses_for(cast.viewer, cast, [theirs], template) == {200}
    assert statuses_for(cast.stranger, cast, [theirs], template) == {404}
    set_private(chat, is_private=True, by=cast.editor, now=timezone.now())
    chat.delete()
    assert Run.objects.get() == of_no_chat


def statuses_for(user: User, cast: Cast, runs: Sequence[Run], template: RunTemplate) -> set[int]:
    """Return the status codes of all pages and endpoints that show the runs or the template, for this user."""
    client, place = signed_in(user), f"workspaces/{cast.workspace.public_id}/runs"
    listed = client.get(f"/chat/api/{place}?limit=100").content.decode()
    templates = client.get(f"/chat/api/{place}/templates").content.decode()
    urls = [f"/{place}/?template={template.public_id}"]
    for run in runs:
        rest = f"/chat/api/{place}/{run.public_id}"
        urls += [f"/{place}/{run.public_id}/", rest, f"{rest}/memory"]
    shown = [*(run.public_id in listed for run in runs), template.public_id in templates]
    return {client.get(url).status_code for url in urls} | {200 if each else 404 for each in shown}


def test_the_run_that_begins_as_its_chat_is_made_private_is_private(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    answer = answered(chat)
    assert not answer.chat.is_private  # as it was loaded
    set_private(Chat.objects.get(pk=chat.pk), is_private=True, by=cast.editor, now=timezone.now())
    assert seen(cast, researched(cast, answer)) == [True, False, False, False]


def test_statement_that_only_a_report_makes_waits_for_review(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    for source_type, asked in (
        ("auto_research", "What does hosting cost?"),
        ("auto_research", "Are refunds always approved without asking anybody?"),
        ("auto_chat", "What does hosting cost?"),
    ):
        for web_urls, speaker in (([], "run"), (["https://example.org/"], "web")):
            chat = make_chat(cast.editor, cast.workspace, memory_enabled=True)
            answer = answered(chat, f"Hosting costs 7 euros. {PAGE} " * 6, asked)
            run = researched(cast, answer)
            Run.objects.filter(pk=run.pk).update(web_urls=web_urls)
            extraction = queue_extraction(
                workspace=cast.workspace,
                user=cast.editor,
                chat_id=chat.public_id,
                message_id=answer.public_id,
                source_type=source_type,
                now=timezone.now(),
            )
            scripted_model.script(found("Refunds are always approved without asking anybody"))
            extract(extraction.pk, now=timezone.now())
            memory = Memory.objects.get()
            made_of = memory.source_details["rests_on"]["speaker"]
            assert (memory.review, made_of) == ("pending", speaker), (source_type, asked, speaker)
            Memory.objects.all().delete()
