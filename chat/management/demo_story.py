"""The demo's people, chats and memories: a small cinema on its way to reopening, as demo_story.json tells it.

Days count back from the moment the command runs; ``{opening}`` and the like are dates from that moment on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHARED, OWN = "shared", "own"
_STORY = json.loads(Path(__file__).with_suffix(".json").read_text())
SHARED_NAME: str = _STORY["shared_name"]
SHARED_DESCRIPTION: str = _STORY["shared_description"]
# Role in the shared workspace → (suffix of the user name, first name, last name)
PEOPLE: dict[str, tuple[str, str, str]] = {role: tuple(names) for role, names in _STORY["people"].items()}
DATES: dict[str, int] = _STORY["dates"]  # placeholders → days from now
# Of the shared workspace: assistants (name, description, instructions), nodes (name, kind, a word by which its
# memories are found) and relations of nodes.
ASSISTANTS, NODES, RELATIONS = (_STORY[name] for name in ("assistants", "nodes", "relations"))


@dataclass(frozen=True)
class DemoChat:
    """``says`` alternates: a person, the assistant, a person, … ``who`` speaks for the person."""

    name: str
    title: str
    place: str
    days: float
    says: list[str]
    who: str = "owner"


@dataclass(frozen=True)
class DemoMemory:
    """``at``: (name of a chat, position of the message it comes from). ``fields`` go into the draft."""

    name: str
    days: float
    category: str | None
    source: str
    text: str
    place: str = SHARED
    who: str = "owner"
    at: tuple[str, int] | None = None
    fields: dict[str, Any] = field(default_factory=dict)


CHATS = [DemoChat(**chat) for chat in _STORY["chats"]]
MEMORIES = [DemoMemory(**memory) for memory in _STORY["memories"]]
