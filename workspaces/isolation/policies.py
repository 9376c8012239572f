"""The role, the functions and the policies in the database: made of ``rules``, compared with what is there, taken away.

All of it is derived and no migration: whoever turns row security on runs one command after migrating, at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model

from memoryhub.database.acting import as_system
from memoryhub.database.guarded.base import ROLE
from workspaces.isolation.own_rules import TABLES
from workspaces.isolation.rules import Rule, rules

POLICY = "memoryhub_rows"
# Rows of one person, before it is said that they left nothing: without a name a chat is not seen, a memory is.
LOOKED_AT, MOST_LOOKED_AT = 1_000, 10_000
WAIT_MS = 5000  # for the lock of a table; then it is said, and nothing was changed

# The role last: before it, the connection's own looks up which workspaces they are. In one expression, which is half as
# dear as three.
_BECOME = f"""
CREATE OR REPLACE FUNCTION memoryhub_become(person bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('memoryhub.person', person::text, true),
        set_config('memoryhub.workspaces', coalesce(
            (SELECT array_agg(workspace_id)::text FROM {{memberships}} WHERE user_id = person), '{{{{}}}}'), true),
        set_config('role', '{ROLE}', true);
END $$;
REVOKE ALL ON FUNCTION memoryhub_become(bigint) FROM PUBLIC;
"""
# Past the policies, or a person could not be seen before the rows were that they left. It tells yes or no. What it
# costs is said so that it is asked of the people a query is about, by their keys, and not of all; it goes by indexes
# alone, since of a stranger there may be nothing to find.
_KNOWS = """
CREATE OR REPLACE FUNCTION memoryhub_knows(other bigint) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER
COST 1000000 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    mine bigint[] := nullif(current_setting('memoryhub.workspaces', true), '')::bigint[];
BEGIN
    IF EXISTS (
        SELECT 1 FROM {schema}.workspaces_membership WHERE user_id = other AND workspace_id = ANY (mine)
    ) THEN
        RETURN true;
    END IF;
    RETURN {there};
END $$;
REVOKE ALL ON FUNCTION memoryhub_knows(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memoryhub_knows(bigint) TO {role};
"""
_GRANTS = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE, SELECT ON SEQUENCES TO {role};
"""
_REVOKES = """
REVOKE ALL ON SCHEMA {schema} FROM {role};
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} REVOKE ALL ON TABLES FROM {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} REVOKE ALL ON SEQUENCES FROM {role};
"""
_STANDS = """
SELECT c.relname, c.relrowsecurity,
       coalesce(string_agg(obj_description(p.oid, 'pg_policy'), ',' ORDER BY p.polname), '')
FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid AND p.polname LIKE 'memoryhub\\_%%'
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.oid
"""


@dataclass
class Changed:
    """What a run of ``enable`` did: names of tables."""

    guarded: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)


def table_rules() -> dict[str, Rule]:
    """By table; those of models that nobody has said a word of are left out (``without_rule``)."""
    said = rules()
    found = {m._meta.db_table: said[m._meta.label] for m in models() if m._meta.label in said}
    return found | TABLES


def without_rule() -> list[str]:
    """The models that nobody has said of whose rows they have: a person's statements would see them all."""
    return sorted({m._meta.label for m in models()} - rules().keys())


def policies_of(table: str, rule: Rule) -> dict[str, str]:
    """The statements that make them, by name."""
    if not rule.sees:
        return {}
    sees, changes = (text.replace("{row}", table) for text in (rule.sees, rule.changes or rule.sees))
    made = {POLICY: f"CREATE POLICY {POLICY} ON {table} TO {ROLE} USING ({changes})"}
    if rule.changes:
        made[f"{POLICY}_seen"] = f"CREATE POLICY {POLICY}_seen ON {table} FOR SELECT TO {ROLE} USING ({sees})"
    return made


def enable() -> Changed:
    """Everything as the rules say, in one transaction; of tables that stand so already none is locked.

    Raises django.db.utils.ProgrammingError where the connection's role may not make another or does not own the tables.
    """
    with changing() as schema:
        _make_role()
        _run(_BECOME.format(memberships="workspaces_membership"))
        _run(_KNOWS.format(schema=schema, there=_there(schema), role=ROLE))
        _run(_GRANTS.format(schema=schema, role=ROLE))
        changed, standing, said = Changed(), _standing(schema), table_rules()
        for table, rule in said.items():
            if rule.shut_because or rule.only_read:
                _run(
                    f"REVOKE {'ALL' if rule.shut_because else 'INSERT, UPDATE, DELETE'} ON {table} FROM {ROLE}"
                )
            if standing[table] != _wanted(table, rule):
                guard(table, rule)
                (changed.guarded if rule.sees else changed.opened).append(table)
    return changed


def disable() -> int:
    """No policy and no role any more: as if it had never been on. How many tables had one."""
    with changing() as schema:
        guarded = [table for table, stands in _standing(schema).items() if stands != (False, "")]
        for table in guarded:
            guard(table, Rule())
        if _has_role():
            _run(_REVOKES.format(schema=schema, role=ROLE))
        for function in (
            "memoryhub_become(bigint)",
            "memoryhub_knows(bigint)",
            "memoryhub_person()",  # of earlier versions
            "memoryhub_workspaces()",
        ):
            _run(f"DROP FUNCTION IF EXISTS {function}")
    return len(guarded)


def stands() -> list[str]:
    """The tables that do not stand as the rules say."""
    with as_system():
        standing = _standing(_schema())
    return sorted(t for t, rule in table_rules().items() if standing.get(t) != _wanted(t, rule))


def models() -> list[type[Model]]:
    return [m for m in apps.get_models(include_auto_created=True) if m._meta.managed and not m._meta.proxy]


def _wanted(table: str, rule: Rule) -> tuple[bool, str]:
    return bool(rule.sees), ",".join(_digest(made) for _, made in sorted(policies_of(table, rule).items()))


def _digest(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()[:16]


def _standing(schema: str) -> dict[str, tuple[bool, str]]:
    with connection.cursor() as cursor:
        cursor.execute(_STANDS, [schema])
        return {table: (guarded, digests) for table, guarded, digests in cursor.fetchall()}


def guard(table: str, rule: Rule) -> None:
    make_policies(table, rule)
    _run(f"ALTER TABLE {table} {'ENABLE' if rule.sees else 'DISABLE'} ROW LEVEL SECURITY")


def make_policies(table: str, rule: Rule) -> None:
    """Those of the rule, in place of those that are there."""
    for name in (POLICY, f"{POLICY}_seen"):
        _run(f"DROP POLICY IF EXISTS {name} ON {table}")
    for name, made in policies_of(table, rule).items():
        _run(made)
        _run(f"COMMENT ON POLICY {name} ON {table} IS '{_digest(made)}'")


def _has_role() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE])
        return cursor.fetchone() is not None


