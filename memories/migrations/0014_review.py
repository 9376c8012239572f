"""Proposals that wait for a person, and which rules for credentials a row was checked by. Nothing rewrites the table."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [('memories', '0013_memory_days')]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='review',
            field=models.CharField(blank=True, choices=[('', 'Not needed'), ('pending', 'Waits for review'), ('rejected', 'Rejected')], default='', max_length=10),
        ),
        migrations.AlterField(
            model_name='revision',
            name='action',
            field=models.CharField(choices=[('create', 'Saved'), ('edit', 'Edited'), ('delete', 'Forgotten'), ('restore', 'Restored'), ('evict', 'Made room'), ('merge', 'Merged with an older one'), ('propose', 'Proposed'), ('approve', 'Approved'), ('reject', 'Rejected')], max_length=10),
        ),
        AddConstraintNotValid(
            model_name='memory',
            constraint=models.CheckConstraint(
                condition=Q(review='') | Q(deleted_at__isnull=False), name='proposals_are_not_in_use'
            ),
        ),
    ]
