"""Documents as a kind of passages: what the index has to know of them."""

from __future__ import annotations

from workspaces.index.kinds import Kind
from workspaces.models import DocumentPassage
from workspaces.models.document import DOCUMENT

DOCUMENTS = Kind(
    number=DOCUMENT,
    name="document passage",
    model=DocumentPassage,
    place="m.workspace_id",
    words="documents_counted_words",
    here="m.workspace_id = %(workspace)s::bigint",
    text="text",
    heading="heading",
)
