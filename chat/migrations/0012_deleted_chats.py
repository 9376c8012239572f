"""Chats that wait for their purge are found without reading all of them. Writers go on meanwhile."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0011_chosen_connection")]

    operations = [
        AddIndexConcurrently(
            model_name="chat",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)),
                fields=["deleted_at"],
                name="chat_deleted",
            ),
        ),
    ]
