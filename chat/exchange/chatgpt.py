"""Reader of ChatGPT's ``conversations.json``, an array of conversations with a tree of messages under ``mapping``.

The branch that ends in ``current_node`` is read, as ChatGPT's page shows it, or else the longest branch. System
messages, tool calls and hidden reasoning are left out.
"""

from __future__ import annotations

from typing import Any

from chat.exchange.transcripts import Said, Transcript, moment_of, path_to, text_of

READ = {"text", "multimodal_text", "code", None}


def is_entry(first: dict[str, Any]) -> bool:
    return "mapping" in first


def transcript_of(conversation: dict[str, Any]) -> Transcript | None:
    mapping = conversation.get("mapping")
    if not isinstance(mapping, dict):
        return None
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    parents = {name: str(node.get("parent") or "") for name, node in nodes.items()}
    for name, node in nodes.items():  # some exports have children but no parents
        for child in node["children"] if isinstance(node.get("children"), list) else ():
            if isinstance(child, str):
                parents[child] = parents.get(child) or name
    leaf = conversation.get("current_node")
    model = text_of(conversation.get("default_model_slug"))

    def branch(leaf: str) -> list[Said | None]:
        return [_said(name, _dict(nodes.get(name)).get("message"), model) for name in path_to(leaf, parents)]

    said = branch(leaf) if isinstance(leaf, str) and leaf in nodes else []
    if not any(said):
        lengths = _lengths(parents)
        leaf = max(nodes, key=lambda name: (lengths[name], _at(nodes[name])), default="")
        said = branch(leaf)
    return Transcript(
        id=str(conversation.get("conversation_id") or conversation.get("id") or leaf),
        title=text_of(conversation.get("title")),
        said=[each for each in said if each is not None],
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


def _said(name: str, message: Any, usual_model: str) -> Said | None:
    if not isinstance(message, dict):
        return None
    author, content, metadata = (_dict(message.get(key)) for key in ("author", "content", "metadata"))
    if author.get("role") not in ("user", "assistant") or message.get("recipient") not in ("all", None):
        return None
    if content.get("content_type") not in READ or metadata.get("is_visually_hidden_from_conversation"):
        return None
    return Said(
        id=name,
        is_user=author["role"] == "user",
        text=_text(content),
        at=moment_of(message.get("create_time")),
        pasted="\n".join(_files(metadata)),
        model=text_of(metadata.get("model_slug")) or (usual_model if author["role"] == "assistant" else ""),
    )


def _files(metadata: dict[str, Any]) -> list[str]:
    """Return the names of attached files. The export does not contain their text."""
    given = metadata.get("attachments")
    names = [text_of(_dict(each).get("name")) for each in given] if isinstance(given, list) else []
    return [name for name in names if name]


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    texts = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        texts.append(text_of(part.get("text")) if isinstance(part, dict) else text_of(part))
    return "\n\n".join(text for text in texts if text)


def _at(node: dict[str, Any]) -> float:
    at = moment_of(_dict(node.get("message")).get("create_time"))
    return at.timestamp() if at else 0.0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
