"""A program's request: the body as it came, the parts of it that we read ourselves, and their sizes in tokens."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from django.http.request import HttpHeaders
from django.utils.translation import gettext as _

from chat.prompting import prompt_parts
from chat.prompting.text import tokens
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import Invalid
from memoryhub.languages import grouped
from memoryhub.llm.base import INSERTED
from memoryhub.llm.metering import Parts

MOST_MESSAGES = 2_000
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
MEMORY = ("on", "read", "off")
# What is said to us and not to the model: in a header ``X-MemoryHub-Workspace``, or beside what else ``metadata`` has.
OURS = ("workspace", "assistant", "memory")
# Interfaces have models name and tag chats for them, with the whole chat in one message: nobody said that.
# Coding tools have a conversation summarized the same way.
ERRAND = re.compile(
    r"\s*#+ Task:|.*<chat_history>|\s*Your task is to create a detailed summary of", re.DOTALL
)
ERRAND_BEGINS = 4_000  # characters in which one shows
# What coding tools put into a person's message between tags: reminders, open files, outputs of commands, documents.
_TAGS = (
    "system-reminder|environment_details|ide_opened_file|ide_selection|command-name|command-message|command-args|"
    "local-command-stdout|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|document"
)
OF_PROGRAM = re.compile(rf"<({_TAGS})\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL)

Body = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """``body`` goes to the model, but for its name. ``memory``: on; read: nothing is mined; off: nothing is used."""

    body: Body
    model: str
    messages: list[Body]
    stream: bool = False
    workspace: str = ""
    assistant: str = ""
    memory: str = "on"

    @property
    def question(self) -> int | None:
        """Where in ``messages`` the person's last words are; None where there are none, or it is an errand."""
        for at in range(len(self.messages) - 1, -1, -1):
            if self.messages[at]["role"] == "user" and (text := own_words(self.messages[at])):
                return None if ERRAND.match(text[:ERRAND_BEGINS]) else at
        return None


def read_asked(body: Any, headers: HttpHeaders) -> Asked:
    """A request for a chat completion. Raises Invalid, naming the field."""
    require_model(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= MOST_MESSAGES:
        raise Invalid(fields={"messages": _("must be a list of 1 to %s messages") % grouped(MOST_MESSAGES)})
    for at, message in enumerate(messages):
        if not _is_message(message):
            raise Invalid(fields={f"messages[{at}]": _("must be a message with a role and content")})
    ours, rest = ours_of(body.get("metadata"), headers)
    passed = {name: value for name, value in body.items() if name != "metadata"}
    if rest:
        passed["metadata"] = rest
    return Asked(passed, body["model"], messages, body.get("stream") is True, **ours)


def require_model(body: Any) -> None:
    """Raise Invalid unless this is an object that names a model."""
    if not isinstance(body, dict):
        raise Invalid(_("Send a JSON object."), fields={"body": _("must be a JSON object")})
    if not isinstance(body.get("model"), str):
        raise Invalid(fields={"model": _("must be the name of a model")})
    if not isinstance(body.get("stream") or False, bool):
        raise Invalid(fields={"stream": _("must be true or false")})


def ours_of(metadata: Any, headers: HttpHeaders) -> tuple[dict[str, str], Body]:
    """What is said to us, headers first, and what of ``metadata`` is left. Raises Invalid."""
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Invalid(fields={"metadata": _("must be an object")})
    said: dict[str, str] = {}
    for name in OURS:
        value = _header(headers, f"X-MemoryHub-{name}") or metadata.get(f"memoryhub_{name}") or ""
        if not isinstance(value, str) or len(value) > 200 or UNSTORABLE.search(value):
            raise Invalid(fields={f"memoryhub_{name}": _("must be a short text")})
        said[name] = value.strip()
    said["memory"] = said["memory"].lower() or "on"
    if said["memory"] not in MEMORY:
        raise Invalid(fields={"memoryhub_memory": _("must be one of %s") % ", ".join(MEMORY)})
    return said, {name: value for name, value in metadata.items() if not str(name).startswith("memoryhub_")}


def _header(headers: HttpHeaders, name: str) -> str:
    """Headers come as Latin-1; most who write more than ASCII into one mean UTF-8."""
    value = headers.get(name) or ""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def text_of(message: Body) -> str:
    """The words of a message; pictures and files have none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def own_words(message: Body) -> str:
    """The text of a message in the person's role, without the passages that a program marked as its own."""
    return OF_PROGRAM.sub(" ", text_of(message)).strip()


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or INSERTED in message:
        return False
    if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
        return False
    return isinstance(message.get("content"), str | list | None)


# What a program's request is made of, for who counts: what we put into it, its tools, and all else.


def parts_of_body(body: Body) -> Parts:
    """In estimated tokens."""
    memory = tools = whole = 0
    for message in body["messages"]:
        text = text_of(message)
        size = tokens(text)
        whole += size
        memory += size if INSERTED in message and text.startswith(prompt_parts.MEMORY) else 0
        tools += size if message.get("role") in {"tool", "function"} else 0
    described = tokens(json.dumps(body["tools"])) if body.get("tools") else 0
    return Parts(memory, 0, tools + described, whole + described)
