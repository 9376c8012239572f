"""The choice of a model: chat, workspace, default; personal connections; and local_only workspaces."""

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from memoryhub.errors import Invalid
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import Message
from memoryhub.llm.errors import ModelNotLocal, ModelRefused
from memoryhub.llm.registry import get_chat_model
from tests.conftest import Cast
from tests.factories import make_connection, make_user, make_workspace
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.access import default_workspace
from workspaces.actions import model_connections
from workspaces.model_choice import (
    BUILT_IN,
    address_range_of,
    all_for,
    choose_connection,
    chosen_for,
    default_label,
    model_of,
    options_for,
)
from workspaces.models import Workspace
from workspaces.models.language_models import Connection

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


def test_the_operator_says_of_the_configured_model_whether_it_is_local(
    cast: Cast, settings: Settings
) -> None:
    settings.LLM_BASE_URL, settings.EMBEDDED_MODEL, settings.LLM_MODEL = "http://ollama:11434/v1", False, "m"
    for said, local in [(None, False), (True, True), (False, False)]:
        settings.LLM_LOCAL = said
        chosen = chosen_for(with_choice(cast, None, local_only=True), cast.owner)
        assert (chosen.trouble is None) is local, (said, local)


def test_what_cannot_be_chosen_is_not_there(cast: Cast) -> None:
    others = make_connection(cast.editor)
    gone = make_connection(deleted_at=timezone.now())
    for wanted in (others.public_id, gone.public_id, "conn_nothing", ""):
        with pytest.raises(Invalid):
            choose_connection(cast.workspace, wanted, by=cast.owner)


def test_how_far_each_may_reach(settings: Settings, cast: Cast) -> None:
    assert address_range_of(make_connection()) is AddressRange.ANYWHERE
    assert address_range_of(make_connection(is_local=True)) is AddressRange.INTERNAL
    mine = make_connection(cast.editor)
    assert address_range_of(mine) is AddressRange.PUBLIC
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    assert address_range_of(mine) is AddressRange.ANYWHERE


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
    model_connections.update_connection(shared, by=admin, now=timezone.now(), api_key=scripted_openai.api_key)
    again = Connection.objects.get(pk=shared.pk)
    assert model_of(again).complete(QUESTION) == "Hello from the script."
    assert model_of(again) is model_of(Connection.objects.get(pk=shared.pk)), "one client for all calls"


def default_for_everyone(**values: object) -> Connection:
    return make_connection(name="Everyone's", is_default=True, **values)


def test_default_for_everyone_answers_where_nothing_is_chosen(cast: Cast) -> None:
    default, of_workspace = default_for_everyone(), make_connection(name="House")
    personal = default_workspace(make_user("newcomer"))
    for workspace in (cast.workspace, personal, make_workspace(owner=cast.editor, name="New")):
        assert chosen_for(workspace, cast.editor).connection == default
    assert chosen_for(cast.workspace, cast.editor, first=of_workspace).connection == of_workspace
    built_in = choose_connection(cast.workspace, BUILT_IN, by=cast.editor)
    assert chosen_for(cast.workspace, cast.editor, first=built_in).connection is None
    assert chosen_for(with_choice(cast, built_in), cast.editor).model is get_chat_model()
    assert [chosen.connection for chosen in all_for(personal, cast.editor)] == [default, None, of_workspace]


def test_default_that_is_not_local_is_passed_over_where_memories_stay(cast: Cast) -> None:
    default_for_everyone()
    chosen = chosen_for(with_choice(cast, None, local_only=True), cast.owner)
    assert chosen.connection is None and not chosen.lost


def test_each_model_is_listed_once_and_the_built_in_one_too(cast: Cast) -> None:
    default, house = default_for_everyone(), make_connection(name="House")
    built_in = choose_connection(cast.workspace, BUILT_IN, by=cast.editor)
    workspace = with_choice(cast, house)
    label = default_label()

    def listed(chosen: Connection | None, inherited: Connection | None) -> tuple[list[str], str]:
        options = options_for(workspace, cast.editor, chosen, inherited=inherited)
        [marked] = [option.label for option in options if option.is_chosen]
        return [option.label for option in options], marked

    assert listed(None, house) == (["House", label, "Everyone's"], "House")
    assert listed(house, house) == (["House", label, "Everyone's"], "House")
    assert listed(default, house) == (["House", label, "Everyone's"], "Everyone's")
    assert listed(built_in, house) == (["House", label, "Everyone's"], label)
    assert listed(None, None) == (["Everyone's", label, "House"], "Everyone's")
    gone = make_connection(name="Gone", deleted_at=timezone.now())
    assert listed(gone, None)[1] == "Everyone's"
    with_choice(cast, built_in)
    assert listed(None, built_in) == ([label, "Everyone's", "House"], label)
