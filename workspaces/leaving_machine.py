"""What may leave this machine, and who reads what becomes of it: one value, made where a workspace is known, and passed
on to whatever recalls, embeds or puts text before a model. It has no defaults.
"""

from __future__ import annotations

from dataclasses import dataclass

from memoryhub.llm.errors import ModelNotLocal
from workspaces.models import Workspace


@dataclass(frozen=True)
class Reach:
    """``local_only``: texts of the workspace are embedded on this machine or not at all. ``leaves``: what is found goes
    to a model elsewhere. ``personal``: the person's own memories may be among it; False where others read along.
    """

    local_only: bool
    leaves: bool
    personal: bool

    @classmethod
    def here(cls, workspace: Workspace) -> Reach:
        """What is stored, or shown to the person who asks and to nobody else."""
        return cls(workspace.local_only, leaves=False, personal=True)

    @classmethod
    def to_model(cls, workspace: Workspace, *, is_local: bool, personal: bool) -> Reach:
        """What a model is shown. Raises ModelNotLocal where the workspace's memories may not reach it."""
        if workspace.local_only and not is_local:
            raise ModelNotLocal
        return cls(workspace.local_only, leaves=not is_local, personal=personal)
