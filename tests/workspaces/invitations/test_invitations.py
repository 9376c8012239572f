"""Invitations by link and by mail: permissions, accepting, and every way in which one ends."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memoryhub.backup import dump
from memoryhub.errors import Forbidden, Invalid, NotFound, TooManyRequests
from memoryhub.monitoring.logs import without_keys
from tests.conftest import Cast, make_cast
from tests.factories import PASSWORD, make_invitation, make_user, make_workspace
from tests.races import Work
from tests.rollback import rolled_back
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.accounts import invitations
from workspaces.accounts.invitations import Ended, accept, link_token, read_link, revoke_invitation
from workspaces.actions.workspaces import change_role, remove_member
from workspaces.models import AuditEvent, Invitation, Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db
DUMMY = "django.core.mail.backends.dummy.EmailBackend"


def page_of(invitation: Invitation) -> str:
    return f"/join/{link_token(invitation)}/"


def test_a_link_lets_somebody_in_who_had_no_account(cast: Cast) -> None:
    """Created on the page, opened without a session, through sign-up and back, accepted, and no longer listed."""
    owner, settings_page = signed_in(cast.owner), f"/workspaces/{cast.workspace.public_id}/settings/"
    values = {"role": "editor", "most": "1", "lasts": "7"}
    html = owner.post(
        f"/workspaces/{cast.workspace.public_id}/invitations/", values, follow=True
    ).content.decode()
    made = Invitation.objects.get()
    link = page_of(made)
    assert f"http://testserver{link}" in html and "A link for one person" in html
    assert link not in signed_in(cast.editor).get(settings_page).content.decode(), (
        "it is the owners' to pass on"
    )

    client = Client()
    opened = client.get(link).content.decode()
    assert "Join “Shared”" in opened and "olive invites you as an editor" in opened
    assert f"/accounts/signup/?next={link.replace('/', '%2F')}" in opened
    data = {"username": "nina", "password1": PASSWORD, "password2": PASSWORD, "next": link}
    back = client.post("/accounts/signup/", data, follow=True)
    assert back.redirect_chain[-1][0] == link and "Join as nina" in back.content.decode()
    assert not Membership.objects.filter(user__username="nina", workspace=cast.workspace).exists(), (
        "by a click alone"
    )
    joined = client.post(f"{link}accept/", follow=True).content.decode()
    assert "You are now a member of “Shared”." in joined
    member = Membership.objects.get(user__username="nina", workspace=cast.workspace)
    assert member.role == Role.EDITOR
    event = AuditEvent.objects.get(verb="member_joined")
    assert (event.by_name, event.details) == ("nina", {"role": "editor", "invitation": made.public_id})
    assert link not in owner.get(settings_page).content.decode()
    assert "Shared" in client.get(link, follow=True).content.decode(), "used up, it leads its guest there"
    assert Client().get(link).status_code == signed_in(cast.stranger).get(link).status_code == 410


def test_a_name_that_turns_the_direction_turns_no_sentence(cast: Cast) -> None:
    made = make_invitation(make_workspace(owner=cast.owner, name="Team\u202egr"), by=cast.owner)
    assert "Join “\u2068Team\u202egr\u2069”" in Client().get(page_of(made)).content.decode()
    joined = signed_in(cast.stranger).post(f"{page_of(made)}accept/", follow=True).content.decode()
    assert "You are now a member of “\u2068Team\u202egr\u2069”." in joined


def test_nobody_but_owners_invites_revokes_or_sees_links(cast: Cast) -> None:
    values: dict[str, Any] = {"role": "viewer", "most": 1, "lasts": timedelta(days=1), "now": timezone.now()}
    made = make_invitation(cast.workspace, cast.owner)
    for person, refusal in ((cast.editor, Forbidden), (cast.viewer, Forbidden), (cast.stranger, NotFound)):
        with pytest.raises(refusal):
            invitations.create_invitation(cast.workspace, by=person, **values)
        with pytest.raises(refusal):
            revoke_invitation(cast.workspace, made.public_id, by=person, now=timezone.now())
    other = make_workspace(owner=cast.stranger)
    with pytest.raises(NotFound):
        revoke_invitation(other, made.public_id, by=cast.stranger, now=timezone.now())
    made.refresh_from_db()
    assert made.revoked_at is None
    assert accept(link_token(made), by=cast.stranger, now=timezone.now()).role == Role.VIEWER


def test_an_invitation_is_bounded(cast: Cast) -> None:
    for values, field in (
        ({"role": "owner", "most": 2}, "most"),
        ({"role": "god"}, "role"),
        ({"most": 0}, "most"),
        ({"most": 101}, "most"),
        ({"lasts": timedelta(0)}, "lasts"),
        ({"lasts": timedelta(days=31)}, "lasts"),
        ({"email": "a@example.org, b@example.org"}, "email"),
        ({"email": "a@example.org\nBcc: b@example.org"}, "email"),
    ):
        with pytest.raises(Invalid) as refused:
            make_invitation(cast.workspace, cast.owner, **values)
        assert field in refused.value.fields
        assert not Invitation.objects.exists()


def test_every_end_says_what_to_do(cast: Cast) -> None:
    now = timezone.now()
    revoked, expired, used, orphaned = (make_invitation(cast.workspace, cast.owner) for _ in range(4))
    revoke_invitation(cast.workspace, revoked.public_id, by=cast.owner, now=now)
    accept(link_token(used), by=make_user("first"), now=now)
    for invitation, at, sentence in (
        (revoked, now, "withdrawn"),
        (expired, now + timedelta(days=8), "expired. Ask olive for a new one"),
        (used, now, "tell olive at once"),
    ):
        with pytest.raises(Ended, match=sentence):
            accept(link_token(invitation), by=make_user(), now=at)
    change_role(cast.workspace, user=cast.editor, role="owner", by=cast.owner)
    remove_member(cast.workspace, user=cast.owner, by=cast.editor)
    with pytest.raises(Ended, match="can no longer invite"):
        accept(link_token(orphaned), by=cast.stranger, now=now)
    assert Membership.objects.filter(workspace=cast.workspace).count() == 3, (
        "the first guest, and who was there"
    )
    page = Client().get(page_of(revoked))
    assert page.status_code == 410 and "has been withdrawn" in page.content.decode()
    assert invitations.sweep(now=now + timedelta(days=38)) == 4


def test_nobody_forges_guesses_or_bends_a_link(cast: Cast) -> None:
    """An id without its signature, another's signature, a changed letter, and a signature of another purpose."""
    from django.core import signing

    made, other = (
        make_invitation(cast.workspace, cast.owner),
        make_invitation(cast.workspace, cast.owner, role="owner"),
    )
    token = link_token(made)
    signature = token.split(".")[1]
    for forged in (
        made.public_id,
        f"{made.public_id}.",
        f"{other.public_id}.{signature}",
        f"{token[:-1]}{'A' if token[-1] != 'A' else 'B'}",
        signing.Signer(sep=".").sign(made.public_id),
        signing.Signer(salt=invitations.SALT, sep=".").sign("inv_000000000000000000000000"),
        "x" * 5000,
        "%00",
    ):
        assert Client().get(f"/join/{forged}/").status_code == 404, forged[:60]
        with pytest.raises(NotFound):
            read_link(forged, by=None, now=timezone.now())
    answer = signed_in(cast.stranger).post(f"{page_of(made)}accept/", {"role": "owner", "most": "9"})
    assert answer.status_code == 302
    assert Membership.objects.get(workspace=cast.workspace, user=cast.stranger).role == Role.VIEWER
    assert Client(enforce_csrf_checks=True).post(f"{page_of(other)}accept/").status_code in {302, 403}
    assert token not in without_keys(f"GET https://hub.example.org{page_of(made)}accept/ 302")


