"""Answers that use other chats: where summaries of these may be used, and who may read such an answer."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.access import get_chat
from chat.chats import sharing
from chat.chats.personal_memories import use_personal
from chat.chats.services import set_private
from chat.import_export.export import export
from chat.models import Chat, Compaction, Message, Run
from chat.modes.research import _start as start_research
from chat.prompting.prompt_text import excerpt_around
from chat.prompting.short_term_memory import set_summary
from chat.turns.compaction import compact
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from chat.views.import_export import _markdown
from memories.models import Memory, Scope
from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user, make_workspace
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.models import Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "walnuts"  # must appear in no output that should withhold it
ABOUT = "The diagnosis is walnuts"


@pytest.fixture(autouse=True)
def model(scripted_model: ScriptedOpenAI) -> ScriptedOpenAI:
    """A model that repeats what its prompt says of other chats."""
    scripted_model.respond = lambda request: Answer(
        ABOUT if SECRET in json.dumps(request.messages) else "Nothing."
    )
    return scripted_model


def ask(chat: Chat, by: User | None = None, content: str = "What went on in my other chats?") -> Message:
    turn = begin_turn(
        chat, content=content, by=by or chat.created_by, now=timezone.now(), memory_enabled=True
    )
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    assert turn.answer.status == "done"
    return turn.answer


def sent(model: ScriptedOpenAI) -> str:
    """Return everything sent to the model since the last call."""
    text = json.dumps([request.body for request in model.chat_requests])
    model.requests.clear()
    return text


def told_in(place: Workspace, by: User, about: str = ABOUT, **fields: Any) -> Chat:
    chat = make_chat(by, place, **fields)
    set_summary(get_chat(by, chat.public_id), about, by=by, now=timezone.now())
    return chat


def join(place: Workspace, user: User, role: str = Role.EDITOR) -> User:
    Membership.objects.create(workspace=place, user=user, role=role)
    return user


def shared_text(chat: Chat, by: User, **how: Any) -> str:
    _link, token = sharing.create_link(chat, days=None, by=by, now=timezone.now(), **how)
    return Client().get(f"/shared/{token}/").content.decode()


def listed(chat: Chat, reader: User) -> str:
    """Return the chat's messages as the API lists them to this user."""
    return Api(reader).get(f"{chat.public_id}/messages").content.decode()


def readings(chat: Chat, answer: Message, reader: User) -> dict[str, str]:
    """Return what each page and endpoint shows this user of a chat."""
    client, api = Client(), Api(reader)
    client.force_login(reader)
    place = f"{chat.public_id}/messages"
    page = f"/chats/{chat.public_id}/"
    workspace = chat.workspace.public_id
    stream = f"{page}messages/{answer.public_id}/stream/"
    return {
        "page": client.get(page).content.decode(),
        "message": client.get(f"{page}messages/{answer.public_id}/").content.decode(),
        "print": client.get(f"{page}print/").content.decode(),
        "stream": str(client.get(stream).status_code == 200 and SECRET),
        "rest": listed(chat, reader),
        "receipt": api.get(f"{place}/{answer.public_id}/receipt").content.decode(),
        "short term": api.get(f"{chat.public_id}/short-term").content.decode(),
        "search": client.get(f"/workspaces/{workspace}/search/?q={SECRET}")
        .content.decode()
        .replace(f'"{SECRET}"', ""),
        "rest search": api.post(f"workspaces/{workspace}/search", {"query": ABOUT}).content.decode(),
        "list": json.dumps([each["id"] for each in api.get("chats", q=SECRET).json()["items"]]).replace(
            chat.public_id, SECRET
        ),
        "export": b"".join(export(reader, workspace=chat.workspace, now=timezone.now())).decode(),
        "one chat": b"".join(_markdown(chat, reader)).decode(),
    }


