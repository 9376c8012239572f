"""Artifacts: saved, changed, compared, restored, deleted, permanently deleted; and their visibility."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memoryhub.errors import Forbidden, NotFound
from tests.api import Api, type_password_again
from tests.conftest import Cast
from tests.factories import make_artifact, make_user
from workspaces import artifacts
from workspaces.models import (
    Artifact,
    ArtifactVersion,
    Membership,
    PassageVector,
    PassageWord,
    Role,
)
from workspaces.models.documents import ARTIFACT, CONTENT_LENGTH
from workspaces.quotas import QuotaReached
from workspaces.views import artifacts as serving
from workspaces.views.documents import compare

pytestmark = pytest.mark.django_db
CODE = {
    "title": "Sums",
    "kind": "code",
    "language": "Python",
    "content": "def add(a, b):\n    return a - b\n",
}


def listed(cast: Cast) -> str:
    return f"workspaces/{cast.workspace.public_id}/artifacts"


def test_it_is_kept_changed_and_taken_back_with_every_version(cast: Cast) -> None:
    api = Api(cast.editor)
    made = api.post(listed(cast), CODE)
    assert made.status_code == 201
    shown = made.json()
    assert (shown["language"], shown["version"], shown["personal"]) == ("python", 1, False)
    assert shown["content"] == CODE["content"] and shown["source_message_id"] is None
    one = f"{listed(cast)}/{shown['id']}"
    right = CODE["content"].replace("-", "+")
    changed = api.patch(one, {"content": right})
    assert (changed.status_code, changed.json()["version"], changed.json()["content"]) == (200, 2, right)
    assert api.patch(one, {"content": right}).json()["version"] == 2  # the same again
    assert api.get(listed(cast)).json()["items"] == [api.get(one).json()]
    told = api.get(f"{one}/versions").json()["items"]
    assert [(each["number"], each["by"]["username"]) for each in told] == [(2, "eddie"), (1, "eddie")]
    lines = compare(told[1]["content"], told[0]["content"])
    assert [(line.sign, line.before, line.after) for line in lines] == [
        (" ", 1, 1),
        ("-", 2, None),
        ("+", None, 2),
    ]

    assert [api.delete(one).status_code for _ in range(2)] == [204, 404]
    assert api.get(listed(cast)).json()["items"] == []
    assert not PassageWord.objects.filter(kind=ARTIFACT).exists()
    assert api.patch(one, {"content": "x"}).status_code == 404
    assert api.post(f"{one}/restore").json()["version"] == 2
    assert PassageWord.objects.filter(kind=ARTIFACT, lexeme="add").exists()


def test_of_two_who_change_it_at_once_one_is_told_and_nothing_is_lost(cast: Cast, client: Client) -> None:
    artifact = make_artifact(cast.owner, cast.workspace, "one\ntwo\nthree")
    one, olive, eddie = f"{listed(cast)}/{artifact.public_id}", Api(cast.owner), Api(cast.editor)
    seen = olive.get(one)["ETag"]
    header = {"content_type": "application/json", "headers": {"if-match": seen}}
    first = olive.client.patch(f"/chat/api/{one}", {"content": "one\n2\nthree"}, **header)
    late = eddie.client.patch(f"/chat/api/{one}", {"content": "one\ntwo\n3"}, **header)
    assert (first.status_code, late.status_code) == (200, 409)
    assert late.json()["error"]["code"] == "stale" and late["ETag"] == first["ETag"] != seen
    gone = eddie.client.delete(f"/chat/api/{one}", {}, **header)
    assert gone.status_code == 409

    client.force_login(cast.editor)
    page = f"/{one.replace('chat/api/', '')}/"
    sent = {"title": artifact.title, "content": "one\r\ntwo\r\n3", "version": "1"}
    refused = client.post(page, sent)
    said = refused.content.decode()
    assert refused.status_code == 409 and "has been changed since" in said
    assert 'name="version" value="2"' in said and "two\n3" in said.replace("\r", "")
    assert "diff__removed" in said and "diff__added" in said
    assert client.post(page, sent | {"version": "2"}).status_code == 302
    artifact.refresh_from_db()
    assert (artifact.version, artifact.content) == (3, "one\ntwo\n3")
    assert [each.content for each in artifact.versions.all()][1:] == ["one\n2\nthree", "one\ntwo\nthree"]
    client.post(f"{page}back/", {"number": "2"})
    artifact.refresh_from_db()
    assert (artifact.version, artifact.content) == (4, "one\n2\nthree")


def test_one_change_is_undone_and_only_while_it_is_the_newest(cast: Cast) -> None:
    now = timezone.now()
    artifact = make_artifact(cast.owner, cast.workspace, "one")
    artifact = artifacts.update_artifact(artifact, content="two", by=cast.editor, now=now, by_model=True)
    with pytest.raises(artifacts.Stale):
        artifacts.undo(artifact, 1, by=cast.editor, now=now)
    artifacts.undo(artifact, 2, by=cast.editor, now=now)
    artifact.refresh_from_db()
    assert (artifact.version, artifact.content) == (3, "one")
    assert [each.by_model for each in artifact.versions.all()] == [False, True, False]
    other = make_artifact(cast.owner, cast.workspace)
    artifacts.undo(other, 1, by=cast.owner, now=now)
    assert Artifact.objects.live().get() == artifact


def test_forgetting_leaves_nothing_of_it(cast: Cast) -> None:
    artifact = make_artifact(cast.editor, cast.workspace, "zebra crossing")
    artifact = artifacts.update_artifact(
        artifact, content="zebra crossings", by=cast.owner, now=timezone.now()
    )
    other = make_user("max")
    Membership.objects.create(workspace=cast.workspace, user=other, role=Role.EDITOR)
    one, api = f"{listed(cast)}/{artifact.public_id}", Api(cast.editor)
    assert Api(other).post(f"{one}/forget").status_code == 403
    assert api.post(f"{one}/forget").json()["error"]["code"] == "reauthenticate"
    api.delete(one)
    type_password_again(api.client)
    assert api.post(f"{one}/forget").json()["removed"] == {"artifacts": 1, "artifact_versions": 2}
    assert not ArtifactVersion.objects.exists()
    assert not PassageWord.objects.filter(kind=ARTIFACT).exists()
    assert not PassageVector.objects.filter(kind=ARTIFACT).exists()
    assert api.post(f"{one}/restore").status_code == 404


def test_what_was_deleted_long_ago_is_purged(cast: Cast, settings: Any) -> None:
    now = timezone.now()
    kept, gone = make_artifact(cast.owner, cast.workspace), make_artifact(cast.owner, cast.workspace)
    artifacts.delete(gone, by=cast.owner, now=now - timedelta(days=settings.PURGE_AFTER_DAYS + 1))
    assert artifacts.purge(now=now, seconds=9) == 1 and artifacts.purge(now=now, seconds=9) == 0
    assert Artifact.objects.get() == kept


def test_each_version_counts_for_its_maker(cast: Cast, settings: Any) -> None:
    settings.QUOTAS = settings.QUOTAS | {"bytes": 100}
    artifact = make_artifact(cast.editor, cast.workspace, "x" * 60)
    with pytest.raises(QuotaReached):
        artifacts.update_artifact(artifact, content="y" * 60, by=cast.editor, now=timezone.now())
    artifact.refresh_from_db()
    assert (artifact.version, artifact.content) == (1, "x" * 60)


def test_who_was_let_out_meanwhile_changes_nothing(cast: Cast) -> None:
    artifact = make_artifact(cast.owner, cast.workspace)
    membership = Membership.objects.get(user=cast.editor, workspace=cast.workspace)
    membership.role = Role.VIEWER
    membership.save()
    with pytest.raises(Forbidden):
        artifacts.update_artifact(artifact, content="x", by=cast.editor, now=timezone.now())
    membership.delete()
    with pytest.raises(NotFound):
        artifacts.delete(artifact, by=cast.editor, now=timezone.now())


def test_a_wrong_body_is_named(cast: Cast) -> None:
    for field, value in (
        ("kind", "binary"),
        ("content", " \n"),
        ("content", "x" * (CONTENT_LENGTH + 1)),
        ("title", ""),
        ("title", 7),
    ):
        refused = Api(cast.editor).post(listed(cast), CODE | {field: value})
        assert refused.status_code == 422 and field in refused.json()["error"]["fields"]
        assert not Artifact.objects.exists()


def test_pages_show_all_kinds_and_run_none_of_it(cast: Cast, client: Client) -> None:
    client.force_login(cast.viewer)
    hostile = "</pre><script>alert(1)</script>"
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    for kind, content in (("code", hostile), ("markdown", hostile), ("table", table), ("html", hostile)):
        artifact = make_artifact(
            cast.owner, cast.workspace, content, kind=kind, title=hostile, language="python"
        )
        page = f"/workspaces/{cast.workspace.public_id}/artifacts/{artifact.public_id}/"
        beside = client.get(page, headers={"HX-Request": "true"})
        assert beside["HX-Retarget"] == "#panel"
        for said in (
            client.get(page),
            beside,
            client.get(f"{page}?show=source"),
            client.get(f"{page}versions/"),
        ):
            text = said.content.decode()
            assert said.status_code == 200 and "<script>alert" not in text
            assert "Save as a new version" not in text  # for a viewer
            assert said["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        file = client.get(f"{page}download/")
        assert file.content.decode() == content and file["Content-Type"] == "application/octet-stream"
        assert (
            file["Content-Disposition"].startswith("attachment")
            and "sandbox" in file["Content-Security-Policy"]
        )
        for number in ("9", "-1", "x", "99999999999"):
            assert client.get(f"{page}?version={number}").status_code == 404
    assert "<td>1</td>" in client.get(page.replace(artifact.public_id, _of("table"))).content.decode()


def _of(kind: str) -> str:
    return Artifact.objects.get(kind=kind).public_id


def test_a_page_is_served_for_a_frame_alone_and_without_network(cast: Cast, client: Client) -> None:
    artifact = make_artifact(cast.owner, cast.workspace, "<script>1</script>", kind="html")
    code = make_artifact(cast.owner, cast.workspace)
    client.force_login(cast.viewer)
    address = f"/workspaces/{cast.workspace.public_id}/artifacts/"
    framed = client.get(f"{address}{artifact.public_id}/frame/", headers={"Sec-Fetch-Dest": "iframe"})
    policy = dict(part.strip().partition(" ")[::2] for part in framed["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["sandbox"] == "allow-scripts"
    assert policy["frame-ancestors"] == "'self'" and policy["form-action"] == policy["base-uri"] == "'none'"
    assert not {"connect-src", "frame-src", "worker-src", "object-src"} & set(policy)
    assert all(
        "http" not in each and "'self'" not in each
        for name, each in policy.items()
        if name != "frame-ancestors"
    )
    assert framed["X-Frame-Options"] == "SAMEORIGIN" and framed["X-Content-Type-Options"] == "nosniff"
    assert framed["Connection-Allowlist"] == "()"
    opened = client.get(f"{address}{artifact.public_id}/frame/", headers={"Sec-Fetch-Dest": "document"})
    assert (opened.status_code, opened["Location"]) == (302, f"{address}{artifact.public_id}/")
    assert client.get(f"{address}{code.public_id}/frame/").status_code == 404


def test_nothing_in_a_page_runs_before_webrtc_is_taken_away() -> None:
    for page, begins in [
        ("<p>Hello", "<script>{"),
        (" <!DOCTYPE html>\n<p>Hello", " <!DOCTYPE html><script>{"),
        (
            "<!-- --!><script>bad()</script> --><!doctype html>",
            "<script>{",
        ),  # where a comment ends is debatable
        ('<!doctype html "><script>bad()</script>">', '<!doctype html "><script>{'),
    ]:
        sent = serving.framed_page(ArtifactVersion(content=page)).content.decode()
        assert sent.startswith(begins) and sent.replace(serving.WITHOUT_WEBRTC, "") == page, (page, begins)


def test_no_page_declares_a_shadow_root() -> None:
    page = "<!doctype html><p><template ShadowRootMode=open>a</template><script>this.shadowRoot</script>"
    sent = serving.framed_page(ArtifactVersion(content=page)).content.decode()
    assert "shadowrootmode" not in sent.lower() and "this.shadowRoot<" in sent


def test_comparing_tells_a_line_separator_from_a_line_end() -> None:
    lines = compare("one\u2028two\r\n", "one\ntwo")
    assert [(line.sign, line.text) for line in lines] == [
        ("-", "one\u2028two"),
        ("+", "one"),
        ("+", "two"),
    ]


def test_comparing_takes_a_bounded_time_whatever_it_compares() -> None:
    """Ten times the length would take hundreds of times as long without a limit."""
    lines = [f"{number % 400}" for number in range(20_000)]
    before, after = "\n".join(lines), "\n".join(reversed(lines))
    began = time.process_time()
    found = compare(before, after)
    assert time.process_time() - began < 5
    assert {line.sign for line in found} <= {"-", "+", " ", "…"}
    assert sum(line.sign == "-" for line in found) > 19_000


def test_lines_that_went_and_came() -> None:
    for before, after, signs in [
        ("a", "a", ""),
        ("", "a", "+"),
        ("a\nb", "b", "- "),
        ("a\nb\nc\nd\ne\nf\ng\nh\ni", "a\nb\nc\nd\nX\nf\ng\nh\ni", "…   -+   …"),
        ("a\nc", "a\nb\nc", " + "),
    ]:
        found = compare(before, after)
        assert "".join(line.sign for line in found) == signs, (before, after, signs)
        kept = [line.text for line in found if line.sign in " +" and line.after]
        if "…" not in signs and found:
            assert "\n".join(kept) == after, (before, after, signs)


KEY = "token = 'ghp_" + "a1B2c3D4e5F6" * 3 + "'"


def test_what_looks_like_a_credential_is_asked_about_once(cast: Cast, client: Client) -> None:
    api, code = Api(cast.editor), {**CODE, "content": f"{CODE['content']}{KEY}\n"}
    refused = api.post(listed(cast), code)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "sensitive")
    assert KEY not in refused.content.decode() and not Artifact.objects.exists()
    one = f"{listed(cast)}/{api.post(listed(cast), {**code, 'confirm': True}).json()['id']}"
    # Existing findings need no new confirmation, and new ones always do.
    other = code["content"].replace("a - b", "a + b")
    assert api.patch(one, {"content": other}).status_code == 200
    more = f"{other}card = '4111 1111 1111 1111'\n"
    assert api.patch(one, {"content": more}).json()["error"]["code"] == "sensitive"
    assert api.patch(one, {"content": "nothing"}).json()["version"] == 3
    assert api.patch(one, {"content": other}).json()["error"]["code"] == "sensitive"
    made = Artifact.objects.get()
    artifacts.restore_version(made, 2, by=cast.editor, now=timezone.now())  # it was confirmed before
    made.refresh_from_db()
    assert (made.version, made.content) == (4, other)

    client.force_login(cast.editor)
    page = f"/workspaces/{cast.workspace.public_id}/artifacts/"
    for address, sent in ((page, code), (f"{page}{made.public_id}/", {**code, "content": more})):
        asked = client.post(address, sent)
        assert asked.status_code == 422 and 'name="confirm"' in asked.content.decode()
        assert client.post(address, {**sent, "confirm": "true"}).status_code == 302
    assert Artifact.objects.count() == 2
