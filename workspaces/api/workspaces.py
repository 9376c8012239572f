"""REST views of workspaces, their members, invitations, retention and assistants."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.errors import NotFound
from workspaces import retention as rules
from workspaces.access import default_workspace, get_workspace, require
from workspaces.accounts import invitations
from workspaces.actions import workspaces as actions
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Choice, Moment, Text, WholeNumber
from workspaces.api.idempotency import ONCE
from workspaces.api.paging import PageQuery, PreparedList
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import (
    InvitedJson,
    MemberBody,
    MemberJson,
    PersonJson,
    RemovedJson,
    RoleBody,
    WorkspaceBody,
    WorkspaceChanges,
    WorkspaceJson,
    removed_json,
)
from workspaces.models import Membership, Role, User, Workspace, WorkspaceQuerySet

of_members = documented_under("members")
of_workspaces = documented_under("workspaces")


def with_counts(workspaces: WorkspaceQuerySet, user: User, now: datetime) -> WorkspaceQuerySet:
    """Annotate the person's workspaces with ``member_count`` and ``memory_count``, in one query."""
    # By label, because this app must not import the memories app.
    memories = (
        apps.get_model("memories", "Memory")
        .objects.without_others_personal(user)
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


_LIST = PreparedList(_visible, user=int, now=datetime)


def counted_json(workspace: Workspace, user: User) -> Mapping[str, Any]:
    """Return a workspace as JSON values, with the numbers of its members and memories."""
    return WorkspaceJson(_visible(user.pk, timezone.now()).get(pk=workspace.pk)).data


class WorkspaceList(ApiView):
    @of_workspaces("workspaces_list", page_of(WorkspaceJson))
    def get(self, request: Request) -> Response:
        """List your workspaces.

        Workspaces you are a member of, oldest first. Your own workspace is created with the first request.
        """
        page = self._page()
        begins = not request.query_params.get("cursor")
        if begins and not any(each["is_default"] for each in page.data["items"]):
            default_workspace(self.person)
            page = self._page()
        return page

    def _page(self) -> Response:
        return self.page(
            _LIST.of(user=self.person.pk, now=timezone.now()),
            WorkspaceJson,
            list_name=f"workspaces of {self.person.public_id}",
        )

    @of_workspaces("workspaces_create", {201: WorkspaceJson}, body=WorkspaceBody, headers=ONCE)
    def post(self, request: Request) -> Response:
        """Create a workspace.

        You become its owner.
        """
        body = self.body(WorkspaceBody)
        workspace = self.make_once(lambda: actions.create_workspace(**body, by=self.person), get_workspace)
        return Response(counted_json(workspace, self.person), status=status.HTTP_201_CREATED)


class WorkspaceDetail(ApiView):
    @of_workspaces("workspaces_get", WorkspaceJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Get a workspace."""
        return Response(counted_json(get_workspace(self.person, workspace_id), self.person))

    @of_workspaces("workspaces_update", WorkspaceJson, body=WorkspaceChanges)
    def patch(self, request: Request, workspace_id: str) -> Response:
        """Change a workspace.

        Owners only. Fields you leave out stay as they are.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        changes = self.body(WorkspaceChanges)
        if "connection_id" in changes:
            changes["connection_id"] = changes["connection_id"] or ""
        actions.update_workspace(workspace, **changes, by=self.person)
        return Response(counted_json(workspace, self.person))

    @of_workspaces("workspaces_delete", RemovedJson, errors=[409], fresh=True)
    def delete(self, request: Request, workspace_id: str) -> Response:
        """Delete a workspace.

        Owners only. Removes its chats and memories for good, from every table, and returns the numbers of removed rows.
        409 for a person's own workspace.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        self.require_fresh_password()
        return Response(removed_json(actions.delete_workspace(workspace, by=self.person)))


class MemberQuery(PageQuery):
    status = Choice(["member", "invited"], default="member", help_text="Only these.")


class MemberList(ApiView):
    @of_members("members_list", page_of(MemberJson), query=MemberQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the members.

        In the order they joined. `status=invited`, for owners, lists those who have not accepted yet.
        """
        workspace = get_workspace(self.person, workspace_id)
        if self.query(MemberQuery)["status"] == "invited":
            require(workspace.role, Role.OWNER)
            return self.page(
                invitations.open_user_invitations(workspace, now=timezone.now()),
                MemberJson,
                list_name=f"invited to {workspace.public_id}",
            )
        return self.page(
            Membership.objects.filter(workspace=workspace).select_related("user"),
            MemberJson,
            list_name=f"members of {workspace.public_id}",
        )

    @of_members("members_add", {201: MemberJson}, body=MemberBody, headers=ONCE)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Invite a person.

        Owners only. They are `invited` and see nothing of the workspace until they accept. 409 if they are a member or
        invited already.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        body = self.body(MemberBody)
        who: dict[str, Any] = {"user": body["username"], "by": self.person, "now": timezone.now()}
        invitation = self.once(
            lambda: invitations.invite(workspace, role=body["role"], **who),
            keep=lambda invitation: {"invitation": invitation.public_id},
            reload=lambda note: workspace.invitations.select_related("user").get(
                public_id=note["invitation"]
            ),
        )
        return Response(MemberJson(invitation).data, status=status.HTTP_201_CREATED)


class MemberAccept(ApiView):
    @of_members("members_accept", MemberJson)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Accept an invitation to you.

        You are a member from then on. 404 if you are not invited.
        """
        which = {"workspace__public_id": workspace_id}
        return Response(
            MemberJson(invitations.accept_invited(by=self.person, now=timezone.now(), **which)).data
        )


class InvitationsOfMine(ApiView):
    @of_members("invitations_list", page_of(InvitedJson))
    def get(self, request: Request) -> Response:
        """List the invitations to you.

        Those that you can accept, oldest first.
        """
        rows = invitations.invitations_of(self.person, now=timezone.now())
        return self.page(rows, InvitedJson, list_name=f"invitations to {self.person.public_id}")


class MemberDetail(ApiView):
    @of_members("members_update", MemberJson, body=RoleBody, errors=[409])
    def patch(self, request: Request, workspace_id: str, user_id: str) -> Response:
        """Change a member's role.

        Owners only. 409 for the last owner, and for a person in their own workspace.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        member = actions.change_role(
            workspace,
            user=_membership(workspace, user_id).user,
            role=self.body(RoleBody)["role"],
            by=self.person,
        )
        return Response(MemberJson(member).data)

    @of_members("members_remove", errors=[409])
    def delete(self, request: Request, workspace_id: str, user_id: str) -> Response:
        """Remove a member, or end an invitation.

        Owners can remove anybody, and anybody can leave. 409 for the last owner. If the person has not accepted their
        invitation yet, an owner withdraws it this way, and the person declines it.
        """
        which = {"workspace__public_id": workspace_id, "user__public_id": user_id}
        with suppress(NotFound):
            invitations.close_user_invitation(by=self.person, now=timezone.now(), **which)
            return Response(status=status.HTTP_204_NO_CONTENT)
        leaving = user_id == self.person.public_id
        workspace = get_workspace(self.person, workspace_id, need=Role.VIEWER if leaving else Role.OWNER)
        actions.remove_member(workspace, user=_membership(workspace, user_id).user, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _membership(workspace: Workspace, user_id: str) -> Membership:
    members = Membership.objects.filter(workspace=workspace).select_related("user")
    member = members.filter(user__public_id=user_id).first()
    if member is None:
        raise NotFound(_("This member does not exist, or you do not have access to it."))
    return member


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
    @of_workspaces("workspace_retention_get", RetentionJson)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Get the retention rules of a workspace."""
        workspace = get_workspace(self.person, workspace_id)
        return Response(retention_json(rules.rules_of(workspace)))

    @of_workspaces("workspace_retention_set", RetentionJson, body=RetentionBody)
    def put(self, request: Request, workspace_id: str) -> Response:
        """Set the retention rules of a workspace.

        Owners only. The rules apply after one day. Older items are then deleted; they can be restored until they are
        purged. Pinned chats and memories stay. A field that you leave out has no rule.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        days = {**dict.fromkeys(rules.NAMES), **self.body(RetentionBody)}
        return Response(
            retention_json(rules.set_rules(workspace, by=self.person, now=timezone.now(), **days))
        )


class RetentionPreview(ApiView):
    @of_workspaces("workspace_retention_preview", WouldGoJson, body=RetentionBody)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Count what retention rules would delete.

        Owners only. Nothing is set or deleted.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.OWNER)
        days = self.body(RetentionBody)
        rules.check(days)
        return Response({"would_go": rules.would_go(workspace, days, by=self.person, now=timezone.now())})


documented = documented_under("assistants")


class AgentJson(serializers.Serializer[Any]):
    example = {"id": f"agent_{ID}", "name": "Proofreader", "instructions": "Correct spelling and grammar."}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    name = serializers.CharField(max_length=actions.AGENT_NAME_LENGTH)
    description = serializers.CharField(max_length=actions.AGENT_DESCRIPTION_LENGTH)
    instructions = serializers.CharField(help_text="What goes before the model in every chat with it.")
    created_by = PersonJson(allow_null=True)
    imported = serializers.BooleanField(
        read_only=True, help_text="Whether somebody else imported it under that person's name."
    )
    created_at = Moment()
    updated_at = Moment()
    archived_at = Moment(allow_null=True)


class AgentChanges(Body):
    example = {"instructions": "Correct spelling only."}
    name = Text(max_length=actions.AGENT_NAME_LENGTH, required=False)
    description = Text(max_length=actions.AGENT_DESCRIPTION_LENGTH, allow_blank=True, required=False)
    instructions = Text(max_length=actions.INSTRUCTIONS_LENGTH, allow_blank=True, required=False)


class AgentBody(AgentChanges):
    example = {"name": "Proofreader", "instructions": "Correct spelling and grammar."}
    name = Text(max_length=actions.AGENT_NAME_LENGTH)


class AgentQuery(PageQuery):
    state = Choice(["in_use", "archived"], default="in_use", help_text="Only these.")


class AgentList(ApiView):
    @documented("agents_list", page_of(AgentJson), query=AgentQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the assistants of a workspace.

        Oldest first; `state` chooses those in use or the archived ones.
        """
        workspace = get_workspace(self.person, workspace_id)
        state = self.query(AgentQuery)["state"]
        agents = workspace.agents.filter(archived_at__isnull=state == "in_use")
        return self.page(
            agents.select_related("workspace", "created_by"),
            AgentJson,
            list_name=f"agents of {workspace.public_id}, {state}",
        )

    @documented("agents_create", {201: AgentJson}, body=AgentBody, headers=ONCE)
    def post(self, request: Request, workspace_id: str) -> Response:
        """Create an assistant.

        Editors and owners only. 409 if another assistant in the workspace has this name, ignoring case, or if there are
        already fifty.
        """
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body, now = self.body(AgentBody), timezone.now()
        agent = self.make_once(
            lambda: actions.create_agent(workspace, **body, by=self.person, now=now), actions.get_agent
        )
        return Response(AgentJson(agent).data, status=status.HTTP_201_CREATED)


class AgentDetail(ApiView):
    @documented("agents_get", AgentJson)
    def get(self, request: Request, agent_id: str) -> Response:
        """Get an assistant."""
        return Response(AgentJson(actions.get_agent(self.person, agent_id)).data)

    @documented("agents_update", AgentJson, body=AgentChanges, errors=[409])
    def patch(self, request: Request, agent_id: str) -> Response:
        """Change an assistant.

        Fields you leave out stay as they are. Its chats follow new instructions from their next answer on.
        """
        agent = actions.get_agent(self.person, agent_id, need=Role.EDITOR)
        changed = actions.update_agent(agent, **self.body(AgentChanges), by=self.person, now=timezone.now())
        return Response(AgentJson(changed).data)

    @documented("agents_archive")
    def delete(self, request: Request, agent_id: str) -> Response:
        """Archive an assistant.

        It can no longer be chosen for new chats. Existing chats continue, and its memories are still recalled in them.
        `restore` undoes this.
        """
        agent = actions.get_agent(self.person, agent_id, need=Role.EDITOR)
        actions.archive_agent(agent, by=self.person, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AgentRestore(ApiView):
    @documented("agents_restore", AgentJson, errors=[409])
    def post(self, request: Request, agent_id: str) -> Response:
        """Restore an archived assistant.

        409 if another assistant has taken its name. Restoring one that is in use changes nothing.
        """
        agent = actions.get_agent(self.person, agent_id, need=Role.EDITOR)
        return Response(AgentJson(actions.restore_agent(agent, by=self.person, now=timezone.now())).data)
