"""Load a chat or message a person may see, or say that it is not there."""

from __future__ import annotations

from chat.models import Chat, Message
from memoryhub.errors import NotFound
from workspaces.access import require
from workspaces.models import Role, User


def get_chat(user: User, public_id: str, *, need: Role = Role.VIEWER, include_deleted: bool = False) -> Chat:
    """The chat with the person's ``role`` in its workspace. NotFound when not visible, Forbidden below ``need``."""
    chats = Chat.objects.visible_to(user).select_related(
        "workspace__connection", "created_by", "agent", "connection"
    )
    if not include_deleted:
        chats = chats.live()
    chat = chats.with_roles().filter(public_id=public_id).first()
    if chat is None:
        raise NotFound("There is no such chat, or it is not yours to see.")
    require(chat.role, need)
    return chat


def get_message(
    user: User, chat_id: str, public_id: str, *, need: Role = Role.VIEWER
) -> tuple[Chat, Message]:
    chat = get_chat(user, chat_id, need=need)
    message = chat.messages.select_related("author", "reply_to").filter(public_id=public_id).first()
    if message is None:
        raise NotFound("There is no such message in this chat.")
    message.chat = chat
    return chat, message
