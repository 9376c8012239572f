"""REST endpoints of share links, by which a chat can be read without signing in."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat
from chat.chats import sharing
from chat.models import ShareLink
from chat.views.sharing import address_of
from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Moment, WholeNumber
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.api.serializers import PersonJson
from workspaces.models import Role

documented = documented_under("chats")


class ShareLinkJson(serializers.Serializer[Any]):
    """A share link without its URL."""

    example: dict[str, Any] = {"id": f"link_{ID}", "chat_id": f"chat_{ID}", "messages": 12}
    id = serializers.CharField(source="public_id")
    chat_id = serializers.CharField(source="chat.public_id")
    made_by = PersonJson()
    messages = serializers.SerializerMethodField(
        help_text="How many it was made with; what has been forgotten or set aside since is not shown."
    )
    created_at = Moment()
    shared_at = Moment(help_text="It shows the chat as of then.")
    expires_at = Moment(allow_null=True, help_text="null: when it is closed.")
    last_opened_at = Moment(allow_null=True, help_text="To the minute. null: never.")

    def get_messages(self, link: ShareLink) -> int:
        return len(link.message_ids)


class MadeLinkJson(ShareLinkJson):
    example = {**ShareLinkJson.example, "url": "https://hub.example.org/shared/mhl_…/"}
    url = serializers.CharField(help_text="The link. It is stored nowhere: this is the only time you see it.")


@extend_schema_field({"type": "integer", "enum": [*sharing.DAYS, None], "nullable": True})
class Days(WholeNumber):
    """Field for the lifetime of a share link in days. The OpenAPI schema lists the allowed numbers."""


class LinkBody(Body):
    example = {"days": 30}
    days = Days(
        allow_null=True,
        default=sharing.DAYS[-1],
        help_text=f"How many days it works: {' or '.join(map(str, sharing.DAYS))}; null: until it is closed.",
    )
    include_later = serializers.BooleanField(
        default=False, help_text="Also the answers after one that used personal memories: they may repeat it."
    )


class ChatLinks(ApiView):
    @documented("chat_links_list", page_of(ShareLinkJson))
    def get(self, request: Request, chat_id: str) -> Response:
        """List the links to a chat.

        Open links, newest first. Their URLs are shown only when they are created.
        """
        chat = get_chat(self.person, chat_id)
        links = ShareLink.objects.open(timezone.now()).filter(chat=chat).select_related("chat", "made_by")
        return self.page(links, ShareLinkJson, descending=True, list_name=f"links to {chat.public_id}")

    @documented("chat_links_create", {201: MadeLinkJson}, body=LinkBody)
    def post(self, request: Request, chat_id: str) -> Response:
        """Create a link to a chat.

        Anyone with the link can read the chat as it is now, without signing in. The link shows questions and answers,
        without names, receipts, tools and documents. Messages that are later edited, deleted or forgotten disappear
        from it.

        Answers that used personal memories of any user are left out. Answers after the first of those may repeat them
        in other words, and are shown only with `include_later`.

        422 with the code `not_shareable` for a temporary chat, for a workspace whose memories never leave this machine,
        and if the operator or an owner has switched links off.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(LinkBody)
        link, token = sharing.create_link(
            chat, days=body["days"], by=self.person, now=timezone.now(), with_later=body["include_later"]
        )
        link.url = address_of(request, token)  # type: ignore[attr-defined]  # shown once, stored nowhere
        return Response(MadeLinkJson(link).data, status=status.HTTP_201_CREATED)


class ChatLink(ApiView):
    @documented("chat_links_close")
    def delete(self, request: Request, chat_id: str, link_id: str) -> Response:
        """Close a link to a chat.

        Takes effect at once and cannot be undone. The creator of the link or of the chat, or an owner of the workspace
        may do this.
        """
        chat = get_chat(self.person, chat_id)
        sharing.close_link(sharing.get_link(chat, link_id), by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ChatLinkUpdate(ApiView):
    @documented("chat_links_update", ShareLinkJson)
    def post(self, request: Request, chat_id: str, link_id: str) -> Response:
        """Update a link.

        The link keeps its URL and shows the chat as it is now. Only the creator of the link may do this.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        link = sharing.update_link(sharing.get_link(chat, link_id), by=self.person, now=timezone.now())
        return Response(ShareLinkJson(link).data)


class WorkspaceLinks(ApiView):
    @documented("workspace_links_list", page_of(ShareLinkJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List the links to chats of a workspace.

        Open links to chats that you may see, newest first.
        """
        workspace = get_workspace(self.person, workspace_id)
        links = sharing.links_in(workspace, self.person, now=timezone.now())
        return self.page(links, ShareLinkJson, descending=True, list_name=f"links in {workspace.public_id}")
