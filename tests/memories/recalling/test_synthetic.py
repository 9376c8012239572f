"""Made-up memories fit the tables as they are now: what bench_scale measures is recall as people have it."""

from __future__ import annotations

import numpy as np
from django.utils import timezone

from memories.management import synthetic
from memories.models import Memory
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE
from tests.fakes.embedder import FakeEmbedder
from workspaces.index.embedding import active_or_first


def test_what_is_filled_in_is_recalled(cast: Cast, fake_embedder: FakeEmbedder) -> None:
    model, random = active_or_first(), np.random.default_rng(7)
    assert model is not None
    places = np.repeat(cast.workspace.pk, 40)
    parts = synthetic.embed_parts(fake_embedder)
    filled = synthetic.fill(places, cast.owner.pk, model.label, parts, timezone.now(), random)
    assert list(filled) == [40]
    sentence = Memory.objects.order_by("pk").values_list("content", flat=True)[30]
    found = recall(sentence, cast.workspace, cast.viewer, reach=HERE, now=timezone.now())
    assert found.items[0].memory.content == sentence
    assert {"meaning", "words"} <= set(found.items[0].parts)
