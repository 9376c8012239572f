"""What looks at every memory once, beside readers and writers: it holds no lock that they wait for."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0007_agent_scope')]

    operations = [
        ValidateConstraint(model_name='memory', name='scope_says_whose'),
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=Q(agent__isnull=False), fields=['agent', '-created_at', '-id'], name='memory_agent'),
        ),
    ]
