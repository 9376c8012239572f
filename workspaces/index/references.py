"""Foreign keys to a table that is in parts, where Postgres can keep none: no key over parts is of the ``id`` alone.

Triggers do there what Postgres' own do: at the end of a transaction a row refers to one that is there, and holds it,
and one that others refer to is not deleted. They have the names of the foreign keys, which come back when the table is
whole.
"""

from __future__ import annotations

from typing import NamedTuple

from workspaces.index.parted_tables import Table, parts_of, rows, run


class Reference(NamedTuple):
    """A table's column that refers to the ``id`` of another, by the foreign key of this name."""

    table: str
    name: str
    column: str


class NotAsDjangos(Exception):
    """A foreign key that does more than refuse, or names other columns: triggers do not stand in for it."""


_KEY = "FOREIGN KEY ({column}) REFERENCES {name}(id) DEFERRABLE INITIALLY DEFERRED"
_KEYS = """
SELECT k.conrelid::regclass::text, quote_ident(k.conname), quote_ident(a.attname), pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
WHERE k.confrelid = %s::regclass AND k.contype = 'f' AND k.conparentid = 0 ORDER BY 1, 2
"""
_STANDING_IN = """
SELECT t.tgrelid::regclass::text, quote_ident(t.tgname), quote_ident(a.attname)
FROM pg_trigger t JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = t.tgattr[0]
WHERE t.tgfoid = to_regproc(%s) AND t.tgparentid = 0 ORDER BY 1, 2
"""
_UNCHECKED = """
SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint
WHERE confrelid = %s::regclass AND contype = 'f' AND NOT convalidated
"""
# As its owner, as Postgres' own do. A plan that serves all values: each part is looked into anyway.
_HEAD = """
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
"""
# A row that has since changed or is gone refers to nothing.
_FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION {{name}}_is_there() RETURNS trigger {_HEAD} AS $$
DECLARE
    referred bigint := to_jsonb(NEW) ->> TG_ARGV[0];
    is_missing boolean := false;
BEGIN
    PERFORM 1 FROM {{name}} WHERE id = referred FOR KEY SHARE;
    IF NOT FOUND AND referred IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s WHERE %I = $1)', TG_RELID::regclass, TG_ARGV[0])
        INTO is_missing USING referred;
    END IF;
    IF is_missing THEN
        RAISE foreign_key_violation USING
            MESSAGE = format('%s refers to {{name}} %s, which is not there', TG_TABLE_NAME, referred),
            CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION {{name}}_is_referred_to() RETURNS trigger {_HEAD} AS $$
DECLARE
    is_referred boolean;
BEGIN
    IF EXISTS (SELECT 1 FROM {{name}} WHERE id = OLD.id) THEN
        RETURN NULL;  -- it went to another part
    END IF;
    FOR n IN 0 .. TG_NARGS - 1 BY 2 LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s WHERE %s = $1)', TG_ARGV[n], TG_ARGV[n + 1])
        INTO is_referred USING OLD.id;
        IF is_referred THEN
            RAISE foreign_key_violation USING
                MESSAGE = format('{{name}} %s is still referred to from %s', OLD.id, TG_ARGV[n]), TABLE = TG_TABLE_NAME;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION {{name}}_is_there(), {{name}}_is_referred_to() FROM PUBLIC
"""  # noqa: S608  names of the catalogue
_OF_REFERRING = """
CREATE CONSTRAINT TRIGGER {reference.name} AFTER INSERT OR UPDATE OF {reference.column} ON {reference.table}
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {name}_is_there('{reference.column}')
"""
_OF_REFERRED = """
CREATE CONSTRAINT TRIGGER is_referred_to AFTER DELETE ON {name}
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {name}_is_referred_to({references})
"""


def references_to(table: Table) -> list[Reference]:
    """Raises NotAsDjangos."""
    keys = rows(_KEYS, [table.name])
    for _, name, column, definition in keys:
        if definition.removesuffix(" NOT VALID") != _KEY.format(column=column, name=table.name):
            raise NotAsDjangos(f"{name}: {definition}")
    standing_in = rows(_STANDING_IN, [f"{table.name}_is_there"])
    return [Reference(*found[:3]) for found in keys + standing_in]


def lift(table: Table, found: list[Reference]) -> None:
    """Before the table ends."""
    in_parts = parts_of(table)
    for each in found:
        if in_parts:
            run(f"DROP TRIGGER {each.name} ON {each.table}")
        else:
            run(f"ALTER TABLE {each.table} DROP CONSTRAINT {each.name}")


def put_back(table: Table, found: list[Reference], parts: int) -> None:
    """To the table in its place. Foreign keys hold of what is written from now on: see ``check``."""
    name = table.name
    if not parts:
        for each in found:
            key = _KEY.format(column=each.column, name=name)
            run(f"ALTER TABLE {each.table} ADD CONSTRAINT {each.name} {key} NOT VALID")
        run(f"DROP FUNCTION IF EXISTS {name}_is_there(), {name}_is_referred_to()")
    elif found:
        run(_FUNCTIONS.format(name=name))
        for each in found:
            run(_OF_REFERRING.format(name=name, reference=each))
        pairs = ", ".join(f"'{each.table}', '{each.column}'" for each in found)
        run(_OF_REFERRED.format(name=name, references=pairs))


def unchecked(table: Table) -> list[str]:
    """The statements that check, of foreign keys that came back, what was written before; each may take long."""
    found = rows(_UNCHECKED, [table.name])
    return [f"ALTER TABLE {child} VALIDATE CONSTRAINT {name}" for child, name in found]
