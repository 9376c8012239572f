"""Run templates, and the expected cost of a run before it begins."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Run
from chat.models.runs import RunTemplate
from chat.runs.services import RunRequest, start_run
from chat.runs.worker import work
from tests.conftest import Cast
from tests.factories import make_chat, make_workspace
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.access import get_workspace

pytestmark = pytest.mark.django_db
PLAN = {"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B", "depends_on": ["a"]}]}


def begun(cast: Cast, **wanted: Any) -> Run:
    place = get_workspace(cast.owner, cast.workspace.public_id)
    values = {"objective": "Compare the offers", "plan": PLAN} | wanted
    return start_run(place, RunRequest(**values), by=cast.owner, now=timezone.now())


def test_a_run_is_kept_as_a_template_and_another_started_from_it(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    scripted_model.respond = lambda request: Answer("Done.")
    run, runs = begun(cast, budget={"tokens": 70_000}), f"/workspaces/{cast.workspace.public_id}/runs/"
    work(seconds=20, at_once=1)
    editor, page = signed_in(cast.editor), f"{runs}{run.public_id}/"
    assert "Save as a template" in editor.get(page).content.decode()
    kept = editor.post(f"{page}template/", {"name": " Offers \x00 compared "})
    template = RunTemplate.objects.get()
    assert template.name == "Offers compared" and kept["Location"] == f"{runs}?template={template.public_id}"
    for wrong in ("", "x" * 81, "Offers compared"):
        assert editor.post(f"{page}template/", {"name": wrong}).status_code == 422
    form = editor.get(kept["Location"]).content.decode()
    assert "Compare the offers" in form and "70000" in form and "Offers compared" in form
    said = {"objective": "Compare the offers of May", "mode": "plan", "tokens": 70_000, "reviews_plan": "on"}
    started = editor.post(runs, said | {"template": template.public_id})["Location"]
    again = Run.objects.order_by("-pk")[0]
    assert (again.status, again.plan, again.user) == ("waiting", run.plan, cast.editor)
    assert "This is the plan" in editor.get(started).content.decode()
    assert editor.post(runs, said | {"template": "rtp_" + "x" * 24}).status_code == 422
    url = f"{runs}templates/{template.public_id}/delete/"
    RunTemplate.objects.update(user=cast.owner)
    assert [signed_in(user).post(url).status_code for user in (cast.viewer, cast.stranger, cast.editor)] == [
        403,
        404,
        403,
    ]
    assert signed_in(cast.owner).post(url).status_code == 302 and not RunTemplate.objects.exists()


def test_a_program_saves_a_template_starts_from_it_and_deletes_it(
    scripted_model: ScriptedOpenAI, cast: Cast
) -> None:
    run, runs = (
        begun(cast, budget={"tokens": 70_000}),
        f"/chat/api/workspaces/{cast.workspace.public_id}/runs",
    )
    owner, editor, viewer = (signed_in(user) for user in (cast.owner, cast.editor, cast.viewer))

    def post(client: Client, url: str, body: Any, **headers: str) -> Any:
        return client.post(f"{runs}/{url}", body, content_type="application/json", headers=headers)

    save = f"{run.public_id}/template"
    saved = post(owner, save, {"name": "Offers"}, **{"Idempotency-Key": "once"})
    again = post(owner, save, {"name": "Offers"}, **{"Idempotency-Key": "once"})
    assert saved.status_code == again.status_code == 201 and saved.json() == again.json()
    wrong = [
        post(owner, save, body).status_code
        for body in ({}, {"name": " "}, {"name": "Offers"}, {"name": 7}, [])
    ]
    assert wrong == [422, 422, 422, 422, 422]
    listed = viewer.get(f"{runs}/templates").json()["items"]
    assert listed == [saved.json()] and listed[0]["budget"]["tokens"] == 70_000
    assert listed[0]["plan"] == run.plan and listed[0]["workspace_id"] == cast.workspace.public_id
    template = f"templates/{listed[0]['id']}"
    assert post(viewer, f"{template}/start", {}).status_code == 403
    assert post(editor, f"{template}/start", {"inputs": []}).status_code == 422
    started = post(editor, f"{template}/start", {"review_plan": True, "inputs": {"city": "Bern"}})
    made = started.json()
    assert (started.status_code, made["status"], made["plan"]) == (202, "waiting", run.plan)
    assert made["objective"] == "Compare the offers" and made["budget"] == listed[0]["budget"]
    assert Run.objects.get(public_id=made["id"]).entries.get().key == "input:city"
    assert post(editor, f"{template}/start", {"objective": "Of May"}).json()["objective"] == "Of May"
    other = make_workspace(owner=cast.stranger)
    stolen = f"/chat/api/workspaces/{other.public_id}/runs/{template}/start"
    assert signed_in(cast.stranger).post(stolen, {}, content_type="application/json").status_code == 404
    assert [client.delete(f"{runs}/{template}").status_code for client in (editor, owner, owner)] == [
        403,
        204,
        404,
    ]
    private = begun(cast, chat_id=make_chat(cast.owner, cast.workspace, is_private=True).pk).public_id
    assert post(owner, f"{private}/template", {"name": "Mine"}).status_code == 409


def test_nobody_reads_a_private_run_by_its_template(scripted_model: ScriptedOpenAI, cast: Cast) -> None:
    run = begun(cast, chat_id=make_chat(cast.owner, cast.workspace, is_private=True).pk)
    url = f"/workspaces/{cast.workspace.public_id}/runs/{run.public_id}/template/"
    assert signed_in(cast.owner).post(url, {"name": "Mine"}).status_code == 409
    assert signed_in(cast.editor).post(url, {"name": "Mine"}).status_code == 404
