"""Times are shown in the user's time zone, from an untrusted cookie."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Chat
from memories.models import Memory
from memoryhub.http.middleware import asked_for, zone_named
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory
from workspaces.models import ApiKey

pytestmark = pytest.mark.django_db


def looking_from(cast: Cast, zone: str) -> Client:
    client = Client()
    client.force_login(cast.owner)
    client.cookies["zone"] = zone
    return client


def zone_where_it_is(hour: int, now: datetime) -> str:
    """Return the zone in which it is this hour now; these zones have inverted signs."""
    ahead = (hour - now.hour) % 24
    return f"Etc/GMT-{ahead}" if ahead <= 12 else f"Etc/GMT+{24 - ahead}"


def test_a_day_ends_at_ones_own_midnight(cast: Cast) -> None:
    now = datetime.now(UTC)
    chat = make_chat(cast.owner, cast.workspace, title="Begun in the hour before")
    Chat.objects.filter(pk=chat.pk).update(active_at=now - timedelta(minutes=now.minute + 1))
    address = f"/workspaces/{cast.workspace.public_id}/"
    for hour, day in ((0, "Yesterday"), (1, "Today"), (12, "Today")):
        html = looking_from(cast, zone_where_it_is(hour, now)).get(address).content.decode()
        assert [word for word in ("Yesterday", "Today") if f">{word}<" in "".join(html.split())] == [day], (
            hour
        )
    assert timezone.get_current_timezone_name() == "UTC", "of one request alone"


def test_what_is_no_zone_is_utc(cast: Cast) -> None:
    for zone in (
        "",
        "Nowhere/Town",
        "../../../etc/passwd",
        "/etc/localtime",
        "America",
        "x" * 5000,
        "Europe/Berlin\\0",
        "é",
        "-1",
    ):
        assert zone_named(zone) == UTC
        assert looking_from(cast, zone).get("/profile/").status_code == 200


def test_no_long_header_is_remembered(cast: Cast) -> None:
    """At most a thousand values are cached, from any client."""
    zone_named.cache_clear()
    asked_for.cache_clear()
    for number in range(3):
        long = f"{'x' * 5000}{number}"
        assert looking_from(cast, long).get("/profile/").status_code == 200
        assert Client().get("/accounts/login/", headers={"accept-language": long}).status_code == 200
    assert zone_named.cache_info().currsize <= 2, "and none at all"
    assert asked_for.cache_info().currsize <= 2, "and none at all"


def test_a_moment_that_a_zone_has_no_hour_for_breaks_no_page(cast: Cast) -> None:
    """Such dates come from a member's import, or a key without an end."""
    for zone, moment in (("America/New_York", datetime.min), ("Asia/Tokyo", datetime.max)):
        place, at = f"/workspaces/{cast.workspace.public_id}", moment.replace(tzinfo=UTC)
        make_chat(cast.owner, cast.workspace, title="Of another time")
        make_memory("The kettle is green", cast.owner, cast.workspace)
        make_key_text(cast.owner, cast.workspace)
        Chat.objects.update(active_at=at)
        Memory.objects.update(created_at=at)
        ApiKey.objects.update(expires_at=at)
        looking = looking_from(cast, zone)
        for address in (f"{place}/", f"{place}/memories/", f"{place}/chats/list/", "/profile/"):
            assert looking.get(address).status_code == 200, address


def test_programs_and_the_admin_are_told_utc(cast: Cast) -> None:
    cast.owner.is_staff = cast.owner.is_superuser = True
    cast.owner.save()
    memory = make_memory(
        "It is on Monday", cast.owner, cast.workspace, now=datetime(2026, 1, 31, 20, 30, tzinfo=UTC)
    )
    client = looking_from(cast, "Asia/Tokyo")
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/memories"
    assert client.get(url).json()["items"][0]["created_at"].startswith("2026-01-31T20:30")
    assert "8:30 p.m." in client.get(f"/admin/memories/memory/{memory.pk}/change/").content.decode()
