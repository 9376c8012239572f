"""Whether the policies of a database hold, asked of that database: as its people, with queries that filter nothing.

What a row is somebody's by is found out anew from the foreign keys, not from the rules that the policies are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import ProgrammingError, connection, transaction
from django.db.models import ForeignKey, Model, QuerySet

from memoryhub.database.acting import acting_as, as_system
from memoryhub.database.guarded.base import ROLE
from workspaces.index.places import AGENT_PLACES
from workspaces.isolation import policies
from workspaces.isolation.rules import Rule
from workspaces.models import Agent, Connection, Membership, PersonPicture, User, Workspace

_ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE")
NOBODY = 2**62  # a key that no person has
_ROLE = """
SELECT rolsuper, rolbypassrls, rolcanlogin,
       EXISTS (SELECT 1 FROM pg_class WHERE relowner = r.oid),
       EXISTS (SELECT 1 FROM pg_auth_members WHERE member = r.oid)
FROM pg_roles r WHERE rolname = %s
"""
_WRONG = (
    "is a superuser",
    "is let past policies",
    "may sign in",
    "owns tables",
    "is a member of another role",
)


# What it may do by itself, as everybody or in columns, in the order of the names; TRUNCATE asks no policy at all.
_RIGHTS = """
SELECT c.oid::regclass::text, c.relname,
       c.relrowsecurity AND NOT EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = c.oid)
       OR coalesce(c.reloptions @> '{security_invoker=true}', false),
       ARRAY(SELECT held FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) held
             WHERE has_any_column_privilege(%(role)s, c.oid, held))
       || ARRAY(SELECT held FROM unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER']) held
                WHERE has_table_privilege(%(role)s, c.oid, held))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_schema_privilege(%(role)s, n.oid, 'USAGE')
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1
"""
_PAST = """
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prosecdef AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND p.oid IS DISTINCT FROM to_regprocedure('memoryhub_knows(bigint)')
  AND has_schema_privilege(%(role)s, n.oid, 'USAGE') AND has_function_privilege(%(role)s, p.oid, 'EXECUTE')
ORDER BY 1
"""


@dataclass(frozen=True)
class Asked:
    """How much was asked: tables with policies, people, rows that they saw."""

    tables: int
    people: int
    rows: int


def in_short() -> list[str]:
    """For the doctor: what stands otherwise than it should, where row security is on. Nobody's rows are asked for."""
    if not settings.ROW_SECURITY:
        return []
    found = troubles_with_role() or troubles_with_policies() + troubles_with_rights()
    if not found:
        return []
    more = f" And {len(found) - 1} more." if len(found) > 1 else ""
    return [
        f"row security: {found[0]}{more} `manage.py row_security --enable` mends it, `check_isolation` says all."
    ]


def troubles_with_role() -> list[str]:
    """What would let it past the policies, in sentences."""
    with as_system(), connection.cursor() as cursor:
        cursor.execute(_ROLE, [ROLE])
        found = cursor.fetchone()
    if found is None:
        return [f"The role {ROLE} is not there: run `manage.py row_security --enable`."]
    return [f"The role {ROLE} {wrong}." for wrong, true in zip(_WRONG, found, strict=True) if true]


def troubles_with_policies() -> list[str]:
    """Tables that do not stand as the rules say, also where somebody has changed a policy by hand."""
    by_name = [f"{table}: its policies are not those of this version." for table in policies.stands()]
    return by_name or [f"{table}: a policy says something else than it should." for table in _altered()]


def troubles_with_rights() -> list[str]:
    """What it may do beside what the rules give it, with the statement that takes it away."""
    said, known = list[str](), policies.table_rules()
    with as_system(), connection.cursor() as cursor:
        cursor.execute(_RIGHTS, {"role": ROLE})
        for table, name, guarded, rights in cursor.fetchall():
            more = [each for each in rights if each not in _given(known.get(name), guarded)]
            if more:
                listed = ", ".join(more)
                said.append(
                    f"{table}: the role {ROLE} has {listed} on it, which no rule gives: "
                    f"REVOKE {listed} ON {table} FROM {ROLE}, PUBLIC."
                )
        cursor.execute(_PAST, {"role": ROLE})
        said += [
            f"{function} runs as its owner, whom no policy holds, and the role {ROLE} may call it: "
            f"REVOKE EXECUTE ON FUNCTION {function} FROM {ROLE}, PUBLIC."
            for (function,) in cursor.fetchall()
        ]
    return said


