"""What is to be purged is found without a look at the other memories; built beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0010_tombstones')]

    operations = [
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=Q(deleted_at__isnull=False), fields=['deleted_at'], name='memory_purge'),
        ),
    ]
