"""Which model answers: chat, workspace, default; whose own it is; what may not leave this machine."""

from __future__ import annotations

import pytest
from django.test import TestCase
from django.utils import timezone
from pytest_django.fixtures import Settings

from memoryhub.errors import Invalid
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import Message
from memoryhub.llm.errors import ModelNotLocal, ModelRefused
from memoryhub.llm.registry import get_chat_model
from tests.conftest import Cast
from tests.factories import make_connection
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.connections import actions
from workspaces.connections.choice import choose_connection, chosen_for, model_of, options_for, reach_of
from workspaces.models import Workspace
from workspaces.models.connection import Connection

pytestmark = pytest.mark.django_db
QUESTION = [Message("user", "Hello?")]


@pytest.fixture(autouse=True)
def people_may(settings: Settings) -> None:
    settings.PEOPLE_MAY_CONNECT = True


def with_choice(cast: Cast, connection: Connection | None, *, local_only: bool = False) -> Workspace:
    cast.workspace.connection, cast.workspace.local_only = connection, local_only
    cast.workspace.save()
    return cast.workspace


def test_the_chat_comes_first_then_the_workspace_then_the_default(cast: Cast) -> None:
    of_workspace, of_chat = make_connection(), make_connection()
    assert chosen_for(cast.workspace, cast.viewer).model is get_chat_model()
    workspace = with_choice(cast, of_workspace)
    assert chosen_for(workspace, cast.viewer).connection == of_workspace
    chosen = chosen_for(workspace, cast.viewer, first=of_chat)
    assert chosen.connection == of_chat and not chosen.lost and chosen.trouble is None
    assert chosen.ask() is chosen.model


def test_somebodys_own_answers_nobody_else(cast: Cast) -> None:
    mine, shared = make_connection(cast.editor, name="Mine"), make_connection()
    workspace = with_choice(cast, shared)
    assert chosen_for(workspace, cast.editor, first=mine).connection == mine
    for other in (cast.owner, None):
        chosen = chosen_for(workspace, other, first=mine)
        assert chosen.connection == shared
        assert "belongs to someone else" in chosen.lost and "Mine" not in chosen.lost


def test_one_that_is_gone_is_passed_over_and_named(cast: Cast) -> None:
    shared = make_connection(name="House model", deleted_at=timezone.now())
    chosen = chosen_for(with_choice(cast, shared), cast.viewer)
    assert chosen.connection is None
    assert "“House model”, which was chosen here, no longer exists" in chosen.lost


def test_peoples_own_rest_while_the_operator_does_not_allow_them(cast: Cast, settings: Settings) -> None:
    mine = make_connection(cast.editor, name="Mine")
    settings.PEOPLE_MAY_CONNECT = False
    chosen = chosen_for(cast.workspace, cast.editor, first=mine)
    assert chosen.connection is None and "turned off" in chosen.lost
    assert [option.value for option in options_for(cast.workspace, cast.editor, None)] == [""]


def test_the_model_of_the_workspace_is_listed_once(cast: Cast) -> None:
    of_workspace = make_connection(name="House model")
    make_connection(name="Other model")
    workspace = with_choice(cast, of_workspace)
    for chosen in (None, of_workspace):
        options = options_for(workspace, cast.editor, chosen, inherited=of_workspace)
        assert [(option.label, option.is_chosen) for option in options] == [
            ("House model", True),
            ("Other model", False),
        ]
    assert [option.label for option in options_for(workspace, cast.editor, of_workspace)][1:] == [
        "House model",
        "Other model",
    ]


def test_where_memories_stay_only_a_local_one_is_asked(cast: Cast, settings: Settings) -> None:
    settings.LLM_BASE_URL, settings.EMBEDDED_MODEL, settings.LLM_MODEL = (
        "https://api.example.org/v1",
        False,
        "far",
    )
    local, far = (
        make_connection(is_local=True, base_url="http://127.0.0.1/v1"),
        make_connection(name="Far away"),
    )
    mine = make_connection(cast.owner)
    workspace = with_choice(cast, None, local_only=True)
    for first, name in ((None, "far"), (far, "Far away"), (mine, mine.name)):
        chosen = chosen_for(workspace, cast.owner, first=first)
        with pytest.raises(ModelNotLocal, match=f"“{name}” is not marked local"):
            chosen.ask()
    assert chosen_for(workspace, cast.owner, first=local).ask()
    listed = {option.value: bool(option.why_not) for option in options_for(workspace, cast.owner, local)}
    assert listed == {"": True, local.public_id: False, far.public_id: True, mine.public_id: True}
    with pytest.raises(Invalid) as refused:
        choose_connection(workspace, far.public_id, by=cast.owner)
    assert refused.value.code == "model_not_local"
    assert choose_connection(workspace, local.public_id, by=cast.owner) == local


@pytest.mark.parametrize(("said", "local"), [(None, False), (True, True), (False, False)])
def test_the_operator_says_of_the_configured_model_whether_it_is_local(
    cast: Cast, settings: Settings, said: bool | None, local: bool
) -> None:
    settings.LLM_BASE_URL, settings.EMBEDDED_MODEL, settings.LLM_MODEL = "http://ollama:11434/v1", False, "m"
    settings.LLM_LOCAL = said
    chosen = chosen_for(with_choice(cast, None, local_only=True), cast.owner)
    assert (chosen.trouble is None) is local


def test_what_cannot_be_chosen_is_not_there(cast: Cast) -> None:
    others = make_connection(cast.editor)
    gone = make_connection(deleted_at=timezone.now())
    for wanted in (others.public_id, gone.public_id, "conn_nothing", ""):
        with pytest.raises(Invalid):
            choose_connection(cast.workspace, wanted, by=cast.owner)


def test_how_far_each_may_reach(settings: Settings, cast: Cast) -> None:
    assert reach_of(make_connection()) is AddressRange.ANYWHERE
    assert reach_of(make_connection(is_local=True)) is AddressRange.INTERNAL
    mine = make_connection(cast.editor)
    assert reach_of(mine) is AddressRange.PUBLIC
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    assert reach_of(mine) is AddressRange.ANYWHERE


def test_a_key_that_cannot_be_read_any_more_is_said(cast: Cast, settings: Settings) -> None:
    shared = make_connection()
    settings.ENCRYPTION_KEYS = ["another key of this installation " * 2]
    with pytest.raises(ModelRefused, match="can no longer be read"):
        chosen_for(cast.workspace, cast.owner, first=shared).ask()


def test_a_changed_key_counts_from_the_next_call_on(scripted_openai: ScriptedOpenAI, cast: Cast) -> None:
    """The row is read each time, so other processes see it as soon as this one."""
    shared = make_connection(base_url=scripted_openai.base_url, model="scripted-model", api_key="wrong")
    with pytest.raises(ModelRefused):
        model_of(shared).complete(QUESTION)
    admin = type(cast.owner).objects.create_superuser("root")
    actions.update_connection(shared, by=admin, now=timezone.now(), api_key=scripted_openai.api_key)
    again = Connection.objects.get(pk=shared.pk)
    assert model_of(again).complete(QUESTION) == "Hello from the script."
    assert model_of(again) is model_of(Connection.objects.get(pk=shared.pk)), "one client for all calls"


def test_looking_costs_a_query_at_most(cast: Cast) -> None:
    make_connection(), make_connection(cast.editor)
    workspace = with_choice(cast, make_connection())
    fresh = Workspace.objects.get(pk=workspace.pk)
    with TestCase().assertNumQueries(1):
        chosen_for(fresh, cast.viewer)
    with TestCase().assertNumQueries(1):
        options_for(fresh, cast.viewer, None)
