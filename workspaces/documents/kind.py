"""Documents as a kind of passages: what the index has to know of them."""

from __future__ import annotations

from workspaces.index.kinds import Kind
from workspaces.models import DocumentPassage
from workspaces.models.document import DOCUMENT
from workspaces.models.owned import OWNED_HERE, OWNED_OWN, OWNED_PLACE

DOCUMENTS = Kind(
    number=DOCUMENT,
    name="document passage",
    model=DocumentPassage,
    place=OWNED_PLACE,
    words="documents_counted_words",
    here=OWNED_HERE,
    own=OWNED_OWN,
    text="text",
    heading="heading",
)
