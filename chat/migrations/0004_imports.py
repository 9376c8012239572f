"""Imports: what was uploaded, what would become of each line, and how far it has come."""

import django.db.models.deletion
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0003_tool_calls'),
        ('workspaces', '0003_agents'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='imp')),
                ('filename', models.CharField(blank=True, max_length=150)),
                ('kind', models.CharField(choices=[('memoryhub', 'MemoryHub export'), ('chatgpt', 'ChatGPT export'), ('claude', 'Claude export'), ('statements', 'List of statements')], max_length=20)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('status', models.CharField(choices=[('preview', 'Preview'), ('running', 'Running'), ('stopped', 'Stopped'), ('done', 'Done'), ('failed', 'Failed')], default='preview', max_length=10)),
                ('takes_chats', models.BooleanField(default=True)),
                ('takes_memories', models.BooleanField(default=True)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('attempts', models.PositiveSmallIntegerField(default=0, help_text='Since the last step forward.')),
                ('read_bytes', models.BigIntegerField(default=0, help_text='Of the upload; shows how far the look is.')),
                ('read_count', models.BigIntegerField(default=0, help_text='Conversations or entries taken from the upload.')),
                ('looked_bytes', models.BigIntegerField(default=0, help_text='Of the file of lines.')),
                ('looked_lines', models.PositiveIntegerField(default=0)),
                ('stored_bytes', models.BigIntegerField(default=0)),
                ('stored_lines', models.PositiveIntegerField(default=0)),
                ('foreseen', models.JSONField(default=dict, help_text='{kind: {outcome: number}}, of the look.')),
                ('outcomes', models.JSONField(default=dict, help_text='The same, of the storing.')),
                ('places', models.JSONField(default=dict, help_text='Which workspace or assistant of the file is which here.')),
                ('newest_memory', models.BigIntegerField(help_text="The last memory's key when the storing began: with older ones texts are compared.", null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('progressed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(blank=True, help_text='Where everything goes. Empty: each workspace of the file to its own.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ImportRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='Of the line.')),
                ('offset', models.BigIntegerField(help_text='Where the line begins, in bytes.')),
                ('kind', models.CharField(max_length=10)),
                ('outcome', models.CharField(choices=[('new', 'Would be stored'), ('update', 'Would change a memory'), ('duplicate', 'Known already'), ('refused', 'Refused')], max_length=10)),
                ('reason', models.CharField(blank=True, max_length=200)),
                ('duplicate_of', models.CharField(blank=True, help_text='The id of what says it already.', max_length=32)),
                ('same_as', models.PositiveIntegerField(help_text='The line that says it already.', null=True)),
                ('fingerprint', models.BigIntegerField(help_text="Of a statement's text: equal ones meet here.", null=True)),
                ('of', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='chat.import')),
            ],
            options={
                'ordering': ['number'],
            },
        ),
        migrations.AddIndex(
            model_name='import',
            index=models.Index(fields=['user', '-created_at', '-id'], name='import_list'),
        ),
        migrations.AddIndex(
            model_name='import',
            index=models.Index(condition=models.Q(('status', 'running'), models.Q(('checked_at', None), ('status', 'preview')), _connector='OR'), fields=['progressed_at'], name='import_at_work'),
        ),
        migrations.AddIndex(
            model_name='importrow',
            index=models.Index(fields=['of', 'outcome', 'number'], name='import_rows'),
        ),
        migrations.AddIndex(
            model_name='importrow',
            index=models.Index(condition=models.Q(('fingerprint__isnull', False)), fields=['of', 'fingerprint'], name='import_equal'),
        ),
        migrations.AddConstraint(
            model_name='importrow',
            constraint=models.UniqueConstraint(fields=('of', 'number'), name='one_row_a_line'),
        ),
    ]
