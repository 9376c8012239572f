from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memories", "0105_validity")]

    operations = [
        AddIndexConcurrently(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("replaced_by__isnull", False)),
                fields=["replaced_by"],
                name="memory_replaced",
            ),
        ),
    ]
