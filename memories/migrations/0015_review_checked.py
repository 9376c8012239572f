"""What looks at every memory once, beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0014_review')]

    operations = [
        ValidateConstraint(model_name='memory', name='proposals_are_not_in_use'),
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=Q(review='pending'), fields=['workspace', '-created_at', '-id'], name='memory_proposals'),
        ),
    ]
