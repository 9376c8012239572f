"""A person's own picture, by which others know who speaks. Those who have none are known by their initials.

It lies in the database, as the pictures of documents do: it goes with the account in one transaction, and backups and
other hosts have it without another store.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid, NotFound
from memoryhub.http.files import too_long
from workspaces.documents.reading.drawing import FACE
from workspaces.documents.reading.process import CouldNotRead, read_file
from workspaces.models import PersonPicture, User
from workspaces.throttles import spend

MOST_BYTES = 10_000_000  # of what is brought; about 15,000 are kept
SECONDS = 10  # of a processor that drawing one may take


def set_picture(user: User, content: Iterable[bytes], *, now: datetime) -> None:
    """Keep the middle of it, redrawn in another process. Raises TooManyRequests, TooLarge, Invalid."""
    spend("uploads", user, now=now)
    with tempfile.NamedTemporaryFile(prefix="memoryhub-picture-") as file:
        for chunk in content:
            file.write(chunk)
            if file.tell() > MOST_BYTES:
                raise too_long(MOST_BYTES)
        file.flush()
        try:
            drawn = read_file(Path(file.name), FACE, most=SECONDS).picture
        except CouldNotRead:
            drawn = None
    if drawn is None:
        raise Invalid(_("This picture could not be read. Choose a PNG, JPEG, GIF or WebP."))
    with transaction.atomic():
        _mark(user, secrets.token_hex(8))
        PersonPicture.objects.update_or_create(user=user, defaults={"jpeg": drawn.jpeg})


def remove_picture(user: User) -> None:
    with transaction.atomic():
        _mark(user, "")
        PersonPicture.objects.filter(user=user).delete()


def picture_of(asker: User, user_id: str) -> bytes:
    """As a JPEG, for who shares a workspace with its person. NotFound for all others, and where there is none."""
    shared = Q(user__memberships__workspace__memberships__user=asker)
    found = PersonPicture.objects.filter(Q(user=asker) | shared, user__public_id=user_id).first()
    if found is None:
        raise NotFound(_("There is no such picture."))
    return bytes(found.jpeg)


def _mark(user: User, version: str) -> None:
    """Holds the person's row until the commit, so that of two at once one is whole before the other begins."""
    User.objects.filter(pk=user.pk).update(picture_version=version)
    user.picture_version = version
