"""Recall for a question, and the choice of memories that are used, for turns of chats and for requests of API
clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings

from chat.prompting.context import leave_out_what_does_not_fit, profile_block
from chat.prompting.text import prompt_text, tokens
from memories.models import Memory
from memories.recalling import overview
from memories.recalling.profile import profile_of
from memories.recalling.ranked_search import Recalled
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import Recall, recall, with_newer
from memories.recalling.receipts import split_recall
from memories.usage import count_live
from workspaces.models import Agent, User, Workspace
from workspaces.policy import Reach

LEFT_OUT = 5  # recalled but unused memories stored in a receipt
STANDING = ("instruction", "preference")  # categories of workspace memories that apply to any message
# Token budget of the profile, about ten lines; also at most a quarter of the budget for recalled memories.
PROFILE_TOKENS = 500


@dataclass(frozen=True)
class Found:
    """The result of a recall. ``verdicts`` states for each recalled memory whether it is used, else why not. ``stored``
    is the number of memories that could be recalled. ``profile`` holds the profile's memories, given in addition.
    """

    recall: Recall
    verdicts: list[tuple[bool, str]]
    threshold: float
    stored: int
    profile: Sequence[Recalled] = ()

    @property
    def more(self) -> int:
        """The number of memories that an overview leaves out."""
        return self.recall.more + len(self.recall.items) - len(self.used) if self.recall.more else 0

    def closing(self, page: str) -> str:
        """Return the last line of the recalled block, with the number of further memories and the URL of their
        ``page``.
        """
        return prompt_text("overview").format(count=self.more, page=page) if self.more else ""

    @property
    def used(self) -> list[Recalled]:
        return [item for item, (used, _) in zip(self.recall.items, self.verdicts, strict=True) if used]

    @property
    def given(self) -> list[Memory]:
        """The memories that the model receives, recalled ones and those of the profile."""
        return [item.memory for item in (*self.used, *self.profile)]


def with_profile(
    found: Found, workspace: Workspace, person: User, *, room: int, reach: Reach, now: datetime
) -> Found:
    """Add the person's profile and the workspace's standing memories that fit and were not recalled already."""
    profile = profile_of(workspace, person, reach=reach, now=now)
    room, recalled = min(PROFILE_TOKENS, room // 4), {item.memory.pk for item in found.used}
    standing = [memory for memory in profile.here if memory.pinned or memory.category in STANDING]
    lines: list[Recalled] = []
    for memory in (*profile.you, *standing):
        longer = [*lines, Recalled(memory, 0.0, {}, is_brief=True)]
        if memory.pk not in recalled and tokens(profile_block(longer, names_people=True)) <= room:
            lines = longer
    return replace(found, profile=lines)


def find_for_prompt(
    question: str,
    workspace: Workspace,
    person: User,
    *,
    agent: Agent | None,
    room: int,
    reach: Reach,
    now: datetime,
) -> Found:
    """Recall memories, and choose those that are relevant enough and fit into ``room`` tokens. Raises what ``recall``
    raises.
    """
    limit = settings.RECALL_LIMIT
    live = count_live(workspace, person, personal=reach.personal, now=now)
    threshold = injection_threshold(settings.RECALL_THRESHOLD, live)
    found = recall(
        question,
        workspace,
        person,
        limit=limit + LEFT_OUT,
        agent=agent,
        reach=reach,
        withheld=limit,
        now=now,
        lines=overview.LINES,
    )
    if found.overview is None:
        found = with_newer(found)
        verdicts = split_recall(found, threshold=threshold, limit=limit)
    else:
        verdicts = [(True, "")] * len(found.items)
    return Found(found, leave_out_what_does_not_fit(found.items, verdicts, room), threshold, live)
