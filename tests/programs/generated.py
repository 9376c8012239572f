"""A client that openapi-python-client generated from the schema: it saves, recalls and lists."""

import json
import os

from made.api.organisation_memory import v1_memories_create, v1_memories_list, v1_memories_recall
from made.client import AuthenticatedClient
from made.models import OrganisationMemoryBody, OrganisationRecallBody

client = AuthenticatedClient(
    base_url=os.environ["DOOR"], token=os.environ["KEY"], raise_on_unexpected_status=True
)
saved = v1_memories_create.sync(
    client=client, body=OrganisationMemoryBody(value="Eddie's cat is called Tilly")
)
found = v1_memories_recall.sync(client=client, body=OrganisationRecallBody(query="What is the cat called?"))
listed = v1_memories_list.sync(client=client, limit=5)
print(
    json.dumps(
        {
            "saved": saved.id,
            "found": [each.id for each in found.memories],
            "listed": [each.value for each in listed.items],
            "year": listed.items[0].created_at.year,
        }
    )
)
