from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # built beside readers and writers

    dependencies = [("workspaces", "0031_documents_of_people")]

    operations = [
        AddIndexConcurrently(
            model_name="documentpassage",
            index=models.Index(condition=models.Q(("owner__isnull", False)), fields=["owner"], name="passage_own"),
        ),
    ]
