"""Titles of new chats, which the chat's model writes from the first message, as a background job."""

import logging
from datetime import datetime

from django.db import transaction
from django_q.tasks import async_task

from chat.chats.services import publish_chat_list, title_from
from chat.models import Chat, Message
from chat.modes.registry import chosen_for_chat
from chat.prompting.prompt_text import cut_to, escaped_lines, prompt_text
from memories.writing.drafts import UNSTORABLE
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.base import Speaker
from memoryhub.llm.errors import ModelError
from workspaces.models import Purpose, User
from workspaces.spending.budgets import has_budget
from workspaces.spending.usage_records import Account, counted, rate_of

logger = logging.getLogger(__name__)
READ_TOKENS = 500  # tokens of the message that the model reads
TITLE_TOKENS = 400  # reasoning models need more than the title itself
LONGEST = 80  # characters; a longer reply is no title


def queue_title(answer: Message, user: User) -> None:
    """Queue a title when the transaction commits, if the chat's title is the shortened first message."""
    question, chat = answer.reply_to, answer.chat
    if question is None or chat.is_temporary or chat.title != title_from(question.content):
        return
    if chat.title != " ".join(question.content.split()):
        job = {"answer_id": answer.pk, "user_id": user.pk, "task_name": "title"}
        transaction.on_commit(lambda: async_task("chat.tasks.title_chat", **job))


def write_title(answer: Message, user: User, *, now: datetime) -> str:
    """Name the chat unless a person has named it. Return a line for the job log.

    The model reads the first message only, since an answer may contain data that other readers must not see.
    """
    chat, question = answer.chat, answer.reply_to
    chosen = chosen_for_chat(chat, user)
    if question is None or chat.title != title_from(question.content):
        return "it has a name"
    if chosen.trouble is not None or not chosen.model.capabilities.can_extract:
        return "the model is not asked"
    account = Account(chat.workspace_id, user.pk, Purpose.ANSWER, rate_of(chosen))
    if not has_budget(account, now=now):
        return "the budget of the month is used up"
    text = escaped_lines(cut_to(question.content, READ_TOKENS))
    prompt = [
        PromptMessage("system", prompt_text("title"), speaker=Speaker.SYSTEM),
        PromptMessage("user", f"<message>\n{text}\n</message>", speaker=Speaker.PERSON),
    ]
    try:
        with counted(account):
            reply = chosen.model.complete(prompt, max_tokens=TITLE_TOKENS, temperature=0.0)
    except ModelError as error:
        logger.warning("A title failed: %s", error.code)
        return f"failed: {error.code}"
    title = clean_title(reply)
    if not title or not Chat.objects.filter(pk=chat.pk, title=chat.title).update(title=title):
        return "kept"
    publish_chat_list(chat)
    return "named"


def clean_title(reply: str) -> str:
    """Return the title in a model's reply; empty if the reply is too long for a title."""
    title = " ".join(UNSTORABLE.sub("", reply).split()).strip("\"'“”„«»「」*#` ")
    title = title.removeprefix("Title:").strip().removesuffix(".")
    return title if len(title) <= LONGEST else ""
