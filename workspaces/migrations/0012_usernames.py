from typing import Any

import django.contrib.postgres.fields
from django.db import migrations, models

from workspaces.accounts.usernames import looks_of


def note_looks(apps: Any, schema_editor: Any) -> None:
    """Of everybody there is, also of two who look alike: both keep signing in."""
    people = apps.get_model("workspaces", "User").objects
    for person in people.only("username").iterator():
        people.filter(pk=person.pk).update(looks=looks_of(person.username))


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0011_made_by"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="looks",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(), default=list, editable=False, size=None
            ),
        ),
        migrations.RunPython(note_looks, migrations.RunPython.noop),
    ]