def _given(rule: Rule | None, guarded: bool) -> tuple[str, ...]:
    """The rights that a rule gives. A part has none: its row security without a policy shows nobody a row."""
    if rule is None:
        return _ROWS if guarded else ()
    return () if rule.shut_because else _ROWS[:1] if rule.only_read else _ROWS


def leaks(people: int) -> tuple[Asked, list[str]]:
    """Ask every table without a filter, as nobody and as so many of the people; what came that is not theirs."""
    said, rows = list[str](), 0
    guarded = [model for model in policies.models() if policies.table_rules()[model._meta.db_table].sees]
    with acting_as(NOBODY):
        said += [
            f"{model._meta.db_table}: nobody sees rows of it." for model in guarded if _for_nobody(model)
        ]
    said += _writes()
    chosen = _people(people)
    for person in chosen:
        with as_system():
            mine = set(Membership.objects.filter(user=person).values_list("workspace", flat=True))
            agents = Agent.objects.filter(workspace__in=mine).values_list("pk", flat=True)
            places = {*mine, -person, *(AGENT_PLACES + agent for agent in agents)}
        with acting_as(person):
            for model in guarded:
                rows += model._base_manager.count()
                if wrong := sum(found.count() for found in _of_others(model, person, mine, places)):
                    said.append(f"{model._meta.db_table}: {wrong} rows of others are seen.")
    return Asked(len(guarded), len(chosen), rows), said


def _people(number: int) -> list[int]:
    """Who came last, of those who are in a workspace."""
    with as_system():
        people = User.objects.filter(memberships__isnull=False).order_by("-pk").distinct()
        return list(people.values_list("pk", flat=True)[:number])


def _of_others(
    model: type[Model], person: int, mine: set[int], places: set[int]
) -> Iterator[QuerySet[Model]]:
    """Of all that they see the rows that name a workspace, a place or a person that is not theirs."""
    rows = model._base_manager.all()
    keys = [key for key in model._meta.concrete_fields if isinstance(key, ForeignKey)]
    names = {key.name for key in keys if key.related_model in (User, Workspace)}
    own = [name for name in ("user", "owner") if name in names]
    if "workspace" in names:
        elsewhere = rows.exclude(workspace=None).exclude(workspace__in=mine)
        for name in own:  # one's own stay one's own where one is no member any more
            elsewhere = elsewhere.exclude(**{name: person})
        yield elsewhere
    if "owner" in names and model is not Connection:  # one that is chosen somewhere is seen by its members
        yield rows.exclude(owner=None).exclude(owner=person)
    if {key.related_model for key in keys} == {User} and "user" in names and model is not PersonPicture:
        yield rows.exclude(user=person)
    if any(field.name == "place" for field in model._meta.concrete_fields):
        yield rows.exclude(place__in=places)


def _for_nobody(model: type[Model]) -> bool:
    """Whether somebody who is nobody sees a row; but connections that administrators made for all."""
    rows = model._base_manager.all()
    return (rows.exclude(owner=None) if model is Connection else rows).exists()


def _writes() -> Iterator[str]:
    """Nobody changes, deletes or adds a row. All of it is rolled back."""
    for statement in (
        "UPDATE workspaces_membership SET role = 'owner'",
        "UPDATE memories_memory SET content = content",
        "DELETE FROM chat_message",
    ):
        with acting_as(NOBODY), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
            if cursor.rowcount:
                yield f"Nobody could: {statement}."
            transaction.set_rollback(True)
    with as_system():
        place = Workspace.objects.order_by("pk").first()
    if place is not None:
        try:
            with acting_as(NOBODY), transaction.atomic():
                Workspace.objects.filter(pk=place.pk).update(name=place.name)
                Membership(workspace=place, user_id=NOBODY, role="owner").save(force_insert=True)
                yield "Nobody could make themselves a member."
        except ProgrammingError:
            pass


def _altered() -> Iterator[str]:
    """Compares the text that Postgres keeps with that of a policy made anew, which is rolled back."""
    for table, rule in policies.table_rules().items():
        if rule.sees:
            before = _texts(table)
            with policies.changing():
                policies.make_policies(table, rule)
                after = _texts(table)
                transaction.set_rollback(True)
            if before != after:
                yield table


def _texts(table: str) -> list[tuple[object, ...]]:
    with as_system(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT polname, polcmd, polpermissive, polroles, pg_get_expr(polqual, polrelid), "
            "pg_get_expr(polwithcheck, polrelid) FROM pg_policy WHERE polrelid = %s::regclass ORDER BY polname",
            [table],
        )
        return cursor.fetchall()
