"""A text that a tool reads to the model in portions, as data."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from chat.models import ToolOutcome
from chat.prompting.provenance import Shown
from chat.prompting.text import escape
from chat.tools.base import Arguments, Result, ToolCaller, at_most, within
from memoryhub.errors import NotFound
from memoryhub.llm.errors import ModelNotLocal
from workspaces.models import Artifact, Document
from workspaces.policy import stays_elsewhere

READ_AT_ONCE = 6000  # characters


Owned = TypeVar("Owned", Document, Artifact)


class ToRead(Arguments):
    id: Annotated[str, at_most(40)]
    start: Annotated[int, *within(0, 10**9)] = Field(0, alias="from")


def require_in_reach(caller: ToolCaller, found: Owned) -> Owned:
    """NotFound for what is of another workspace, and for the person's own where others read along; ModelNotLocal for
    what never leaves this machine.
    """
    is_here = found.workspace_id == caller.workspace.pk if found.owner_id is None else caller.reach.personal
    if not is_here:
        raise NotFound
    if caller.reach.leaves and (caller.workspace.local_only or found.workspace.local_only):
        raise ModelNotLocal
    return found


def portion(caller: ToolCaller, found: Owned, title: str, text: str, shown: Shown, *, of: int) -> Result:
    """The text of what is ``shown`` of this one, which has so many characters, and where to go on."""
    start = shown.begins
    if not text:
        return Result("There is no text from there on.", ToolOutcome.FOUND)
    ends = start + len(text)
    go_on = f"\n(go on from {ends} of {of})" if ends < of else ""
    lines = "\n".join(map(escape, text.splitlines()))
    said = f"# {title}, characters {start} to {ends}\n{lines}{go_on}"
    return Result(
        said,
        ToolOutcome.FOUND,
        count=1,
        personal=found.is_personal,
        stays_here=stays_elsewhere(found, caller.workspace),
        shown=(shown,),
    )
