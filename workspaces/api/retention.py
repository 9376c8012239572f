"""Retention rules of a workspace over REST."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces import retention as rules
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.rest.docs import documented_under
from workspaces.rest.fields import Body, WholeNumber
from workspaces.rest.views import ApiView

documented = documented_under("workspaces")


def _days(name: str, help_text: str) -> WholeNumber:
    allowed = rules.bounds(name)
    return WholeNumber(
        min_value=allowed.least,
        max_value=allowed.most or rules.MOST_DAYS,
        allow_null=True,
        required=False,
        help_text=help_text,
    )


class RetentionBody(Body):
    example = {"chats": 365, "memories": 180, "documents": None}
    chats = _days("chats", "After the last message. null: for good.")
    memories = _days("memories", "After they were last changed, or used by an answer.")
    documents = _days("documents", "After their last change.")
    artifacts = _days("artifacts", "After their last change.")
    activity = _days("activity", "After each entry.")


class RulesJson(serializers.Serializer[Any]):
    example = {"chats": 365, "memories": 180, "documents": None, "artifacts": None, "activity": 365}
    chats = serializers.IntegerField(allow_null=True)
    memories = serializers.IntegerField(allow_null=True)
    documents = serializers.IntegerField(allow_null=True)
    artifacts = serializers.IntegerField(allow_null=True)
    activity = serializers.IntegerField(allow_null=True)


class RetentionJson(serializers.Serializer[Any]):
    example = {"rules": RulesJson.example, "in_force": RulesJson.example, "purged_after": 30}
    rules = RulesJson(help_text="The owners' own, in days. null: none.")
    in_force = RulesJson(help_text="The shorter of them and what the operator allows at most.")
    purged_after = serializers.IntegerField(
        allow_null=True, help_text="Days from being deleted until it is gone for good. null: it never is."
    )


class WouldGoJson(serializers.Serializer[Any]):
    example = {"would_go": {"chats": 12, "memories": 40}}
    would_go = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many, as far as you may know of them, by kind."
    )


def retention_json(present: rules.Rules) -> dict[str, Any]:
    return {
        "rules": {name: present[name] for name in rules.NAMES},
        "in_force": rules.in_force(present),
        "purged_after": settings.PURGE_AFTER_DAYS or None,
    }


class WorkspaceRetention(ApiView):
    @documented("workspace_retention_get", RetentionJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Read how long a workspace keeps things."""
        workspace = get_workspace(self.person, workspace_id)
        return Response(retention_json(rules.rules_of(workspace)))

    @documented("workspace_retention_set", RetentionJson, body=RetentionBody)
    def put(self, request: Request, workspace_id: str) -> Response:
        """Set how long a workspace keeps things.

        Owners only. What is older is deleted from a day after on, and can be restored until it is purged. Pinned chats
        and memories stay. What you leave out has no rule.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        days = {**dict.fromkeys(rules.NAMES), **self.body(RetentionBody)}
        return Response(
            retention_json(rules.set_rules(workspace, by=self.person, now=timezone.now(), **days))
        )


class RetentionPreview(ApiView):
    @documented("workspace_retention_preview", WouldGoJson, body=RetentionBody)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Count what would go by some rules.

        Owners only. Nothing is set or deleted.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        days = self.body(RetentionBody)
        rules.check(days)
        return Response({"would_go": rules.would_go(workspace, days, by=self.person, now=timezone.now())})
