"""Many expressions as one that looks at each place of a text once."""

import re

# The few characters or words that a rule may begin with.
_LISTED = re.compile(r"(?:\[([A-Za-z0-9]+)\]|\(\?:([\w|-]+)\))(?![{?*+])")
_PLAIN = re.compile(r"[\w-](?![{?*+])")


def choice_of(rules: list[str], shared: int = 0) -> str:
    """Any of the rules, which have their first `shared` characters in common. Those that share more form a branch of
    their own: the parser takes what is shared out in front, so most branches are left after a single comparison.
    """
    branches: dict[str, list[str]] = {}
    for rule in dict.fromkeys(rules):
        plain = _PLAIN.match(rule, shared)
        branches.setdefault(rule[: shared + 1] if plain else rule, []).append(rule)
    return "|".join(
        f"(?:{choice_of(branch, shared + 1)})" if len(branch) > 1 else branch[0]
        for branch in branches.values()
    )


def spell_out(rule: str) -> list[str]:
    """The rule once for each character or word that it may begin with."""
    if match := _LISTED.match(rule):
        return [first + rule[match.end() :] for first in match[1] or match[2].split("|")]
    return [rule]
