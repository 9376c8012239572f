"""`make licences`: what is installed, under which licence. Fails on one that is not known or not accepted.

A distribution says its licence in one of three ways, the newest first: an SPDX expression, classifiers, or free text.
What says none of them, or something else than its files do, was looked at and stands in LOOKED_AT.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import metadata

# In how their names begin once case and punctuation are dropped. None of these asks anything of who runs a server
# or of the sources of MemoryHub itself; LGPL and MPL ask it of changes to their own files.
ACCEPTED = (
    "0bsd", "2 clause bsd", "3 clause bsd", "apache", "bsd", "cc0", "cnri python", "gnu lesser", "isc", "lgpl", "mit",
    "mozilla public license 2 0", "mpl 2 0", "psf", "python software foundation", "zlib",
)  # fmt: skip
# Whatever else is said beside it.
NEVER = re.compile(r"\b(agpl\w*|affero|gpl\w*|sspl\w*|busl\w*|proprietary|non ?commercial)\b")
# By name: the licence that its files say.
LOOKED_AT = {
    "axe-playwright-python": "MIT",  # its metadata says none
    "qrcode": "BSD-3-Clause AND MIT",  # "other" is what a classifier calls the MIT part
    "fido2": "BSD-2-Clause AND Apache-2.0 AND MPL-2.0",  # one classifier for each part
    "pytest-django": "BSD-3-Clause",  # a sentence with an address in it
}
# Copyleft, accepted for a tool that is run on our files and given to nobody: nothing of MemoryHub imports it.
TOOLS = {"djlint": "GPL-3.0-or-later"}


def licence_of(distribution: metadata.Distribution) -> str:
    """Its licence in words, empty where it says none."""
    said = distribution.metadata
    name = canonical(said["Name"])
    if name in LOOKED_AT:
        return LOOKED_AT[name]
    if expression := said.get_all("License-Expression"):
        return str(expression[0])
    classifiers = [
        line.split(" :: ")[-1]
        for line in said.get_all("Classifier") or []
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    first_line = "".join(said.get_all("License") or []).strip().split("\n")[0]
    return " AND ".join(classifiers) or first_line


def is_accepted(name: str, licence: str) -> bool:
    """Every licence of an AND, one of an OR, is on the list; all of them where parentheses mix the two."""
    if TOOLS.get(canonical(name)) == licence:
        return True
    choices = [licence] if "(" in licence else licence.split(" OR ")
    return any(all(map(_is_known, re.split(" AND | OR ", each))) for each in choices)


def canonical(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def rows(distributions: Iterable[metadata.Distribution]) -> list[tuple[str, str, str, bool]]:
    """Name, version, licence and whether it is accepted, by name."""
    found = {}
    for each in distributions:
        name, licence = each.metadata["Name"], licence_of(each)
        found[canonical(name)] = (name, each.version, licence or "says none", is_accepted(name, licence))
    return [found[name] for name in sorted(found)]


def main() -> None:
    listed = rows(metadata.distributions())
    for name, version, licence, accepted in listed:
        sys.stdout.write(f"{name:28} {version:18} {licence}{'' if accepted else '   <- not accepted'}\n")
    refused = [name for name, _, _, accepted in listed if not accepted]
    if refused:
        sys.exit(
            f"Not accepted, or not known: {', '.join(refused)}. Read the licence among its files; what may stay is "
            "named in memoryhub/licences.py."
        )
    sys.stdout.write(f"{len(listed)} distributions, each under a licence that is accepted.\n")


def _is_known(licence: str) -> bool:
    words = " ".join(re.split(r"[^a-z0-9]+", licence.lower())).strip()
    return not NEVER.search(words) and any(
        words == known or words.startswith(f"{known} ") for known in ACCEPTED
    )


if __name__ == "__main__":
    main()
