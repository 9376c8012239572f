"""Content of an artifact, as it was written: checked, and cut to the part that its vector is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memoryhub.errors import Invalid
from workspaces.actions.workspaces import clean_text
from workspaces.models import ArtifactKind
from workspaces.models.artifact import CONTENT_LENGTH, LANGUAGE_LENGTH, TITLE_LENGTH

GIST_LENGTH = 4000  # characters; an embedder reads no more
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Written:
    """Content of an artifact, from its writer."""

    title: str
    content: str
    language: str = ""


def cleaned(written: Written) -> Written:
    title = clean_text("title", " ".join(written.title.split()), low=1, high=TITLE_LENGTH)
    content = written.content.replace("\r\n", "\n")
    if not content.strip():
        raise Invalid(fields={"content": _("Must not be blank.")})
    content = clean_text("content", content, low=1, high=CONTENT_LENGTH)
    language = clean_text("language", written.language.strip().lower(), low=0, high=LANGUAGE_LENGTH)
    return Written(title, content, language)


def said(written: Written) -> str:
    return f"{written.title}\n{written.content}"


def gist_of(written: Written, kind: str) -> str:
    text = written.content[: 5 * GIST_LENGTH]
    if kind == ArtifactKind.HTML:
        text = " ".join(_TAG.sub(" ", text).split())
    return f"{written.title}\n{text[:GIST_LENGTH]}"
