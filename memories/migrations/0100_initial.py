import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models

# Its own words count three times, those of the messages it came from once, and its date's once.
WORDS = """
CREATE FUNCTION memories_counted_words(m memories_memory) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count)::float8 FROM (
        SELECT lexeme, 3 * count AS count FROM workspaces_words(
            concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')))
        UNION ALL
        SELECT lexeme, count FROM workspaces_words(m.source_excerpt)
        UNION ALL
        SELECT lexeme, 1 FROM workspaces_words(to_char(m.created_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'))
    ) counted GROUP BY lexeme
$$;
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON memories_memory
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION workspaces_forget_passages(
        '1', 'memories_counted_words', 'coalesce(-m.owner_id, 1099511627776 + m.agent_id, m.workspace_id)'
    );
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('workspaces', '0100_initial'),
        ('workspaces', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Memory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='mem')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='workspaces.workspace')),
                ('scope', models.CharField(choices=[('workspace', 'Everyone in the workspace'), ('user', 'Its owner, in every workspace'), ('agent', 'Everyone, in chats with its assistant')], default='workspace', max_length=10)),
                ('owner', models.ForeignKey(blank=True, help_text="Whose personal memory this is. Personal ones lie in their owner's default workspace.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='owned_memories', to=settings.AUTH_USER_MODEL)),
                ('agent', models.ForeignKey(blank=True, db_index=False, help_text='Whose memory this is: it is recalled in chats with this assistant only.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='workspaces.agent')),
                ('content', models.TextField(max_length=2000)),
                ('summary', models.TextField(blank=True, max_length=2000, null=True)),
                ('key', models.CharField(blank=True, max_length=200, null=True)),
                ('category', models.CharField(blank=True, max_length=50, null=True)),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, default=list, size=None)),
                ('importance', models.FloatField(default=0.5, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('pinned', models.BooleanField(default=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='memories', to=settings.AUTH_USER_MODEL)),
                ('edited_by', models.ForeignKey(blank=True, db_index=False, help_text='Who last changed the text, where that is not its author.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('edited_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('imported_by', models.ForeignKey(blank=True, db_index=False, help_text="Who imported these words under another person's name.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('imported_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('brought_by', models.BigIntegerField(blank=True, editable=False, help_text="Key of the person who brought it in another's name, whose room it takes, also once they are gone.", null=True)),
                ('source_type', models.CharField(default='user', max_length=50)),
                ('source_chat_id', models.CharField(blank=True, default='', max_length=32)),
                ('source_message_id', models.CharField(blank=True, default='', max_length=32)),
                ('source_excerpt', models.TextField(blank=True, default='')),
                ('source_details', models.JSONField(blank=True, default=dict)),
                ('may_replace', models.ForeignKey(blank=True, help_text='An older memory that says nearly the same with another value.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='may_be_replaced_by', to='memories.memory')),
                ('content_hash', models.CharField(editable=False, max_length=64)),
                ('search', django.contrib.postgres.search.SearchVectorField(editable=False, null=True)),
                ('embedding_failed_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('own_row', models.BooleanField(db_default=False, default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_accessed_at', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('review', models.CharField(blank=True, choices=[('', 'Not needed'), ('pending', 'Waits for review'), ('rejected', 'Rejected')], default='', max_length=10)),
                ('secret_rules', models.IntegerField(default=0, editable=False)),
            ],
            options={
                'verbose_name_plural': 'memories',
                'ordering': ['-created_at', '-id'],
                'permissions': [('read_personal_memory', "Can read memories that are one person's alone")],
                'indexes': [models.Index(condition=models.Q(('brought_by__isnull', False)), fields=['brought_by'], name='memory_brought'), models.Index(condition=models.Q(('edited_by__isnull', False)), fields=['edited_by'], name='memory_edited'), models.Index(condition=models.Q(('imported_by__isnull', False)), fields=['imported_by'], name='memory_imported'), models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-created_at', '-id'], name='memory_list'), models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', 'content_hash'], name='memory_equal'), models.Index(condition=models.Q(('agent__isnull', False)), fields=['agent', '-created_at', '-id'], name='memory_agent'), models.Index(condition=models.Q(('source_chat_id', ''), _negated=True), fields=['source_chat_id'], name='memory_chat'), models.Index(condition=models.Q(('source_message_id', ''), _negated=True), fields=['source_message_id'], name='memory_message'), models.Index(condition=models.Q(('deleted_at', None), models.Q(('source_type', 'model'), ('source_type__startswith', 'auto_'), _connector='OR')), fields=['workspace', 'owner'], name='memory_automatic'), django.contrib.postgres.indexes.GinIndex(fields=['search'], name='memory_words'), models.Index(fields=['created_at'], include=('source_type', 'workspace'), name='memory_days'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['-created_at', '-id'], name='memory_forgotten'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='memory_purge'), models.Index(condition=models.Q(('review', 'pending')), fields=['workspace', '-created_at', '-id'], name='memory_proposals'), models.Index(condition=models.Q(('pinned', True)), fields=['-created_at', '-id'], name='memory_pinned'), models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='memory_expiry'), models.Index(condition=models.Q(('embedding_failed_at__isnull', False)), fields=['embedding_failed_at'], name='memory_not_embedded')],
                'constraints': [models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='importance_0_to_1'), models.CheckConstraint(condition=models.Q(('review', ''), ('deleted_at__isnull', False), _connector='OR'), name='proposals_are_not_in_use'), models.UniqueConstraint(models.F('workspace'), models.F('key'), django.db.models.functions.comparison.Coalesce('owner', 0, output_field=models.BigIntegerField()), django.db.models.functions.comparison.Coalesce('agent', 0, output_field=models.BigIntegerField()), condition=models.Q(('deleted_at', None), ('key__isnull', False)), name='memory_key'), models.CheckConstraint(condition=models.Q(models.Q(('agent', None), ('owner', None), ('scope', 'workspace')), models.Q(('agent', None), ('owner__isnull', False), ('scope', 'user')), models.Q(('agent__isnull', False), ('owner', None), ('scope', 'agent')), _connector='OR'), name='scope_says_whose')],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.memory')),
                ('action', models.CharField(choices=[('create', 'Saved'), ('edit', 'Edited'), ('delete', 'Forgotten'), ('restore', 'Restored'), ('evict', 'Made room'), ('merge', 'Merged with an older one'), ('propose', 'Proposed'), ('approve', 'Approved'), ('reject', 'Rejected'), ('hide', 'Hidden: looks like a credential'), ('key', 'Its key went to another'), ('also_said', 'Also said as'), ('replace', 'Replaced by a newer one')], max_length=10)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('before', models.JSONField(blank=True, default=dict)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Asset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='asset')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assets', to='memories.memory')),
                ('name', models.CharField(max_length=150)),
                ('content_type', models.CharField(help_text='From its first bytes, never as the sender says.', max_length=50)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(help_text='Of the content, hexadecimal.', max_length=64)),
                ('file_name', models.CharField(editable=False, max_length=40, unique=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Clearing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='clr')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('scope', models.CharField(choices=[('workspace', 'Everyone in the workspace'), ('user', 'Its owner, in every workspace'), ('agent', 'Everyone, in chats with its assistant')], max_length=10)),
                ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.agent')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('place', models.BigIntegerField(help_text='As of a memory.')),
                ('for_good', models.BooleanField(default=False)),
                ('status', models.CharField(choices=[('clearing', 'Clearing'), ('cleared', 'Cleared'), ('undoing', 'Undoing'), ('undone', 'Undone')], default='clearing', max_length=10)),
                ('total', models.PositiveIntegerField(default=0, help_text='Memories in the scope when it began.')),
                ('done', models.PositiveIntegerField(default=0, help_text='Of the step at work: cleared or brought back.')),
                ('after', models.BigIntegerField(default=0, help_text="The last memory's key that the step at work has handled.")),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['clearing', 'undoing'])), fields=('place',), name='clearing_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='Extraction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='extractions', to='workspaces.workspace')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('chat_id', models.CharField(max_length=32)),
                ('message_id', models.CharField(help_text='The answer that ended the turn.', max_length=32)),
                ('source_type', models.CharField(max_length=50)),
                ('extractor', models.CharField(blank=True, max_length=20)),
                ('status', models.CharField(choices=[('pending', 'Waiting'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=10)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField()),
                ('error', models.CharField(blank=True, max_length=500)),
                ('stored_count', models.PositiveSmallIntegerField(default=0)),
                ('duplicate_count', models.PositiveSmallIntegerField(default=0)),
                ('refused_count', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['next_attempt_at'], name='extraction_due'), models.Index(condition=models.Q(('status', 'failed')), fields=['-id'], name='extraction_failed')],
                'constraints': [models.UniqueConstraint(fields=('message_id', 'source_type'), name='one_extraction_a_turn')],
            },
        ),
        migrations.CreateModel(
            name='KeptAsIs',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='kept_as_is', to='memories.memory')),
                ('other', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.memory')),
                ('texts', models.CharField(help_text='Hashes of what they said then: new words are new doubts.', max_length=130)),
                ('was_linked', models.BooleanField(default=False, help_text='The newer was marked as replacing the older.')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name_plural': 'kept as they are',
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(models.F('memory'), django.db.models.functions.comparison.Coalesce('other', 0, output_field=models.BigIntegerField()), name='kept_once')],
            },
        ),
        migrations.CreateModel(
            name='KeptCopy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='kept_copies', to='memories.memory')),
                ('kind', models.CharField(choices=[('memory', 'It says so itself, and is deleted'), ('excerpt', 'The messages around its origin'), ('revision', 'An earlier version'), ('item', 'What an answer noted of it')], max_length=10)),
                ('row_id', models.BigIntegerField(default=0, help_text="Of the revision or the receipt's item.")),
                ('noted_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name_plural': 'kept copies',
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('memory', 'kind', 'row_id'), name='one_note_a_copy')],
            },
        ),
        migrations.CreateModel(
            name='MemoryNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='node')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_nodes', to='workspaces.workspace')),
                ('name', models.CharField(max_length=100)),
                ('folded', models.TextField(editable=False)),
                ('kind', models.CharField(blank=True, help_text='Such as person or project.', max_length=50)),
                ('description', models.TextField(blank=True, max_length=1000)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['folded', 'id'],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'folded'), name='one_node_of_a_name')],
            },
        ),
        migrations.CreateModel(
            name='NodeMemory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='memories.memorynode')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='node_links', to='memories.memory')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name_plural': 'node memories',
                'constraints': [models.UniqueConstraint(fields=('node', 'memory'), name='one_link_a_memory')],
            },
        ),
        migrations.CreateModel(
            name='NodeRelation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='relations', to='memories.memorynode')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='relations_to', to='memories.memorynode')),
                ('relation', models.CharField(max_length=80)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('source', 'target', 'relation'), name='one_relation_of_a_type'), models.CheckConstraint(condition=models.Q(('source', models.F('target')), _negated=True), name='related_to_another')],
            },
        ),
        migrations.CreateModel(
            name='RecallQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='ask')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recall_questions', to='workspaces.workspace')),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('text', models.CharField(max_length=500)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ran_at', models.DateTimeField(blank=True, null=True)),
                ('ran_with', models.CharField(blank=True, default='', max_length=200)),
                ('degraded', models.CharField(blank=True, default='', max_length=200)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ExpectedMemory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='expected', to='memories.recallquestion')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.memory')),
                ('rank', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('used', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, default='', max_length=100)),
            ],
            options={
                'verbose_name_plural': 'expected memories',
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('question', 'memory'), name='expected_once')],
            },
        ),
        migrations.CreateModel(
            name='Receipt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.CharField(help_text='The answer it belongs to.', max_length=32, unique=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('ranking', models.CharField(max_length=20)),
                ('threshold', models.FloatField()),
                ('degraded', models.CharField(blank=True, help_text='Why recall fell back to words, if it did.', max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='ReceiptItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('receipt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='memories.receipt')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='receipt_items', to='memories.memory')),
                ('position', models.PositiveSmallIntegerField()),
                ('score', models.FloatField()),
                ('score_parts', models.JSONField(default=dict)),
                ('strength', models.CharField(blank=True, choices=[('strong', 'Strong'), ('related', 'Related')], default='', help_text='Empty: it was not wanted, or the embedder does not tell.', max_length=10)),
                ('content', models.TextField()),
                ('mentions', models.JSONField(db_default=[], default=list, help_text='Of the content, from and to: what was asked about, too.')),
                ('used', models.BooleanField()),
                ('reason', models.CharField(blank=True, max_length=100)),
                ('not_relevant', models.BooleanField(default=False, help_text='A person said it had nothing to do with the question.')),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('receipt', 'memory'), name='once_in_a_receipt')],
            },
        ),
        migrations.CreateModel(
            name='Refusal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('source_type', models.CharField(max_length=20)),
                ('kind', models.CharField(max_length=40)),
                ('number', models.PositiveIntegerField(default=1)),
            ],
            options={
                'ordering': ['-day', '-id'],
                'indexes': [models.Index(fields=['-day', '-id'], name='refusal_days')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'day', 'source_type', 'kind'), name='one_refusal_a_day_and_kind')],
            },
        ),
        migrations.CreateModel(
            name='MemorySource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='memories.memory')),
                ('source_id', models.CharField(max_length=32)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['source_id'], name='memory_of_source')],
                'constraints': [models.UniqueConstraint(fields=('memory', 'source_id'), name='one_source_once')],
            },
        ),
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.BigIntegerField(help_text='Where the memory was looked for; see Memory.place.')),
                ('digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('place', 'digest'), name='one_tombstone_a_text')],
            },
        ),
        migrations.AddField(
            model_name='memorynode',
            name='memories',
            field=models.ManyToManyField(related_name='nodes', through='memories.NodeMemory', to='memories.memory'),
        ),
        migrations.AddField(
            model_name='recallquestion',
            name='memories',
            field=models.ManyToManyField(related_name='expected_by', through='memories.ExpectedMemory', to='memories.memory'),
        ),
        migrations.RunSQL(WORDS),
    ]