def test_a_member_stays_what_they_are_and_uses_nothing_up(cast: Cast) -> None:
    made = make_invitation(cast.workspace, cast.owner, role="owner")
    assert accept(link_token(made), by=cast.viewer, now=timezone.now()).role == Role.VIEWER
    made.refresh_from_db()
    assert made.used == 0
    assert signed_in(cast.viewer).get(page_of(made)).status_code == 302


def test_who_was_removed_comes_back_by_no_link_of_before(cast: Cast) -> None:
    """A demotion and leaving count as well. A new invitation works, and others may use the old ones."""
    for how in rolled_back(["removed", "demoted"]):
        used, open_ = (
            make_invitation(cast.workspace, cast.owner, role=Role.EDITOR, most=10) for _ in range(2)
        )
        accept(link_token(used), by=cast.stranger, now=timezone.now())
        if how == "demoted":
            change_role(cast.workspace, user=cast.stranger, role="viewer", by=cast.owner)
            assert accept(link_token(open_), by=cast.stranger, now=timezone.now()).role == Role.VIEWER, how
        by = cast.owner if how == "removed" else cast.stranger
        remove_member(cast.workspace, user=cast.stranger, by=by)
        for link in (used, open_):
            answer = signed_in(cast.stranger).post(f"{page_of(link)}accept/", follow=True)
            assert "You can no longer use this invitation" in answer.content.decode(), how
            assert not Membership.objects.filter(workspace=cast.workspace, user=cast.stranger).exists(), how
            link.refresh_from_db()
            assert (link.used, link.used_by) == (int(link == used), [cast.stranger.pk]), how
            assert accept(link_token(link), by=make_user(), now=timezone.now()).role == Role.EDITOR, how
        again = make_invitation(cast.workspace, cast.owner)
        assert accept(link_token(again), by=cast.stranger, now=timezone.now()).role == Role.VIEWER, how


