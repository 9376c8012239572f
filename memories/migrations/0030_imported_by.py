import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# Memories that take the room of somebody other than their author: until now only an import made such rows.
IMPORTED = """
UPDATE memories_memory m SET imported_by_id = u.id, imported_at = m.created_at
FROM memories_memory o LEFT JOIN workspaces_user u ON u.id = o.brought_by
WHERE o.id = m.id AND o.workspace_id = m.workspace_id AND o.brought_by IS NOT NULL AND m.edited_at IS NULL
"""


class Migration(migrations.Migration):

    atomic = False  # the index is built beside readers and writers
    dependencies = [
        ('memories', '0029_clearing'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='imported_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='imported_by',
            field=models.ForeignKey(blank=True, db_index=False, help_text="Who imported these words under another person's name.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunSQL(IMPORTED, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=models.Q(('imported_by__isnull', False)), fields=['imported_by'], name='memory_imported'),
        ),
    ]
