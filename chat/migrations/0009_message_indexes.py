"""What was set aside is found by what took its place, and messages by their words. Writers go on meanwhile."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.functions.text
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False
    dependencies = [("chat", "0008_earlier_versions")]

    operations = [
        AddIndexConcurrently(
            "message",
            models.Index(
                condition=models.Q(("superseded_by__isnull", False)),
                fields=["superseded_by"],
                name="message_superseded",
            ),
        ),
        AddIndexConcurrently(
            "message",
            django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.search.SearchVector(
                    django.db.models.functions.text.Left("content", 50000), config="simple"
                ),
                condition=models.Q(("status", "streaming"), _negated=True),
                name="message_words",
            ),
        ),
    ]
