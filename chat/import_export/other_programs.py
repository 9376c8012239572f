"""Conversion of other programs' conversations and lists of statements to lines of an import.

ChatGPT's ``conversations.json`` is an array of conversations with a tree of messages under ``mapping``. The branch that
ends in ``current_node`` is read, as ChatGPT's page shows it, or else the longest branch. System messages, tool calls
and hidden reasoning are left out.

Claude's ``conversations.json`` has ``chat_messages``. A message's text is that of its ``content`` blocks, or else its
``text``. If messages name their parents, the latest branch is read. ``memories.json`` is prose, and every sentence
becomes a statement.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from chat.import_export.import_lines import EMPTY, NO_MESSAGES, UNKNOWN, derived_id, skipped_line
from chat.import_export.import_lines import NO_STATEMENT as HEADING
from chat.import_export.upload_reader import Part
from chat.models import MESSAGE_LENGTH, TITLE_LENGTH
from memories.judging.extraction.with_classifier import extract_from_each
from memories.judging.extraction.with_language_model import Candidate
from memories.writing.drafts import UNSTORABLE, cut_at_word
from memoryhub.errors import Invalid
from memoryhub.llm.registry import get_reader
from workspaces.models import User

Line = dict[str, Any]


@dataclass
class Said:
    """A message of another program's conversation."""

    id: str
    is_user: bool
    text: str
    at: datetime | None = None
    model: str = ""
    pasted: str = ""  # pasted or attached text, which the user did not write


@dataclass
class Transcript:
    id: str
    title: str
    said: list[Said]
    began_at: datetime | None = None
    active_at: datetime | None = None


def lines_of(transcript: Transcript, *, source: str, importer: User) -> Iterator[Line]:
    """Yield the lines of a chat and its messages."""
    messages = [each for each in transcript.said if each.text or each.pasted]
    if not messages:
        yield skipped_line(NO_MESSAGES, of="chat")
        return
    mine, name = importer.public_id, importer.get_username()
    chat = derived_id("chat", mine, source, transcript.id)
    began_at = transcript.began_at or next((each.at for each in messages if each.at), None)
    last = next((each.at for each in reversed(messages) if each.at), None)
    yield {
        "type": "chat",
        "id": chat,
        "created_by": name,
        "title": cut_at_word(" ".join(transcript.title.split()), TITLE_LENGTH),
        "is_private": True,
        "created_at": _iso(began_at),
        "active_at": _iso(last or transcript.active_at or began_at),
    }
    at, question = began_at, None
    for each in messages:
        at = each.at or at
        message = derived_id("msg", mine, source, transcript.id, each.id)
        content = "\n\n".join(filter(None, (each.text, each.pasted)))
        yield {
            "type": "message",
            "id": message,
            "chat": chat,
            "role": "user" if each.is_user else "assistant",
            "author": name if each.is_user else None,
            "content": cut_at_word(content, MESSAGE_LENGTH) if each.is_user else content,
            "reply_to": None if each.is_user else question,
            "model": each.model[:200],
            "created_at": _iso(at),
            "finished_at": _iso(at),
        }
        if each.is_user:
            question = message


def own_words(transcript: Transcript, *, source: str, importer: User) -> dict[str, str]:
    """Return the text that the user typed in each message, without pasted text, by the message's local id."""
    return {
        derived_id("msg", importer.public_id, source, transcript.id, each.id): each.text
        for each in transcript.said
        if each.is_user and each.text
    }


def statements_in(messages: Sequence[tuple[str, Line, str]]) -> list[list[Line]]:
    """Return import lines of the statements in each message (source, line, text typed by the user).

    They become personal memories, as in a private chat. All messages are embedded together, at about 50 ms each. Raises
    EmbedderError if the embedder fails.
    """
    candidate_lists = extract_from_each([text for _, _, text in messages], get_reader())
    return [
        [_memory(candidate, number, message, source) for number, candidate in enumerate(candidates)]
        for (source, message, _), candidates in zip(messages, candidate_lists, strict=True)
    ]


def _memory(candidate: Candidate, number: int, message: Line, source: str) -> Line:
    return {
        "type": "memory",
        "id": derived_id("mem", message["id"], str(number)),
        "scope": "user",
        "content": cut_at_word(candidate.text),
        "category": candidate.kind,
        "importance": candidate.importance,
        "source_type": "import",
        "source_chat_id": message["chat"],
        "source_message_id": message["id"],
        "source_details": {"from": source, "extractor": "rules", **candidate.details},
        "created_at": message["created_at"],
    }


