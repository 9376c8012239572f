import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# Messages of chats that somebody had imported in another's name, unless they were written here: their answers have a
# sign of life of the process that wrote them.
IMPORTED = """
UPDATE chat_message m SET imported_by_id = u.id, imported_at = now()
FROM chat_chat c LEFT JOIN workspaces_user u ON u.id = c.brought_by
WHERE c.id = m.chat_id AND c.brought_by IS NOT NULL AND m.role = 'user'
  AND m.author_id IS DISTINCT FROM c.brought_by
  AND NOT EXISTS (SELECT 1 FROM chat_message a WHERE a.reply_to_id = m.id AND a.beat_at IS NOT NULL)
"""


class Migration(migrations.Migration):

    atomic = False  # the index is built beside readers and writers
    dependencies = [
        ('chat', '0039_personal_answers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='imported_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='imported_by',
            field=models.ForeignKey(blank=True, db_index=False, help_text="Who imported it under its author's name, where that is another person.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunSQL(IMPORTED, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='message',
            index=models.Index(condition=models.Q(('imported_by__isnull', False)), fields=['imported_by'], name='message_imported'),
        ),
    ]