def _make_role() -> None:
    """Roles are the server's, not the database's: it may be there for another database of it."""
    if not _has_role():
        _run(f"CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE")
    since_16 = connection.pg_version >= 16_00_00  # type: ignore[attr-defined]  # Postgres has it
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_has_role(%s, %s)", [ROLE, "SET" if since_16 else "MEMBER"])
        if not cursor.fetchone()[0]:
            how = " WITH INHERIT FALSE, SET TRUE" if since_16 else ""
            cursor.execute(f"GRANT {ROLE} TO CURRENT_USER{how}")


def _there(schema: str) -> str:
    """Whether a person has left something in one of the asker's workspaces under their name, as far as it is looked."""
    found = []
    for model in models():
        if (rule := rules().get(model._meta.label)) and rule.names:
            is_optional = next(
                field.null for field in model._meta.concrete_fields if field.column == rule.names
            )
            named = f"{schema}.{model._meta.db_table} WHERE {rule.names} = other"
            named += f" LIMIT {LOOKED_AT if is_optional else MOST_LOOKED_AT}"
            found.append(
                f"EXISTS (SELECT 1 FROM (SELECT workspace_id FROM {named}) theirs WHERE workspace_id = ANY (mine))"
            )
    return " OR ".join(found)


def _schema() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        return str(cursor.fetchone()[0])


@contextmanager
def changing() -> Iterator[str]:
    """One transaction and one process at a time; the schema of the tables."""
    with as_system(), transaction.atomic():
        _run("SELECT pg_advisory_xact_lock(hashtext('row security'))")
        _run(f"SET LOCAL lock_timeout = {WAIT_MS}")
        yield _schema()


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
