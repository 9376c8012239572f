"""Irreversible actions need a confirmation, on a second button."""

import re

import pytest
from django.test import Client

from tests.world import World

pytestmark = pytest.mark.django_db
ASKED = re.compile(r'<details class="menu menu--asks">((?:(?!</details>).)*)</details>', re.S)


def test_its_form_is_where_the_question_is(world: World) -> None:
    client = Client()
    client.force_login(world.cast.owner)
    for page, action, question in [
        ("/workspaces/{ws_id}/settings/", "/members/{user_id}/remove/", "What they shared here stays."),
        ("/profile/", "/profile/keys/{key_id}/revoke/", "Programs that use it stop working at once."),
        ("/connections/", "/connections/{connection_id}/delete/", "and its key?"),
        ("/workspaces/{ws_id}/prompts/", "/prompts/{prompt_id}/delete/", "This cannot be undone."),
        ("/workspaces/{ws_id}/runs/", "/templates/{template_id}/delete/", "This cannot be undone."),
        (
            "/workspaces/{ws_id}/webhooks/{webhook_id}/",
            "/webhooks/{webhook_id}/delete/",
            "This cannot be undone.",
        ),
    ]:
        html = client.get(page.format(**world.ids)).content.decode()
        address = f'{action.format(**world.ids)}"'
        asked = [each for each in ASKED.findall(html) if address in each]
        assert html.count(address) == len(asked) == 1, "nowhere without it"
        assert question in asked[0] and 'name="csrfmiddlewaretoken"' in asked[0], (page, action, question)
