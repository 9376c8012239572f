"""Of each table whose rows a person sees: one line of SQL over the row's own columns, said by the room it belongs to.

Policies are made of these lines (``policies``). What ``visible_to`` of a model says is the application's own rule; a
line here says the same a second time, or more loosely, to a database that trusts no query.
"""

from __future__ import annotations

from dataclasses import dataclass

from workspaces.index.places import AGENT_PLACES

# Whose transaction it is, as ``memoryhub_become`` set it (``policies``). In a subquery it is asked once a statement and
# not once a row; a function of our own around it would be parsed anew for each statement that is planned.
PERSON = "(SELECT nullif(current_setting('memoryhub.person', true), '')::bigint)"
WORKSPACES = "((SELECT nullif(current_setting('memoryhub.workspaces', true), '')::bigint[])::bigint[])"


@dataclass(frozen=True)
class Rule:
    """SQL, in which ``{row}`` is the table. ``sees``: of which rows a person's statements know. ``changes``: of those,
    which they may write; empty: all. ``names``: the column of who is shown with it, also when they have left.

    ``open_because``: there are no rows of anybody, so all are seen; why. ``shut_because``: nothing is granted at all.
    ``only_read``: whose rows they ever are, a person writes none.
    """

    sees: str = ""
    changes: str = ""
    names: str = ""
    open_because: str = ""
    shut_because: str = ""
    only_read: bool = False


_rules: dict[str, Rule] = {}


def register_rules(rules: dict[str, Rule]) -> None:
    """By the label of the model, as ``chat.Chat``. Each is said once."""
    if twice := rules.keys() & _rules.keys():
        raise ValueError(f"said twice: {sorted(twice)}")
    _rules.update(rules)


def rules() -> dict[str, Rule]:
    return dict(_rules)


def of_workspace(more: str = "", *, column: str = "workspace_id", names: str = "") -> Rule:
    """Everybody's in the workspace, as far as ``more`` says so."""
    return Rule(f"{column} = ANY {WORKSPACES}" + (f" AND ({more})" if more else ""), names=names)


def of_person(column: str = "user_id") -> Rule:
    return Rule(f"{column} = {PERSON}")


def of_either() -> Rule:
    """A workspace's or a person's, such as a budget."""
    return Rule(f"workspace_id = ANY {WORKSPACES} OR user_id = {PERSON}")


def with_row(table: str, column: str, more: str = "true") -> Rule:
    """As far as the row is seen that it belongs to: the policy of that table is asked, too. ``p`` is that row."""
    return Rule(f"EXISTS (SELECT 1 FROM {table} p WHERE p.id = {{row}}.{column} AND {more})")


def of_place() -> Rule:
    """Of the index, whose rows name a place (``workspaces.index.places``)."""
    return Rule(
        f"place = ANY {WORKSPACES} OR place = -{PERSON} OR (place > {AGENT_PLACES} AND "
        f"EXISTS (SELECT 1 FROM workspaces_agent a WHERE a.id = {{row}}.place - {AGENT_PLACES}))"
    )


def nobodys(why: str, *, only_read: bool = False) -> Rule:
    return Rule(open_because=why, only_read=only_read)


def shut(why: str) -> Rule:
    return Rule(shut_because=why)