def test_who_left_by_themselves_comes_back_by_another_link(cast: Cast) -> None:
    remove_member(cast.workspace, user=cast.editor, by=cast.editor)
    link = make_invitation(cast.workspace, cast.owner, role=Role.EDITOR)
    remove_member(cast.workspace, user=cast.viewer, by=cast.viewer)
    assert accept(link_token(link), by=cast.viewer, now=timezone.now()).role == Role.EDITOR


def test_mails_to_strangers_are_few_a_day(cast: Cast, settings: Any) -> None:
    settings.THROTTLES = {**settings.THROTTLES, "invitation mails": 2}
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    now = timezone.now()

    def invite(email: str, later: timedelta) -> Invitation:
        return make_invitation(cast.workspace, cast.owner, email=email, now=now + later)

    for number in range(2):
        invite(f"nina{number}@example.org", timedelta(minutes=number))
    with pytest.raises(TooManyRequests) as refused:
        invite("nina2@example.org", timedelta(hours=1))
    assert 10 * 3600 < refused.value.retry_after < 12 * 3600
    invite("", timedelta(hours=1))
    invite("nina2@example.org", timedelta(hours=13))


@pytest.mark.django_db(transaction=True)
def test_a_restored_backup_opens_no_invitation_that_ended_since() -> None:
    """An invitation that was accepted since, which the backup does not know, is revoked as well."""
    cast = make_cast()
    kept, revoked, joined, barred = (make_invitation(cast.workspace, cast.owner, most=10) for _ in range(4))
    revoke_invitation(cast.workspace, revoked.public_id, by=cast.owner, now=timezone.now())
    accept(link_token(joined), by=cast.stranger, now=timezone.now())
    barred.used_by.append(cast.stranger.pk)
    barred.save()
    said: list[str] = []
    with transaction.atomic():  # written directly, not by the product: as if it came with the backup
        Invitation.objects.update(used=0, used_by=[], revoked_at=None)
        with dump.connect() as outside:
            invitations.close_again(outside, said.append)
    assert read_link(link_token(kept), by=None, now=timezone.now()) == kept
    for closed in (revoked, joined, barred):
        with pytest.raises(Ended, match="withdrawn"):
            read_link(link_token(closed), by=None, now=timezone.now())
    assert said == ["3 invitations were ended or used since: closed"]
    assert "workspaces.accounts.invitations.close_again" in settings.AFTER_RESTORE


