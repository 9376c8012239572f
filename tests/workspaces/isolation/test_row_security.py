"""A database that trusts no query: under row security a statement without any filter shows a person their own rows."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import InternalError, NotSupportedError, ProgrammingError
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from chat.models import Chat
from memories.models import Memory, Scope
from memories.recalling import words
from memoryhub.database import acting
from memoryhub.database.acting import NobodyActs, acting_as, as_system
from memoryhub.database.guarded.base import ROLE
from tests.factories import make_chat, make_memory, make_message
from tests.workspaces.isolation.guarded import row_security
from tests.world import World
from workspaces.access import default_workspace
from workspaces.index.candidates import SearchArea
from workspaces.isolation import policies, proof
from workspaces.models import Connection, Membership, User, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As everywhere (tests/conftest.py), with row security around it."""
    with django_db_blocker.unblock(), row_security(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _the_systems(db: None) -> Iterator[None]:
    """What a test does itself, wherever its thread was before."""
    with as_system():
        yield


def ask(statement: str, *values: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def everything(table: str) -> set[tuple]:
    """The deliberately wrong query: no filter at all."""
    return {tuple(map(str, row)) for row in ask(f"SELECT * FROM {table}")}


def own_workspaces(person: User) -> set[int]:
    return set(Membership.objects.filter(user=person).values_list("workspace", flat=True))


def test_wrong_queries_on_every_table_show_each_person_their_own_rows_alone(world: World) -> None:
    """By foreign keys, whatever the policies say: what names a workspace or a person names one of theirs."""
    cast, filled, looked = world.cast, set(), 0
    private = make_chat(cast.editor, cast.workspace, is_private=True, title="Mine alone")
    make_message(private, "Nobody else reads this.")
    for person in (cast.owner, cast.editor, cast.viewer, cast.stranger):
        default_workspace(person)
        mine = own_workspaces(person)
        for model in apps.get_models(include_auto_created=True):
            table, rule = model._meta.db_table, policies.table_rules().get(model._meta.db_table)
            if rule is None or not rule.sees:
                continue
            workspace = [f.attname for f in model._meta.concrete_fields if f.related_model is Workspace]
            with acting_as(person.pk):
                rows = list(model._base_manager.values(*workspace)) if workspace else []
                count = len(everything(table))
            filled |= {table} if count else set()
            looked += len(rows)
            for row in rows:
                assert set(row.values()) <= mine | {None}, (table, person)
    assert looked > 50 and len(filled) > 30, sorted(filled)


def test_a_stranger_sees_nothing_of_what_the_others_have(world: World) -> None:
    stranger, seen = world.cast.stranger, {}
    for table, rule in policies.table_rules().items():
        if not rule.sees:
            continue
        there = everything(table)
        with acting_as(stranger.pk):
            theirs = everything(table)
        if there:
            seen[table] = len(theirs)
    own = {table for table, number in seen.items() if number}
    assert own <= {
        "workspaces_user",
        "workspaces_workspace",
        "workspaces_membership",
        "workspaces_connection",  # those for everybody
        "workspaces_spent",
        "account_emailaddress",
    }, own
    assert len(seen) > 30


def test_personal_memories_and_private_chats_are_their_persons_alone(world: World) -> None:
    cast = world.cast
    home = default_workspace(cast.editor)
    Membership.objects.create(workspace=home, user=cast.owner, role="owner")
    kept = make_memory("I sleep badly before flights", cast.editor, home, scope=Scope.USER)
    chat = make_chat(cast.editor, cast.workspace, is_private=True)
    message = make_message(chat, "I sleep badly.")
    tables = {"memories_memory": kept.pk, "chat_chat": chat.pk, "chat_message": message.pk}
    for table, key in tables.items():
        for person, expected in ((cast.editor, 1), (cast.owner, 0), (cast.stranger, 0)):
            with acting_as(person.pk):
                assert len(ask(f"SELECT 1 FROM {table} WHERE id = %s", key)) == expected, (table, person)
    vectors = ask("SELECT place FROM workspaces_passagevector WHERE kind = 1 AND ref = %s", kept.pk)
    with acting_as(cast.owner.pk):
        assert ask("SELECT 1 FROM workspaces_passagevector WHERE ref = %s", kept.pk) == []
    assert vectors == [(-cast.editor.pk,)]


def test_nothing_of_others_is_written_or_counted(world: World) -> None:
    cast = world.cast
    memory = Memory.objects.filter(workspace=cast.workspace).first()
    assert memory is not None
    with acting_as(cast.stranger.pk):
        assert Memory.objects.update(content="Taken") == 0
        assert Chat.objects.all()._raw_delete("default") == 0
        assert User.objects.exclude(pk=cast.stranger.pk).update(is_superuser=True) == 0
        assert Connection.objects.update(base_url="https://mine.example.org") == 0
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            Membership.objects.create(workspace=cast.workspace, user=cast.stranger, role="owner")
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            make_chat(cast.stranger, cast.workspace)
    refused = pytest.raises(ProgrammingError, match="row-level security")
    elsewhere = default_workspace(cast.stranger)
    with acting_as(cast.owner.pk), refused, transaction.atomic():
        Memory.objects.filter(pk=memory.pk).update(workspace=elsewhere)
    memory.refresh_from_db()
    assert memory.content != "Taken"


def test_who_is_asked_for_ends_with_its_transaction(world: World) -> None:
    cast = world.cast

    def role() -> tuple[str, str]:
        (found,) = ask("SELECT current_user, coalesce(current_setting('memoryhub.person', true), '')")
        return found

    system = role()[0]
    with acting_as(cast.owner.pk):
        assert role() == (ROLE, str(cast.owner.pk))
    assert role()[0] == system
    with transaction.atomic():
        with acting_as(cast.owner.pk):
            assert role() == (ROLE, str(cast.owner.pk))
            with pytest.raises(ZeroDivisionError), transaction.atomic(), as_system():
                assert role()[0] == system
                raise ZeroDivisionError
            assert role() == (ROLE, str(cast.owner.pk)), "after a savepoint was rolled back"
            with acting_as(cast.stranger.pk):
                assert role() == (ROLE, str(cast.stranger.pk))
                assert not Memory.objects.filter(workspace=cast.workspace).exists()
        assert role()[0] == system
    assert role()[0] == system


def test_a_failure_inside_as_the_system_can_be_rolled_back_outside(world: World) -> None:
    with acting_as(world.cast.owner.pk), transaction.atomic():
        with pytest.raises(ProgrammingError), transaction.atomic(), as_system():
            ask("SELECT nothing_there FROM memories_memory")
        assert Memory.objects.exists()


def test_who_leaves_sees_nothing_from_the_next_statement_on(world: World) -> None:
    cast = world.cast
    with acting_as(cast.viewer.pk):
        assert Memory.objects.filter(workspace=cast.workspace).exists()
        with as_system():
            Membership.objects.filter(user=cast.viewer, workspace=cast.workspace).delete()
        assert not Memory.objects.filter(workspace=cast.workspace).exists()


ATTACKS = {
    "copied out": "COPY (SELECT content FROM memories_memory) TO STDOUT",
    "copied in": "COPY workspaces_membership (workspace_id, user_id, role) FROM STDIN",
    "emptied": "TRUNCATE memories_memory CASCADE",
    "sessions": "SELECT session_key FROM django_session",
    "the secret of single sign-on": "SELECT secret FROM socialaccount_socialapp",
    "policies dropped": "DROP POLICY memoryhub_rows ON memories_memory",
    "policies off": "ALTER TABLE memories_memory DISABLE ROW LEVEL SECURITY",
    "policies not asked": "SET LOCAL row_security = off; SELECT content FROM memories_memory",
    "a table of one's own": "CREATE TABLE public.mine AS SELECT * FROM memories_memory",
    "a view": "CREATE VIEW public.mine AS SELECT * FROM memories_memory",
    "a function that others call": "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a trigger": "CREATE TRIGGER mine AFTER INSERT ON memories_memory EXECUTE FUNCTION workspaces_forget_passages()",
    "another person": "SELECT memoryhub_become(1)",
    "a file of the server": "SELECT pg_read_file('/etc/passwd')",
    "a program on the server": "COPY workspaces_spent FROM PROGRAM 'true'",
    "a group's rights": "INSERT INTO workspaces_user_groups (user_id, group_id) SELECT id, 1 FROM workspaces_user",
    "rights of a group": "INSERT INTO auth_group_permissions (group_id, permission_id) VALUES (1, 1)",
    "a program that a worker runs": "UPDATE django_q_schedule SET func = 'os.system'",
    "statistics": "SELECT stavalues1 FROM pg_statistic",
}


@pytest.mark.parametrize("statement", ATTACKS.values(), ids=ATTACKS.keys())
def test_sql_of_an_attacker_under_the_role_is_refused(world: World, statement: str) -> None:
    with acting_as(world.cast.stranger.pk), transaction.atomic():
        ask("SELECT 1")
        with (
            pytest.raises((ProgrammingError, NotSupportedError, InternalError)) as refused,
            transaction.atomic(),
        ):
            if statement.startswith("COPY (SELECT"):
                with connection.cursor() as cursor, cursor.copy(statement) as rows:
                    assert list(rows) == []
                raise ProgrammingError("nothing came")
            ask(statement)
    assert world.cast.owner.username not in str(refused.value)


def test_a_leaky_function_of_the_attacker_is_asked_about_own_rows_alone(world: World) -> None:
    """Postgres asks a policy before what may tell of its arguments, such as a function that raises them."""
    stranger, told = world.cast.stranger, []
    with acting_as(stranger.pk), transaction.atomic():
        ask("SELECT 1")
        bare: psycopg.Connection = connection.connection
        bare.add_notice_handler(lambda notice: told.append(notice.message_primary))
        ask(
            "CREATE FUNCTION pg_temp.tell(said text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
            "$$ BEGIN RAISE NOTICE '%', said; RETURN true; END $$"
        )
        assert ask("SELECT count(*) FROM memories_memory WHERE pg_temp.tell(content)") == [(0,)]
        estimates = ask("SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'memories_memory'")
    assert told == []
    assert estimates == []


def test_a_web_process_asks_nothing_for_nobody(world: World) -> None:
    token = acting._acting.set(None)
    try:
        with pytest.raises(NobodyActs):
            ask("SELECT content FROM memories_memory")
    finally:
        acting._acting.reset(token)


def test_a_command_proves_it_and_finds_what_was_altered(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("row_security", enable=True)
    assert "Everything stood as it should" in capsys.readouterr().out
    call_command("check_isolation", people=4)
    assert "None of them was another's" in capsys.readouterr().out
    ask(
        "SET CONSTRAINTS ALL IMMEDIATE"
    )  # what waits for the end of a transaction keeps tables from being altered
    for wrong, finds in (
        ("ALTER POLICY memoryhub_rows ON memories_memory USING (true)", "memories_memory"),
        ("ALTER TABLE chat_message DISABLE ROW LEVEL SECURITY", "chat_message"),
        (f"ALTER ROLE {ROLE} BYPASSRLS", "let past"),
    ):
        with transaction.atomic():
            ask(wrong)
            with pytest.raises(CommandError, match="1 thing is wrong"):
                call_command("check_isolation", people=4)
            assert finds in capsys.readouterr().out
            [short] = proof.in_short()
            assert short.startswith("row security: ") and finds in short and "--enable" in short
            transaction.set_rollback(True)
    assert proof.in_short() == []


@pytest.mark.parametrize(
    ("wrong", "finds"),
    [
        (f"GRANT TRUNCATE ON chat_message TO {ROLE}", "TRUNCATE ON chat_message"),
        (f"GRANT SELECT (session_key) ON django_session TO {ROLE}", "SELECT ON django_session"),
        ("GRANT SELECT ON django_session TO PUBLIC", "SELECT ON django_session"),
        (f"GRANT UPDATE ON auth_group TO {ROLE}", "UPDATE ON auth_group"),
        ("CREATE VIEW every_one AS SELECT content FROM memories_memory", "SELECT, INSERT, UPDATE, DELETE ON every_one"),
        ("CREATE TABLE copied AS SELECT * FROM memories_memory", "SELECT, INSERT, UPDATE, DELETE ON copied"),
        (
            "CREATE FUNCTION every_one() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS "
            "$$ SELECT content FROM memories_memory $$",
            "EXECUTE ON FUNCTION every_one()",
        ),
    ],
)  # fmt: skip
def test_a_right_that_no_rule_gives_is_found_with_the_statement_that_takes_it_away(
    world: World, wrong: str, finds: str
) -> None:
    assert proof.troubles_with_rights() == []
    ask(wrong)
    [said] = proof.troubles_with_rights()
    remedy = said[said.index("REVOKE") :].rstrip(".")
    assert finds in remedy
    ask(remedy)
    assert proof.troubles_with_rights() == []


def test_a_view_that_asks_as_who_asks_it_is_right() -> None:
    ask("CREATE VIEW mine WITH (security_invoker) AS SELECT content FROM memories_memory")
    assert proof.troubles_with_rights() == []


@pytest.mark.parametrize(
    ("table", "sees"),
    [("memories_memory", "true"), ("workspaces_passagevector", "place > 0"), ("chat_import", "true")],
)
def test_the_proof_itself_finds_a_wrong_rule(world: World, table: str, sees: str) -> None:
    """Of a policy that is as its rule says, but whose rule is wrong."""
    cast = world.cast
    make_memory("The safe is behind the clock", cast.owner, cast.workspace)
    ask(f"DROP POLICY memoryhub_rows ON {table}")
    ask(f"CREATE POLICY memoryhub_rows ON {table} TO {ROLE} USING ({sees})")
    _asked, said = proof.leaks(10)
    assert any(table in each for each in said), said


def test_every_table_has_a_rule() -> None:
    """Also one that a migration brings tomorrow: without a word about whose its rows are, all would be seen by all."""
    assert policies.without_rule() == []
    said = {table for table, rule in policies.table_rules().items()}
    there = {name for (name,) in ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert there <= said, there - said
    for model in policies.models():
        rule = policies.table_rules()[model._meta.db_table]
        names_whose = any(f.related_model in (User, Workspace) for f in model._meta.concrete_fields)
        assert rule.sees or not names_whose, f"{model._meta.label} is somebody's, and open to all"
        assert bool(rule.sees) + bool(rule.open_because) + bool(rule.shut_because) == 1, model._meta.label


def test_the_application_forgets_to_filter_and_nothing_leaks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule of the application taken out, as a mistake would: the database answers as before."""
    cast = world.cast
    make_memory("The safe is behind the clock", cast.owner, cast.workspace)
    everywhere = SearchArea(cast.workspace.pk, cast.owner.pk).params
    everyones = type(Memory.objects.all())
    monkeypatch.setattr(everyones, "visible_to", lambda self, user: self)
    with acting_as(cast.stranger.pk):
        assert list(Memory.objects.all().visible_to(cast.stranger)) == []
        assert words.match_contains("clock", {"now": timezone.now(), **everywhere}, 10) == []
    with acting_as(cast.owner.pk):
        assert Memory.objects.filter(content__contains="clock").count() == 1