def test_a_line_of_another_chat_names_who_wrote_it(cast: Cast, model: ScriptedOpenAI) -> None:
    """The asker is "User", which names no one else."""
    other = make_chat(cast.owner, cast.workspace)
    ask(other, content="I am allergic to kiwi")
    ask(other, by=cast.editor, content="I am allergic to nuts")
    model.requests.clear()
    ask(make_chat(cast.editor, cast.workspace))
    told = sent(model)
    assert '\\"olive\\": I am allergic to kiwi' in told and "User: I am allergic to nuts" in told
    assert "User: I am allergic to kiwi" not in told


class TestLocalOnly:
    """A workspace that keeps its texts on this machine, and an editor there who also has another one."""

    @pytest.fixture
    def kept(self, cast: Cast) -> Workspace:
        cast.workspace.local_only = True
        cast.workspace.save()
        cast.editor.short_term_everywhere = True
        cast.editor.save()
        told_in(cast.workspace, cast.owner)
        return cast.workspace

    @pytest.mark.parametrize("is_local", [True, False])
    def test_its_chats_are_not_told_of_elsewhere(
        self, cast: Cast, kept: Workspace, model: ScriptedOpenAI, settings: Any, is_local: bool
    ) -> None:
        settings.LLM_LOCAL = is_local
        ask(make_chat(cast.editor, make_workspace(owner=cast.editor)))
        assert SECRET not in sent(model)

    def test_they_are_told_of_in_another_that_keeps_its_texts_too(
        self, cast: Cast, kept: Workspace, model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_LOCAL = True
        other = make_workspace(owner=cast.editor)
        Workspace.objects.filter(pk=other.pk).update(local_only=True)
        answer = ask(make_chat(cast.editor, Workspace.objects.get(pk=other.pk)))
        assert SECRET in sent(model)
        assert answer.other_chats == [Chat.objects.get(workspace=kept).public_id]
        assert (answer.personal, answer.stays_here) == ("held", True)

    def test_nothing_of_it_leaves_after_a_switch_to_a_model_elsewhere(
        self, cast: Cast, kept: Workspace, model: ScriptedOpenAI, settings: Any
    ) -> None:
        """The receiving workspace may send its own texts away by then; summaries are included."""
        settings.LLM_LOCAL = True
        place = make_workspace(owner=cast.editor)
        Workspace.objects.filter(pk=place.pk).update(local_only=True)
        chat = make_chat(cast.editor, Workspace.objects.get(pk=place.pk))
        answer = ask(chat)
        assert SECRET in sent(model)
        set_summary(
            get_chat(cast.editor, chat.public_id), ABOUT, by=cast.editor, now=timezone.now(), answer=answer
        )
        Compaction.objects.create(chat=chat, upto=answer, summary=ABOUT, is_marked=True)
        Workspace.objects.filter(pk=place.pk).update(local_only=False)
        settings.LLM_LOCAL = False
        chat = Chat.objects.get(pk=chat.pk)
        later = ask(chat, content="And then?")
        assert SECRET not in sent(model)
        assert not later.stays_here
        beside = ask(make_chat(cast.editor, chat.workspace), content="What was it about?")
        assert SECRET not in sent(model) and SECRET not in beside.content, "nor at second hand"

    def test_the_search_tool_does_not_find_at_second_hand_what_short_term_memory_withholds(
        self, cast: Cast, kept: Workspace, model: ScriptedOpenAI, settings: Any
    ) -> None:
        """The receiving workspace drops the setting; its model is on this machine all the time."""
        settings.LLM_LOCAL = True
        place = make_workspace(owner=cast.editor)
        Workspace.objects.filter(pk=place.pk).update(local_only=True)
        assert SECRET in ask(make_chat(cast.editor, Workspace.objects.get(pk=place.pk))).content

        def searched_in(chat: Chat) -> str:
            model.requests.clear()
            model.script(
                Answer(calls=[Call("x_workspace_search", {"query": "the diagnosis"})]), Answer("Hm.")
            )
            ask(chat, content="What was found?")
            return json.dumps(model.chat_requests[1].messages[-1])

        assert SECRET in searched_in(make_chat(cast.editor, Workspace.objects.get(pk=place.pk)))
        Workspace.objects.filter(pk=place.pk).update(local_only=False)
        assert SECRET not in searched_in(make_chat(cast.editor, Workspace.objects.get(pk=place.pk)))

    def test_nor_what_a_personal_memory_of_it_became(
        self, cast: Cast, model: ScriptedOpenAI, settings: Any
    ) -> None:
        settings.LLM_LOCAL = True
        memory = make_memory(f"{ABOUT} for the party cake", cast.editor, scope=Scope.USER)
        Workspace.objects.filter(pk=memory.workspace_id).update(local_only=True)
        chat = make_chat(cast.editor, make_workspace(owner=cast.editor))
        answer = ask(chat, content="Which cake shall we order for the party?")
        assert SECRET in sent(model) and answer.stays_here
        settings.LLM_LOCAL = False
        ask(chat, content="And then?")
        assert SECRET not in sent(model)


@pytest.fixture
def alone(cast: Cast) -> Workspace:
    """Create a workspace of one person, who allows summaries of private chats and of all workspaces."""
    place = make_workspace(owner=cast.owner, name="Alone")
    Workspace.objects.filter(pk=place.pk).update(private_short_term=True)
    cast.owner.short_term_everywhere = True
    cast.owner.save()
    return Workspace.objects.get(pk=place.pk)


def from_private(cast: Cast, alone: Workspace) -> None:
    told_in(alone, cast.owner, is_private=True)


def from_elsewhere(cast: Cast, alone: Workspace) -> None:
    told_in(make_workspace(owner=cast.owner), cast.owner)


def at_second_hand(cast: Cast, alone: Workspace) -> None:
    private = told_in(alone, cast.owner, is_private=True)
    middle = make_chat(cast.owner, alone)
    assert SECRET in ask(middle).content
    Chat.objects.filter(pk=private.pk).delete()


class TestWhatIsPersonal:
    @pytest.mark.parametrize("way", [from_private, from_elsewhere, at_second_hand])
    def test_it_is_recorded_and_left_out_of_links(
        self, cast: Cast, alone: Workspace, model: ScriptedOpenAI, way: Callable[[Cast, Workspace], None]
    ) -> None:
        """While its user reads alone, it stays in the conversation, and answers from there are marked as well."""
        way(cast, alone)
        chat = make_chat(cast.owner, alone)
        answer = ask(chat)
        assert SECRET in answer.content
        assert answer.personal == "held" and len(answer.other_chats) == 1
        page = shared_text(chat, cast.owner)
        assert "my other chats" in page and SECRET not in page
        client = Client()
        client.force_login(cast.owner)
        menu = " ".join(client.get(f"/chats/{chat.public_id}/links/").content.decode().split())
        assert "1 answer is left out" in menu
        Chat.objects.exclude(pk=chat.pk).delete()
        sent(model)
        again = ask(chat, content="Say it again")
        assert SECRET in sent(model)
        assert again.personal == "seen" and SECRET in again.content
        assert SECRET not in shared_text(chat, cast.owner)

    def test_who_comes_later_reads_it_nowhere_and_no_prompt_tells_them(
        self, cast: Cast, alone: Workspace, model: ScriptedOpenAI
    ) -> None:
        """A turn of a new member gets none of it, and neither does one of the owner, whose answer the member would
        read.
        """
        at_second_hand(cast, alone)
        chat = make_chat(cast.owner, alone, title="Plans")
        answer, again = ask(chat), ask(chat, content="Say it again")
        assert SECRET in answer.content and SECRET in again.content
        set_summary(
            get_chat(cast.owner, chat.public_id), ABOUT, by=cast.owner, now=timezone.now(), answer=again
        )
        later = join(alone, make_user())
        own = readings(chat, answer, cast.owner)
        assert [door for door, text in own.items() if SECRET not in text] == ["receipt"]
        theirs = readings(chat, answer, later)
        assert [door for door, text in theirs.items() if SECRET in text] == []
        assert "my other chats" in theirs["rest"], "the questions are no secret"
        Compaction.objects.create(chat=chat, upto=answer, summary=ABOUT, is_marked=True)
        sent(model)
        for person in (later, cast.owner):
            mine = ask(Chat.objects.get(pk=chat.pk), by=person, content="What did you say?")
            assert SECRET not in sent(model)
            assert mine.personal == ""
            beside = ask(make_chat(person, alone), content="What went on?")
            assert SECRET not in sent(model) and SECRET not in beside.content


def test_who_was_there_goes_on_reading_it(cast: Cast, model: ScriptedOpenAI) -> None:
    """After a user allows their data in a shared chat, its members still read the answer, and so does the model."""
    Workspace.objects.filter(pk=cast.workspace.pk).update(private_short_term=True)
    told_in(cast.workspace, cast.owner, is_private=True)
    chat = make_chat(cast.owner, cast.workspace)
    use_personal(chat, allowed=True, by=cast.owner)
    answer = ask(chat)
    assert answer.personal == "held"
    sent(model)
    ask(chat, by=cast.editor, content="Go on")
    assert SECRET in sent(model)
    assert SECRET in listed(chat, cast.viewer)
    later = join(cast.workspace, make_user(), Role.VIEWER)
    assert SECRET not in listed(chat, later)


def test_a_private_chat_that_is_opened_keeps_it(cast: Cast, alone: Workspace) -> None:
    """Its members joined before the answer, but could not read it then."""
    join(alone, cast.viewer, Role.VIEWER)
    told_in(make_workspace(owner=cast.owner), cast.owner)
    chat = make_chat(cast.owner, alone, is_private=True)
    answer = ask(chat)
    assert answer.personal == "held"
    set_private(chat, is_private=False, by=cast.owner, now=timezone.now())
    assert SECRET not in listed(chat, cast.viewer)
    assert SECRET in listed(chat, cast.owner)


def test_an_answer_from_a_personal_memory_is_treated_the_same(cast: Cast, alone: Workspace) -> None:
    make_memory("The party cake must have no walnuts", cast.owner, scope=Scope.USER)
    chat = make_chat(cast.owner, alone)
    answer = ask(chat, content="Which cake shall we order for the party?")
    assert answer.personal == "held" and answer.other_chats == []
    assert SECRET not in listed(chat, join(alone, make_user()))


def test_a_search_of_the_workspace_tells_and_marks_it(
    cast: Cast, alone: Workspace, model: ScriptedOpenAI
) -> None:
    told_in(alone, cast.owner, is_private=True)
    source = make_chat(cast.owner, alone)
    ask(source)
    Chat.objects.filter(is_private=True).delete()

    def respond(request: Any) -> Answer:
        if request.tool_results:
            return Answer(" ".join(request.tool_results))
        return Answer(calls=[Call("x_workspace_search", {"query": "diagnosis walnuts"})])

    model.respond = respond
    Chat.objects.filter(pk=source.pk).update(active_at=timezone.now())
    source.short_term.delete()
    chat = make_chat(cast.owner, alone)
    answer = ask(chat, content="Go on")
    assert SECRET in answer.content and answer.personal == "held"
    later = join(alone, make_user())
    for person in (later, cast.owner):
        assert "is walnuts" not in ask(make_chat(person, alone), by=person, content="Go on").content


def test_a_run_that_others_may_read_finds_nothing_personal(
    cast: Cast, alone: Workspace, scripted_model: ScriptedOpenAI
) -> None:
    from chat.runs.services import RunRequest, start_run
    from chat.runs.workspace_tools import tools_of_run
    from workspaces.access import get_workspace

    told_in(alone, cast.owner, is_private=True)
    ask(make_chat(cast.owner, alone))
    place = get_workspace(cast.owner, alone.public_id)
    results = []
    private = make_chat(cast.owner, alone, is_private=True)
    asked = make_message(private, "?")
    answer = make_message(private, "", "assistant", reply_to=asked)
    for wanted in (RunRequest("Look", "loop"), RunRequest("Look", "loop", answer=answer)):
        run = start_run(place, wanted, by=cast.owner, now=timezone.now())
        search = next(
            each for each in tools_of_run(run, is_local=True) if each.tool.name == "x_workspace_search"
        )
        results.append(search.call(json.dumps({"query": "diagnosis walnuts"}), "step:1"))
    assert [SECRET in each for each in results] == [False, True]
    answer.refresh_from_db()
    assert answer.personal == "held" and Run.objects.get(answer=answer).held_personal
    set_private(private, is_private=False, by=cast.owner, now=timezone.now())
    later = join(alone, make_user())
    assert list(Run.objects.visible_to(later).values_list("answer", flat=True)) == [None]


def test_a_summary_of_older_messages_is_written_without_it(
    cast: Cast, alone: Workspace, model: ScriptedOpenAI, settings: Any
) -> None:
    told_in(alone, cast.owner, is_private=True)
    chat = make_chat(cast.owner, alone)
    ask(chat)
    for number in range(12):
        question = make_message(chat, f"Question {number} " + "about nothing at all " * 60)
        make_message(chat, "Nothing " * 200, "assistant", reply_to=question)
    settings.LLM_HISTORY_TOKENS = 1000
    last = chat.messages.order_by("-pk")[0]
    join(alone, make_user())
    sent(model)
    compact(Message.objects.select_related("chat__workspace").get(pk=last.pk), cast.owner, now=timezone.now())
    assert model.chat_requests and SECRET not in sent(model)


def test_an_excerpt_beside_a_memory_is_without_it(cast: Cast, alone: Workspace) -> None:
    told_in(alone, cast.owner, is_private=True)
    chat = make_chat(cast.owner, alone)
    answer = ask(chat)
    assert answer.reply_to is not None
    assert SECRET not in excerpt_around(answer.reply_to) and excerpt_around(answer) == ""


def test_research_goes_on_from_nothing_that_is_not_for_its_readers(
    cast: Cast, alone: Workspace, scripted_model: ScriptedOpenAI
) -> None:
    chat = make_chat(cast.owner, alone)
    first = make_message(chat, "Report", "assistant", reply_to=make_message(chat, "First?"), personal="held")
    run = Run.objects.create(
        workspace=alone, user=cast.owner, mode="research", objective=ABOUT, answer=first, chat=chat,
        is_private=True, held_personal=True, status="done", deadline_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    again = make_message(
        chat, "", "assistant", reply_to=make_message(chat, "Next?"), memory_enabled=True, status="streaming"
    )
    made = start_research(again.pk, cast.owner.pk)
    assert made.pk != run.pk and SECRET not in str(list(made.entries.values_list("json", flat=True)))


def test_what_the_model_saves_from_it_is_the_persons_own(
    cast: Cast, alone: Workspace, model: ScriptedOpenAI
) -> None:
    told_in(alone, cast.owner, is_private=True)
    model.respond = lambda request: (
        Answer("Done.")
        if request.tool_results
        else Answer(
            calls=[
                Call("x_save_memory", {"content": ABOUT}),
                Call("write_artifact", {"title": "Notes", "content": ABOUT}),
            ]
        )
    )
    ask(make_chat(cast.owner, alone))
    assert set(Memory.objects.values_list("owner", flat=True)) <= {cast.owner.pk}
    from workspaces.models import Artifact

    assert Artifact.objects.get().owner == cast.owner
