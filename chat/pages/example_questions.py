"""Example questions for the empty chat, made from what is remembered in its workspace."""

from __future__ import annotations

import re
from datetime import datetime

from django.utils.translation import gettext as _

from memories.usage import live_in
from workspaces.models import User, Workspace

MOST = 3
LOOKED_AT = 20  # the newest memories
LONGEST = 70  # characters of a statement that is quoted whole
# The subject of a statement that begins with an article or a possessive: "My project deadline" is March 15.
_SUBJECT = re.compile(
    r"(?P<subject>(?:my|our|the|mein\w*|unser\w*|der|die|das|mon|ma|mes|notre|nos|le|la|les|mi|mis|nuestr\w+|el|los|las"
    r"|meus?|minhas?|noss\w+|os?|as?)(?: [\w-]+){1,4}?)"
    r" (?:is|are|was|were|ist|sind|heißt|heißen|est|sont|s['\u2019]appelle|es|son|está|se llama|é|são|se chama) ",
    re.IGNORECASE,
)


def example_questions(workspace: Workspace, user: User, *, alone: bool, now: datetime) -> list[str]:
    """At most three questions that memories of this workspace answer. One query.

    Without ``alone`` others read what is asked here, so personal memories make no questions.
    """
    found = live_in(workspace, user, now).filter(agent=None)
    if not alone:
        found = found.filter(owner=None)
    newest = found.order_by("-created_at", "-id").values_list("content", flat=True)[:LOOKED_AT]
    questions = dict.fromkeys(filter(None, map(_question, newest)))
    return list(questions)[:MOST]


def _question(statement: str) -> str:
    """The question that this statement answers; empty where it is too long to be quoted."""
    if about := _SUBJECT.match(statement):
        subject = about["subject"]
        return _("What do you remember about %(subject)s?") % {"subject": subject[0].lower() + subject[1:]}
    statement = statement.strip().rstrip(".。!")
    if len(statement) > LONGEST or "\n" in statement:
        return ""
    return _("%(statement)s: what should I keep in mind?") % {"statement": statement}
