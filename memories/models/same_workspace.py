"""A foreign key from a memory to another of its own workspace, whose joins say so."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.lookups import Exact


class KeyInSameWorkspace(models.ForeignKey[Any, Any]):
    """A foreign key whose joins name the workspace too, the column that memories can be distributed by."""

    def get_extra_restriction(self, alias: Any, related_alias: Any) -> Any:
        workspace: Any = self.model._meta.get_field("workspace")
        return Exact(workspace.get_col(alias), workspace.get_col(related_alias))

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """To the database it is a foreign key as any."""
        name, _, args, given = super().deconstruct()
        return name, "django.db.models.ForeignKey", list(args), dict(given)
