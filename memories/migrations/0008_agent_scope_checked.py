"""What looks at every memory once, beside readers and writers: it holds no lock that they wait for."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q

# As 0006 made it once, while writers waited: where it stands from then, or half-built, it is built anew.
DROP = 'DROP INDEX CONCURRENTLY IF EXISTS memory_automatic'
AUTOMATIC = """
CREATE INDEX CONCURRENTLY memory_automatic ON memories_memory (workspace_id, owner_id)
WHERE deleted_at IS NULL AND (source_type = 'model' OR source_type LIKE 'auto\\_%')
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0007_agent_scope')]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL([DROP, AUTOMATIC], [DROP])],
            state_operations=[
                migrations.AddIndex(
                    model_name='memory',
                    index=models.Index(condition=models.Q(('deleted_at', None), models.Q(('source_type', 'model'), ('source_type__startswith', 'auto_'), _connector='OR')), fields=['workspace', 'owner'], name='memory_automatic'),
                ),
            ],
        ),
        ValidateConstraint(model_name='memory', name='scope_says_whose'),
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=Q(agent__isnull=False), fields=['agent', '-created_at', '-id'], name='memory_agent'),
        ),
    ]
