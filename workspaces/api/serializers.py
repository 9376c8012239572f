"""Serializers of workspaces and their members."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from workspaces.actions.purging import Counts
from workspaces.actions.workspaces import DESCRIPTION_LENGTH, NAME_LENGTH
from workspaces.api.fields import Body, Choice, Flag, Moment, Text
from workspaces.api.schema import ID
from workspaces.model_choice import BUILT_IN
from workspaces.models import Role, User, Workspace
from workspaces.models.language_models import Connection


class WorkspaceJson(serializers.Serializer[Any]):
    example = {"id": f"ws_{ID}", "name": "Launch", "role": "owner", "member_count": 3, "memory_count": 12}
    id = serializers.CharField(source="public_id")
    name = serializers.CharField(max_length=NAME_LENGTH)
    description = serializers.CharField(max_length=DESCRIPTION_LENGTH)
    role = serializers.ChoiceField(choices=Role.values, help_text="Yours.")
    is_default = serializers.BooleanField(help_text="True for a person's own workspace.")
    private_short_term = serializers.BooleanField(
        help_text="Whether a person's private chats here are told of, in short, in that person's other chats."
    )
    reviews_proposals = serializers.BooleanField(
        help_text="Whether what viewers or models propose waits for an editor."
    )
    local_only = serializers.BooleanField(help_text="Whether its memories never leave this machine.")
    share_links = serializers.BooleanField(
        help_text="Whether its chats may be read by a link, without signing in."
    )
    connection_id = serializers.SerializerMethodField(
        help_text="The connection whose model answers here, where a chat has not chosen another. "
        "null: the default for everyone; built-in: the configured one."
    )
    member_count = serializers.IntegerField()
    memory_count = serializers.IntegerField(help_text="Live memories that you may see.")
    created_at = Moment()
    updated_at = Moment()

    def get_connection_id(self, workspace: Workspace) -> str | None:
        return shown_id(workspace.connection)


def shown_id(connection: Connection | None) -> str | None:
    """Return the public id of the chosen connection, or None if it was deleted."""
    if connection is None or connection.deleted_at is not None:
        return None
    return BUILT_IN if connection.is_built_in else connection.public_id


class WorkspaceBody(Body):
    example = {"name": "Launch", "description": "Everything about the spring launch."}
    name = Text(max_length=NAME_LENGTH)
    description = Text(max_length=DESCRIPTION_LENGTH, allow_blank=True, required=False)


class WorkspaceChanges(Body):
    example = {"name": "Spring launch"}
    name = Text(max_length=NAME_LENGTH, required=False)
    description = Text(max_length=DESCRIPTION_LENGTH, allow_blank=True, required=False)
    private_short_term = Flag(
        required=False,
        help_text="true: a person's private chats are told of, in short, in that person's other chats.",
    )
    reviews_proposals = Flag(
        required=False, help_text="true: what viewers or models propose waits for an editor."
    )
    local_only = Flag(
        required=False,
        help_text="true: its memories never leave this machine. Models and embedders that are not marked local are not "
        "asked.",
    )
    share_links = Flag(
        required=False,
        help_text="false: no chat here can be read by a link, and those there are open nothing.",
    )
    connection_id = Text(
        max_length=40,
        required=False,
        allow_null=True,
        help_text="The connection whose model answers here; null: the default for everyone; built-in: the configured "
        "one, whatever the default is.",
    )


class PersonJson(serializers.Serializer[Any]):
    example = {"id": f"usr_{ID}", "username": "maria"}
    id = serializers.CharField(source="public_id")
    username = serializers.CharField()


FOR_ONESELF = "true: for you alone, in every workspace of yours. It lies in your own workspace."
MOVES = (
    "true: for you alone, in every workspace of yours; it lies in your own one then. false: for everyone in the "
    "workspace that this address names."
)


class PersonalField(serializers.BooleanField):
    """Field that is true for a personal document or artifact."""

    def __init__(self) -> None:
        super().__init__(
            source="is_personal", help_text="true: only you see it, in every workspace of yours."
        )


class MemberJson(serializers.Serializer[Any]):
    example = {"id": f"usr_{ID}", "username": "maria", "role": "editor"}
    id = serializers.CharField(source="user.public_id", help_text="The person's id, `usr_…`.")
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(choices=Role.values)
    status = serializers.ChoiceField(
        choices=["member", "invited"], help_text="An invited person is no member until they accept."
    )
    joined_at = Moment(allow_null=True, help_text="null: has not accepted yet.")


class InvitedJson(serializers.Serializer[Any]):
    example = {"workspace_id": f"ws_{ID}", "workspace_name": "Launch", "role": "editor"}
    workspace_id = serializers.CharField(source="workspace.public_id")
    workspace_name = serializers.CharField(source="workspace.name")
    role = serializers.ChoiceField(choices=Role.values)
    invited_by = PersonJson(source="created_by")
    created_at = Moment()
    expires_at = Moment()


class MemberBody(Body):
    example = {"username": "maria", "role": "editor"}
    username = Text(max_length=150)
    role = Choice(Role.values, default=Role.VIEWER.value)

    def validate_username(self, value: str) -> User:
        """Return the user with this name. The view then gets a user instead of the name."""
        person = User.objects.filter(username=value, is_active=True).first()
        if person is None:
            raise serializers.ValidationError(_("There is no person with this username."))
        return person


class RoleBody(Body):
    example = {"role": "viewer"}
    role = Choice(Role.values)


class RemovedJson(serializers.Serializer[Any]):
    example = {"removed": {"memories": 12, "messages": 40, "chats": 3, "workspaces": 1}}
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="Rows by kind.")


def removed_json(removed: Counts) -> dict[str, dict[str, int]]:
    """Return as JSON values how many rows of each kind were removed permanently, the largest number first."""
    return {"removed": {name.replace(" ", "_"): number for name, number in removed.most_common()}}
