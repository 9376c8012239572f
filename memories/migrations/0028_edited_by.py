from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# Texts that somebody else had changed before this column was there, as their history says.
EDITED = """
UPDATE memories_memory m SET edited_by_id = r.by_id, edited_at = r.at
FROM (
    SELECT DISTINCT ON (memory_id) memory_id, by_id, at FROM memories_revision
    WHERE action = 'edit' AND jsonb_exists(before, 'content') ORDER BY memory_id, id DESC
) r
WHERE r.memory_id = m.id AND r.by_id IS NOT NULL AND r.by_id IS DISTINCT FROM m.author_id
"""


class Migration(migrations.Migration):

    atomic = False  # the index is built beside readers and writers
    dependencies = [
        ('memories', '0027_receipt_mentions'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='edited_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='edited_by',
            field=models.ForeignKey(blank=True, db_index=False, help_text='Who last changed the text, where that is not its author.', null=True, on_delete=models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunSQL(EDITED, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(condition=models.Q(('edited_by__isnull', False)), fields=['edited_by'], name='memory_edited'),
        ),
    ]