def text_of(value: object) -> str:
    return UNSTORABLE.sub("", value).replace("\r\n", "\n").strip() if isinstance(value, str) else ""


def moment_of(value: object) -> datetime | None:
    """Parse seconds since 1970 or ISO 8601. Return None for any other value."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def path_to(leaf: str, parents: dict[str, str], *, known: Container[str] = ()) -> list[str]:
    """Return the ids on the branch of a message tree that ends at ``leaf``, in order. Stops at loops.

    ``parents`` maps each id to its parent. The branch starts after the last message in ``known``.
    """
    path: list[str] = []
    seen: set[str] = set()
    at = leaf
    while at in parents and at not in seen and at not in known:
        seen.add(at)
        path.append(at)
        at = parents[at]
    return path[::-1]


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


LONGEST = 65_536  # limit in bytes of a line of text; longer lines are cut, and then refused as too long for a memory
TEXTS = {"content", "memory", "text"}  # fields that hold the statement in other programs' lists
BULLET = re.compile(r"^\s*(?:([-*•\u2013☐☑]|\(?\d{1,3}[.)]|\[[ xX]\])\s+)+")
NO_STATEMENT = re.compile(
    r"\s*(#{1,6}(\s.*)?|\*\*[^*]+\*\*:?|[^.!?]{1,80}:|[-*•\u2013]?\s*\(?(\d{0,3}|[IVXivx]{1,6})[.)]?|[-=_*~]+)\s*"
)
FIELDS = ("content", "summary", "key", "category", "tags", "importance", "pinned", "expires_at", "created_at")


def lines_in(file: Part) -> Iterator[str]:
    """Yield the non-blank lines of a text file. Raises Invalid if the file is not UTF-8."""
    while raw := file.readline(LONGEST):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if error.end < len(raw) or len(raw) < LONGEST:
                raise Invalid(_("This file is not UTF-8 text.")) from None
            text = raw.decode(errors="ignore")
        while not raw.endswith(b"\n") and (raw := file.readline(LONGEST)):
            pass
        if text.strip():
            yield text


def line_of(statement: Any, *, importer: str) -> Line:
    """Return a statement of a list as a line of an import. It is validated later, with all other lines."""
    entry = statement if isinstance(statement, dict) else {"content": statement}
    text = next((entry[name] for name in sorted(TEXTS) if entry.get(name)), None)
    entry = entry if text is None else entry | {"content": text}
    if statement is None or entry.get("content") is None:
        return skipped_line(EMPTY if not entry.get("content") and len(entry) < 2 else UNKNOWN)
    if isinstance(entry["content"], str):
        if not is_statement(entry["content"]):
            return skipped_line(EMPTY if not entry["content"].strip() else HEADING)
        entry = entry | {"content": without_bullet(entry["content"])}
    fields = {name: entry[name] for name in FIELDS if name in entry}
    return {"type": "memory", "author": importer, "source_type": "import", **fields}


def is_statement(text: str) -> bool:
    """Return whether the line is a statement, not a heading, list number or horizontal rule."""
    return NO_STATEMENT.fullmatch(text) is None


def without_bullet(text: str) -> str:
    return BULLET.sub("", text).strip()


CHATGPT_READ = {"text", "multimodal_text", "code", None}


def chatgpt_transcript(conversation: dict[str, Any]) -> Transcript | None:
    mapping = conversation.get("mapping")
    if not isinstance(mapping, dict):
        return None
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    parents = {name: str(node.get("parent") or "") for name, node in nodes.items()}
    for name, node in nodes.items():  # some exports have children but no parents
        for child in _list(node.get("children")):
            if isinstance(child, str):
                parents[child] = parents.get(child) or name
    leaf = conversation.get("current_node")
    model = text_of(conversation.get("default_model_slug"))

    def branch(leaf: str) -> list[Said | None]:
        return [
            _chatgpt_said(name, _dict(nodes.get(name)).get("message"), model)
            for name in path_to(leaf, parents)
        ]

    messages = branch(leaf) if isinstance(leaf, str) and leaf in nodes else []
    if not any(messages):
        lengths = _lengths(parents)
        leaf = max(nodes, key=lambda name: (lengths[name], _chatgpt_at(nodes[name])), default="")
        messages = branch(leaf)
    return Transcript(
        id=str(conversation.get("conversation_id") or conversation.get("id") or leaf),
        title=text_of(conversation.get("title")),
        said=[each for each in messages if each is not None],
        began_at=moment_of(conversation.get("create_time")),
        active_at=moment_of(conversation.get("update_time")),
    )


def _lengths(parents: dict[str, str]) -> dict[str, int]:
    """Return for each node the length of the branch that ends there. Visits each node once."""
    lengths: dict[str, int] = {}
    for name in parents:
        branch = path_to(name, parents, known=lengths)
        length = lengths.get(parents[branch[0]], 0) if branch else 0
        for each in branch:
            lengths[each] = length = length + 1
    return lengths


def _chatgpt_said(name: str, message: Any, usual_model: str) -> Said | None:
    if not isinstance(message, dict):
        return None
    author, content, metadata = (_dict(message.get(key)) for key in ("author", "content", "metadata"))
    if author.get("role") not in ("user", "assistant") or message.get("recipient") not in ("all", None):
        return None
    if content.get("content_type") not in CHATGPT_READ or metadata.get(
        "is_visually_hidden_from_conversation"
    ):
        return None
    # The export does not contain the text of attached files.
    file_names = (text_of(_dict(each).get("name")) for each in _list(metadata.get("attachments")))
    return Said(
        id=name,
        is_user=author["role"] == "user",
        text=_chatgpt_text(content),
        at=moment_of(message.get("create_time")),
        pasted="\n".join(filter(None, file_names)),
        model=text_of(metadata.get("model_slug")) or (usual_model if author["role"] == "assistant" else ""),
    )


def _chatgpt_text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    texts = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        texts.append(text_of(part.get("text")) if isinstance(part, dict) else text_of(part))
    return "\n\n".join(text for text in texts if text)


def _chatgpt_at(node: dict[str, Any]) -> float:
    at = moment_of(_dict(node.get("message")).get("create_time"))
    return at.timestamp() if at else 0.0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def claude_transcript(conversation: dict[str, Any]) -> Transcript | None:
    chat_messages = conversation.get("chat_messages")
    if not isinstance(chat_messages, list):
        return None
    messages = {
        str(message.get("uuid") or number): message
        for number, message in enumerate(chat_messages)
        if isinstance(message, dict)
    }
    branch_messages = [_claude_said(name, messages[name]) for name in _branch(conversation, messages)]
    return Transcript(
        id=str(conversation.get("uuid") or f"{conversation.get('name')} {conversation.get('created_at')}"),
        title=text_of(conversation.get("name")),
        said=[each for each in branch_messages if each is not None],
        began_at=moment_of(conversation.get("created_at")),
        active_at=moment_of(conversation.get("updated_at")),
    )


def statements_of(memory: dict[str, Any]) -> Iterator[Line]:
    """Yield the statements of one entry of ``memories.json``."""
    projects = memory.get("project_memories")
    projects = projects.values() if isinstance(projects, dict) else projects
    texts = [memory.get("conversations_memory"), *(projects if isinstance(projects, Iterable) else ())]
    for text in texts:
        text = text.get("content") if isinstance(text, dict) else text
        for line in text_of(text).splitlines():
            for sentence in SENTENCE_END.split(without_bullet(line) if is_statement(line) else ""):
                if is_statement(sentence):
                    yield {
                        "type": "memory",
                        "scope": "user",
                        "content": cut_at_word(sentence),
                        "source_type": "import",
                        "source_details": {"from": "claude"},
                    }


def _branch(conversation: dict[str, Any], messages: dict[str, Any]) -> list[str]:
    parents = {name: str(message.get("parent_message_uuid") or "") for name, message in messages.items()}
    if not any(parent in messages for parent in parents.values()):
        return list(messages)
    leaf = conversation.get("current_leaf_message_uuid")
    return path_to(leaf if isinstance(leaf, str) and leaf in messages else list(messages)[-1], parents)


def _claude_said(name: str, message: dict[str, Any]) -> Said | None:
    if message.get("sender") not in ("human", "user", "assistant"):
        return None
    content = message.get("content")
    blocks = [_dict(block) for block in _list(content)]
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    return Said(
        id=name,
        is_user=message["sender"] != "assistant",
        text="\n\n".join(text for text in texts if text) or text_of(message.get("text")) or text_of(content),
        at=moment_of(message.get("created_at")),
        pasted="\n\n".join(filter(None, _attached(message))),
    )


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield the name and text of each pasted text or attached file, or only the name if the export has no text."""
    for each in [*_list(message.get("attachments")), *_list(message.get("files"))]:
        if isinstance(each, dict):
            name, text = text_of(each.get("file_name")), text_of(each.get("extracted_content"))
            yield "\n".join(filter(None, (name, text)))
