"""`manage.py reembed` and the admin's page: progress, stop, resume."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from memories.recalling.recall import recall
from memoryhub.llm.errors import EmbedderUnavailable
from tests.admin_pages import run_action
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.terminal import Terminal
from tests.memories.recalling.test_embedding_models import Models
from workspaces.index import reembedding
from workspaces.models import EmbeddingModel, PassageVector

PAGE = "/admin/workspaces/embeddingmodel/"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, cast: Cast) -> Models:
    models = Models(monkeypatch)
    models.configure(FakeEmbedder(32, name="old"))
    monkeypatch.setattr(reembedding, "BATCH", 2)
    return models


@pytest.fixture
def five(models: Models, cast: Cast) -> None:
    for number in range(5):
        make_memory(f"Thing {number}", cast.owner, cast.workspace)


def reembed(*options: str) -> tuple[str, str]:
    out, err = StringIO(), Terminal()
    call_command("reembed", *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_shows_its_progress_and_the_switch(five: None, models: Models) -> None:
    models.configure(FakeEmbedder(48, name="new"))
    said, shown = reembed()
    assert said == "Recall compares vectors of new (48 dimensions).\n"
    assert "new: 0 of 5 (0 %)" in shown
    assert "new: 4 of 5 (80 %)" in shown


def test_ctrl_c_keeps_what_is_built_and_the_next_run_goes_on(
    five: None, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = models.configure(FakeEmbedder(48, name="new"))
    embed = new.embed

    def interrupted(texts: list[str]) -> object:
        if "Thing 2" in texts:
            raise KeyboardInterrupt
        return embed(texts)

    monkeypatch.setattr(new, "embed", interrupted)
    said, shown = reembed()
    assert "Interrupted. What has been built stays." in shown
    assert "Recall compares vectors of old (32 dimensions).\nBeing built: new (48): 2 of 5 (40 %)" in said
    assert reembed("--stop")[0].startswith("Stopped.\n")
    assert "stopped" in reembed("--status")[0]
    monkeypatch.setattr(new, "embed", embed)
    new.calls.clear()
    assert "new (48 dimensions)" in reembed()[0]
    assert not any("Thing 0" in texts for texts in new.calls)


def test_a_silent_model_is_an_error_in_words(five: None, models: Models) -> None:
    new = models.configure(FakeEmbedder(48, name="new"))
    new.error = EmbedderUnavailable()
    with pytest.raises(CommandError, match="cannot be reached"):
        reembed()
    new.error = None
    reembedding.start()
    new.error = EmbedderUnavailable()
    with pytest.raises(CommandError, match="does not answer"):
        reembed()


def test_a_model_whose_answers_changed_size_is_built_anew_under_another_label(
    five: None, models: Models, cast: Cast
) -> None:
    models.configure(FakeEmbedder(96, name="old"))
    assert (
        "changed their size"
        in recall("Thing", cast.workspace, cast.owner, policy=HERE, now=timezone.now()).degraded
    )
    assert reembed()[0] == "Recall compares vectors of old (2) (96 dimensions).\n"
    assert recall("Thing", cast.workspace, cast.owner, policy=HERE, now=timezone.now()).degraded == ""
    assert reembed("--again")[0] == "Recall compares vectors of old (3) (96 dimensions).\n"
    assert PassageVector.objects.filter(model="old (3)").count() == 5


def test_the_admin_shows_stops_and_starts_it(five: None, models: Models) -> None:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    models.configure(FakeEmbedder(48, name="new"))
    reembedding.start()
    active, building = EmbeddingModel.objects.active(), EmbeddingModel.objects.building()
    assert active is not None
    assert building is not None

    def act(action: str) -> str:
        return run_action(client, PAGE, action, building).content.decode()

    assert "0 of 5 (0 %)" in client.get(PAGE).content.decode()
    assert "new: 0 of 5 (0 %)" in client.get("/admin/").content.decode()
    assert "Recall stays with the model it compares" in act("stop")
    assert "0 of 5 (0 %), stopped" in client.get(f"{PAGE}{building.pk}/change/").content.decode()
    assert "is being built in the background" in act("start")
    assert reembedding.advance(seconds=60) == "switched"
    assert "nothing to build" in act("start")
    assert "Nothing is being built" in act("stop")
    assert "next embedding model" not in client.get("/admin/").content.decode()
    assert client.post(f"{PAGE}{active.pk}/delete/").status_code == 403