def test_a_mail_is_for_one_person_and_only_where_mail_can_be_sent(
    cast: Cast, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    owner, create = signed_in(cast.owner), f"/workspaces/{cast.workspace.public_id}/invitations/"
    values = {"role": "viewer", "most": "100", "lasts": "7", "email": "nina@example.org"}
    with django_capture_on_commit_callbacks(execute=True):
        assert owner.post(create, values).status_code == 302
    made = Invitation.objects.get()
    assert (made.most, mail.outbox[0].to) == (1, ["nina@example.org"])
    assert page_of(made) in mail.outbox[0].body and "Workspace: Shared\n" in mail.outbox[0].body
    settings.EMAIL_BACKEND = DUMMY
    assert (
        'name="email"' not in owner.get(f"/workspaces/{cast.workspace.public_id}/settings/").content.decode()
    )
    with pytest.raises(Invalid):
        make_invitation(cast.workspace, cast.owner, email="nina@example.org")


def test_a_mail_opens_nothing_but_its_own_link(cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    User.objects.filter(pk=cast.owner.pk).update(
        first_name="Helpdesk: renew at https://evil.example/now, or www.evil.example"
    )
    Workspace.objects.filter(pk=cast.workspace.pk).update(
        name="”.\nMail your\x0b password to hub@evil。example “" + "x" * 60
    )
    made = make_invitation(cast.workspace, User.objects.get(pk=cast.owner.pk), email="nina@example.org")
    with django_capture_on_commit_callbacks(execute=True):
        invitations.send_by_mail(made, link="https://hub.example.org/join/it/")
    lines = mail.outbox[0].body.splitlines()
    assert [line for line in lines if re.search(r"\w://\w|\w@\w|\w[.。][a-z]", line)] == [
        "https://hub.example.org/join/it/"
    ]
    by, named = (
        next(line for line in lines if line.startswith(label)) for label in ("Invited by: ", "Workspace: ")
    )
    assert (
        by.startswith("Invited by: olive · Helpdesk: ")
        and by.endswith("…")
        and named.startswith("Workspace: ”. Mail your password to hub@ evil")
        and len(named) < 80
    )


def test_closed_sign_up_stays_closed(cast: Cast, settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    opened = Client().get(page_of(make_invitation(cast.workspace, cast.owner))).content.decode()
    assert "/accounts/signup/" not in opened and "Ask your administrator for one" in opened


def test_invitations_are_limited(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.THROTTLES = {**settings.THROTTLES, "invitations": 2}
    monkeypatch.setattr(invitations, "MOST_OPEN", 1)
    make_invitation(cast.workspace, cast.owner)
    with pytest.raises(invitations.Conflict, match="Revoke one first"):
        make_invitation(cast.workspace, cast.owner)
    with pytest.raises(TooManyRequests):
        make_invitation(default_workspace(cast.owner), cast.owner)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_with_a_link_for_one(cast: Cast) -> None:
    made = make_invitation(cast.workspace, cast.owner)
    late = make_user("late")
    with transaction.atomic():
        accept(link_token(made), by=cast.stranger, now=timezone.now())
        other = Work(lambda: accept(link_token(made), by=late, now=timezone.now()))
        assert other.waits_for_a_lock()
    assert isinstance(other.end(), Ended)
    made.refresh_from_db()
    assert made.used == 1
    assert not Membership.objects.filter(workspace=cast.workspace, user=late).exists()
