"""Workspaces and who belongs to them, over REST."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.apps import apps
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.errors import NotFound
from workspaces import access
from workspaces.accounts.sign_in import require_fresh_password
from workspaces.actions import workspaces as actions
from workspaces.api.serializers import (
    MemberBody,
    MemberJson,
    RemovedJson,
    RoleBody,
    WorkspaceBody,
    WorkspaceChanges,
    WorkspaceJson,
    removed_json,
    workspace_json,
)
from workspaces.models import Membership, Role, User, Workspace, WorkspaceQuerySet
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
    request_example,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery, ReadyList
from workspaces.rest.views import ApiView

WORKSPACE = {
    "id": "ws_4fKq2TzB8mYw1RsX9vLcHn3D",
    "name": "Launch",
    "description": "Everything about the spring launch.",
    "role": "owner",
    "is_default": False,
    "private_short_term": False,
    "reviews_proposals": False,
    "local_only": False,
    "connection_id": None,
    "member_count": 3,
    "memory_count": 12,
    "created_at": "2026-03-07T10:30:00.000000Z",
    "updated_at": "2026-03-07T10:30:00.000000Z",
}
REMOVED = {"memory_words": 214, "memories": 12, "messages": 40, "chats": 3, "memberships": 3, "workspaces": 1}
MEMBER = {
    "id": "usr_8pRw5TzB2mYw1KsX9vLcHn3Q",
    "username": "maria",
    "role": "editor",
    "joined_at": "2026-03-07T10:30:00.000000Z",
}


def with_counts(workspaces: WorkspaceQuerySet, user: User, now: datetime) -> WorkspaceQuerySet:
    """Each with its ``member_count`` and ``memory_count`` in the same query."""
    # By name: who may see a memory is a rule of the room above this one, which must not be imported here.
    memories = (
        apps.get_model("memories", "Memory")
        .objects.visible_to(user)
        .live(now)
        .filter(workspace=OuterRef("pk"))
    )
    members = Membership.objects.filter(workspace=OuterRef("pk"))
    counts = {"memory_count": _count(memories), "member_count": _count(members)}
    return workspaces.select_related("connection").annotate(**counts)


def _count(rows: Any) -> Any:
    counted = rows.order_by().values("workspace").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted), 0)


def _visible(user: int, now: datetime) -> WorkspaceQuerySet:
    person = User(pk=user)
    return with_counts(Workspace.objects.visible_to(person), person, now)


_LIST = ReadyList(_visible, user=int, now=datetime)


def counted_json(workspace: Workspace, user: User) -> dict[str, Any]:
    """One workspace with its counts."""
    return workspace_json(_visible(user.pk, timezone.now()).get(pk=workspace.pk))


class WorkspaceList(ApiView):
    @documented(
        "List your workspaces",
        tag="workspaces",
        operation="workspaces_list",
        answers={200: page_of(WorkspaceJson, "Workspace")},
        query=PageQuery,
        description="The workspaces you are a member of, in the order they were made. "
        "Your own one is made on first sight.",
        examples=[page_example(WORKSPACE)],
    )
    def get(self, request: Request) -> Response:
        access.default_workspace(self.person)
        return self.page(
            _LIST.of(user=self.person.pk, now=timezone.now()),
            workspace_json,
            list_name=f"workspaces of {self.person.public_id}",
        )

    @documented(
        "Make a workspace",
        tag="workspaces",
        operation="workspaces_create",
        answers={201: WorkspaceJson},
        headers=ONCE,
        body=WorkspaceBody,
        writes=True,
        description="You become its owner.",
        examples=[
            request_example("A workspace", {"name": "Launch", "description": "Everything about the launch."}),
            answer_example("Made", WORKSPACE, code=201),
        ],
    )
    def post(self, request: Request) -> Response:
        body = self.body(WorkspaceBody)
        workspace = self.once(
            lambda: actions.create_workspace(**body, by=self.person),
            keep=lambda made: {"workspace": made.public_id},
            again=lambda note: access.get_workspace(self.person, note["workspace"]),
        )
        return Response(counted_json(workspace, self.person), status=status.HTTP_201_CREATED)


class WorkspaceDetail(ApiView):
    @documented(
        "Look at a workspace",
        tag="workspaces",
        operation="workspaces_get",
        answers={200: WorkspaceJson},
        errors=[404],
        examples=[answer_example("A workspace", WORKSPACE)],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        return Response(counted_json(access.get_workspace(self.person, workspace_id), self.person))

    @documented(
        "Change a workspace",
        tag="workspaces",
        operation="workspaces_update",
        answers={200: WorkspaceJson},
        body=WorkspaceChanges,
        errors=[404],
        writes=True,
        description="Owners only. What is left out stays as it is.",
        examples=[
            request_example("A new name", {"name": "Spring launch"}),
            answer_example("Changed", WORKSPACE),
        ],
    )
    def patch(self, request: Request, workspace_id: str) -> Response:
        workspace = access.get_workspace(self.person, workspace_id, need=Role.OWNER)
        changes = self.body(WorkspaceChanges)
        if "connection_id" in changes:
            changes["connection_id"] = changes["connection_id"] or ""
        actions.update_workspace(workspace, **changes, by=self.person)
        return Response(counted_json(workspace, self.person))

    @documented(
        "Delete a workspace",
        tag="workspaces",
        operation="workspaces_delete",
        answers={200: RemovedJson},
        errors=[404, 409],
        writes=True,
        description="Owners only. Deletes its chats and memories for good, from every table, and answers with what "
        "went. 409 for a person's own workspace. Needs a session whose person typed their password again in the last "
        "five minutes (`/accounts/reauthenticate/`): else 403 with code `reauthenticate`.",
        examples=[answer_example("Gone", {"removed": REMOVED})],
    )
    def delete(self, request: Request, workspace_id: str) -> Response:
        workspace = access.get_workspace(self.person, workspace_id, need=Role.OWNER)
        require_fresh_password(request._request)
        return Response(removed_json(actions.delete_workspace(workspace, by=self.person)))


class MemberList(ApiView):
    @documented(
        "List the members",
        tag="members",
        operation="members_list",
        answers={200: page_of(MemberJson, "Member")},
        query=PageQuery,
        errors=[404],
        description="In the order they came.",
        examples=[page_example(MEMBER)],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        workspace = access.get_workspace(self.person, workspace_id)
        return self.page(
            Membership.objects.filter(workspace=workspace).select_related("user"),
            MemberJson,
            list_name=f"members of {workspace.public_id}",
        )

    @documented(
        "Add a member",
        tag="members",
        operation="members_add",
        answers={201: MemberJson},
        headers=ONCE,
        body=MemberBody,
        errors=[404, 409],
        writes=True,
        description="Owners only. 409 when the person is a member already.",
        examples=[
            request_example("An editor", {"username": "maria", "role": "editor"}),
            answer_example("Added", MEMBER, code=201),
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = access.get_workspace(self.person, workspace_id, need=Role.OWNER)
        body = self.body(MemberBody)
        member = self.once(
            lambda: actions.add_member(workspace, user=body["username"], role=body["role"], by=self.person),
            keep=lambda made: {"member": made.user.public_id},
            again=lambda note: _membership(workspace, note["member"]),
        )
        return Response(MemberJson(member).data, status=status.HTTP_201_CREATED)


class MemberDetail(ApiView):
    @documented(
        "Change a member's role",
        tag="members",
        operation="members_update",
        answers={200: MemberJson},
        body=RoleBody,
        errors=[404, 409],
        writes=True,
        description="Owners only. 409 for the last owner, and for a person in their own workspace.",
        examples=[request_example("A viewer", {"role": "viewer"}), answer_example("Changed", MEMBER)],
    )
    def patch(self, request: Request, workspace_id: str, user_id: str) -> Response:
        workspace = access.get_workspace(self.person, workspace_id, need=Role.OWNER)
        member = actions.change_role(
            workspace,
            user=_membership(workspace, user_id).user,
            role=self.body(RoleBody)["role"],
            by=self.person,
        )
        return Response(MemberJson(member).data)

    @documented(
        "Remove a member",
        tag="members",
        operation="members_remove",
        answers={204: None},
        errors=[404, 409],
        writes=True,
        description="Owners remove anybody; anybody may leave. 409 for the last owner.",
    )
    def delete(self, request: Request, workspace_id: str, user_id: str) -> Response:
        leaving = user_id == self.person.public_id
        workspace = access.get_workspace(
            self.person, workspace_id, need=Role.VIEWER if leaving else Role.OWNER
        )
        actions.remove_member(workspace, user=_membership(workspace, user_id).user, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _membership(workspace: Workspace, user_id: str) -> Membership:
    members = Membership.objects.filter(workspace=workspace).select_related("user")
    member = members.filter(user__public_id=user_id).first()
    if member is None:
        raise NotFound(_("This member does not exist, or you do not have access to it."))
    return member
