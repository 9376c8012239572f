"""A user's picture: small, without the file's metadata, shown to people who know them, deleted with them."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from PIL import Image

from chat.import_export.export import export
from tests.conftest import Cast
from tests.factories import make_chat, make_message
from tests.reading import read_in_forks
from tests.workspaces.documents.hostile import IMAGES, png
from workspaces.accounts.account_changes import delete_account
from workspaces.actions.workspaces import remove_member
from workspaces.models import PersonPicture, User
from workspaces.views import accounts

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _processes_of_readers_are_forked() -> Iterator[None]:
    with read_in_forks():
        yield


GPS, ORIENTATION = 0x8825, 0x0112
URL = "/profile/picture/"


def photograph(size: tuple[int, int] = (900, 600)) -> bytes:
    """Return a rotated photograph, red at its final top, with a location and a comment."""
    drawn, out = Image.new("RGB", size, "blue"), io.BytesIO()
    drawn.paste("red", (0, 0, size[0] // 2, size[1]))
    about = Image.Exif()
    about[ORIENTATION] = 6  # rotate by a quarter, clockwise
    about.get_ifd(GPS)[1] = "N"
    drawn.save(out, "JPEG", exif=about, comment=b"at home")
    return out.getvalue()


def upload_picture(person: User, content: bytes, **more: Any) -> str:
    """Upload a picture. Return the profile page."""
    client = Client()
    client.force_login(person)
    file = {"file": SimpleUploadedFile("me.jpg", content)}
    return client.post(URL, {**file, **more}, follow=True).content.decode()


def address_of(person: User) -> str:
    person.refresh_from_db()
    return f"/people/{person.public_id}/picture/?v={person.picture_version}"


def test_it_is_drawn_anew_shown_to_those_who_know_them_and_goes_with_the_account(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    make_message(chat, "Hello")
    assert "<img" not in upload_picture(cast.owner, b"")
    page = upload_picture(cast.owner, photograph())
    first = address_of(cast.owner)
    assert "Saved." in page and page.count(f'src="{first}"') == 3  # the profile and both forms of the sidebar

    viewer = Client()
    viewer.force_login(cast.viewer)
    for place in (f"/chats/{chat.public_id}/", f"/workspaces/{cast.workspace.public_id}/settings/"):
        assert viewer.get(place).content.decode().count(f'src="{first}"') == 1, place
    answer = viewer.get(first)
    assert answer["Content-Type"] == "image/jpeg" and answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, max-age=31536000, immutable"
    drawn = Image.open(io.BytesIO(answer.content))
    assert drawn.size == (256, 256) and not drawn.getexif() and len(answer.content) < 20_000
    assert b"at home" not in answer.content
    top, bottom = (drawn.getpixel((128, row)) for row in (20, 235))
    assert top[0] > 200 > 60 > top[2] and bottom[2] > 200 > 60 > bottom[0]  # type: ignore[index]  # upright

    header = json.loads(next(export(cast.owner, now=timezone.now())))
    assert len(header["picture"]) > 400
    upload_picture(cast.owner, png(16, 16, data=bytes(48)))
    assert address_of(cast.owner) != first

    remove_member(cast.workspace, user=cast.viewer, by=cast.owner)
    assert viewer.get(first).status_code == 404
    owner = Client()
    owner.force_login(cast.owner)
    assert "/picture/?v=" not in owner.post(URL, {"remove": "on"}, follow=True).content.decode()
    assert owner.get(first).status_code == 404
    upload_picture(cast.viewer, photograph())
    assert delete_account(cast.viewer)["pictures"] == 1
    assert not PersonPicture.objects.exists()


NO_PICTURES = {
    **{name: content for name, (content, _, why) in IMAGES.items() if why and isinstance(content, bytes)},
    "nothing": b"",
    "a page": b"<!doctype html><script>alert(1)</script>",
    "half a photograph": photograph()[:3000],
    "more than may be sent": b"\xff\xd8\xff" + bytes(accounts.MOST_BYTES),
}


def test_what_is_no_picture_is_refused_and_the_one_before_stays(cast: Cast) -> None:
    PersonPicture.objects.create(user=cast.owner, jpeg=b"before")
    User.objects.filter(pk=cast.owner.pk).update(picture_version="before")
    for name, content in NO_PICTURES.items():
        page = upload_picture(cast.owner, content, remove="")
        assert "Saved." not in page and 'src="/people/' in page, name
        assert bytes(PersonPicture.objects.get().jpeg) == b"before", name


def test_nobody_brings_one_for_another_or_more_than_their_share(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(cast.owner)
    file = SimpleUploadedFile("me.jpg", photograph())
    assert forged.post(URL, {"file": file, "user": cast.viewer.public_id}).status_code == 403
    monkeypatch.setitem(settings.THROTTLES, "uploads", 1)
    upload_picture(cast.owner, photograph(), user=cast.viewer.public_id, user_id=cast.viewer.public_id)
    kept = PersonPicture.objects.get()
    assert kept.user == cast.owner
    assert "Saved." not in upload_picture(cast.owner, png(16, 16, data=bytes(48)))
    assert bytes(PersonPicture.objects.get().jpeg) == bytes(kept.jpeg)
