"""REST endpoints of saved prompts."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.chats import saved_prompts
from chat.chats.saved_prompts import NAME_LENGTH, TEXT_LENGTH, variables_of
from chat.models import SavedPrompt
from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Flag, Moment, Text
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Workspace

documented = documented_under("prompts")


class PromptJson(serializers.Serializer[Any]):
    example = {
        "id": f"prm_{ID}",
        "name": "Polite no",
        "text": "Decline {{offer}} politely.",
        "variables": ["offer"],
    }
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    text = serializers.CharField()
    variables = serializers.SerializerMethodField(help_text="The names in double braces, in their order.")
    personal = serializers.BooleanField(
        source="is_personal", help_text="Yours alone, in all your workspaces."
    )
    created_at = Moment()
    updated_at = Moment()

    def get_variables(self, prompt: SavedPrompt) -> list[str]:
        return variables_of(prompt.text)


class PromptBody(Body):
    example = {"name": "Polite no", "text": "Decline {{offer}} politely."}
    name = Text(
        help_text=f"At most {NAME_LENGTH} characters; no other one of yours, or of the workspace, has it."
    )
    text = Text(help_text=f"At most {TEXT_LENGTH:,} characters. What stands in double braces is a variable.")
    personal = Flag(default=True, help_text="false: for everyone in the workspace; that takes an editor.")


class PromptChanges(Body):
    at_least_one_of = ("name", "text")
    example = {"text": "Decline {{offer}} warmly."}
    name = Text(required=False)
    text = Text(required=False)


class PromptList(ApiView):
    @documented("prompts_list", page_of(PromptJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List prompts.

        Your own and the workspace's, newest first.
        """
        workspace = get_workspace(self.person, workspace_id)
        prompts = SavedPrompt.objects.visible_to(self.person, workspace)
        name = f"prompts in {workspace_id} of {self.person.public_id}"
        return self.page(prompts, PromptJson, descending=True, list_name=name)

    @documented("prompts_create", {201: PromptJson}, body=PromptBody, headers=ONCE, errors=[409])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Save a prompt."""
        workspace, body = get_workspace(self.person, workspace_id), self.body(PromptBody)
        prompt = self.make_once(
            lambda: saved_prompts.save_prompt(workspace, **body, by=self.person, now=timezone.now()),
            lambda person, public_id: saved_prompts.get_prompt(person, workspace, public_id),
        )
        return Response(PromptJson(prompt).data, status=status.HTTP_201_CREATED)


class PromptDetail(ApiView):
    @documented("prompts_get", PromptJson)
    def get(self, request: Request, workspace_id: str, prompt_id: str) -> Response:
        """Get a prompt."""
        return Response(PromptJson(self._prompt(workspace_id, prompt_id)[1]).data)

    @documented("prompts_update", PromptJson, body=PromptChanges)
    def patch(self, request: Request, workspace_id: str, prompt_id: str) -> Response:
        """Change a prompt.

        You may change your own prompts. You may change a workspace's prompt if you created it or own the workspace.
        """
        workspace, prompt = self._prompt(workspace_id, prompt_id)
        body = self.body(PromptChanges)
        changed = saved_prompts.update_prompt(prompt, workspace, **body, by=self.person, now=timezone.now())
        return Response(PromptJson(changed).data)

    @documented("prompts_delete")
    def delete(self, request: Request, workspace_id: str, prompt_id: str) -> Response:
        """Delete a prompt."""
        workspace, prompt = self._prompt(workspace_id, prompt_id)
        saved_prompts.delete_prompt(prompt, workspace, by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _prompt(self, workspace_id: str, prompt_id: str) -> tuple[Workspace, SavedPrompt]:
        workspace = get_workspace(self.person, workspace_id)
        return workspace, saved_prompts.get_prompt(self.person, workspace, prompt_id)
