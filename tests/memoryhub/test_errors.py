"""The text of an error that has only its fields."""

import json

from django.utils.translation import gettext_lazy

from memoryhub.errors import Conflict, Invalid


def test_an_error_without_a_message_says_what_its_fields_say_each_with_one_full_stop() -> None:
    error = Invalid(fields={"file": "Must not be empty.", "name": "is taken"})
    assert error.message == "file: Must not be empty. name: is taken."


def test_marked_sentences_are_plain_text_for_every_door() -> None:
    error = Conflict(gettext_lazy("Taken."), fields={"name": gettext_lazy("is taken")})
    assert json.dumps(error.body()) == (
        '{"error": {"code": "conflict", "message": "Taken.", "fields": {"name": "is taken"}}}'
    )
    assert type(Conflict().message) is str
