"""Loading of a chat or message that a person may see."""

from django.utils.translation import gettext as _

from chat.models import Chat, ChatQuerySet, Message, MessageQuerySet
from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import NotFound
from workspaces.access import require
from workspaces.models import Role, User


def _chats(*, user: int, public_id: str) -> ChatQuerySet:
    chats = Chat.objects.visible_to(User(pk=user)).filter(public_id=public_id)
    return chats.with_roles().select_related("workspace__connection", "created_by", "agent", "connection")


_CHAT = PreparedQuery(_chats, user=int, public_id=str)
_LIVE_CHAT = PreparedQuery(lambda **asked: _chats(**asked).live(), user=int, public_id=str)


def _messages(*, user: int, chat: int, public_id: str) -> MessageQuerySet:
    messages = Message.objects.filter(chat=chat, public_id=public_id).readable_by(User(pk=user))
    return messages.select_related("author", "imported_by", "reply_to")


_MESSAGE = PreparedQuery(_messages, user=int, chat=int, public_id=str)


def get_chat(user: User, public_id: str, *, need: Role = Role.VIEWER, include_deleted: bool = False) -> Chat:
    """Return the chat and its workspace, with the user's ``role``. Raises NotFound, or Forbidden below the role
    ``need``.
    """
    chat = (_CHAT if include_deleted else _LIVE_CHAT).first(user=user.pk, public_id=public_id)
    if chat is None:
        raise NotFound(_("This chat does not exist, or you do not have access to it."))
    require(chat.role, need)
    chat.workspace.role = chat.role
    return chat


def get_message(
    user: User, chat_id: str, public_id: str, *, need: Role = Role.VIEWER
) -> tuple[Chat, Message]:
    """Return the chat and the message. Raises NotFound, or Forbidden below the role ``need``."""
    chat = get_chat(user, chat_id, need=need)
    message = _MESSAGE.first(user=user.pk, chat=chat.pk, public_id=public_id)
    if message is None:
        raise NotFound(_("There is no such message in this chat."))
    message.chat = chat
    return chat, message
