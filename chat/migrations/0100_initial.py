import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models

# The workspace is a lexeme that no text can produce, since the parser splits at the colon (docs/decisions/0003).
WORDS = """
CREATE FUNCTION chat_keep_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chat_messagewords (message_id, words)
    SELECT NEW.id, to_tsvector('simple', left(NEW.content, 50000)) || array_to_tsvector(ARRAY['at:' || chat.workspace_id])
    FROM chat_chat chat WHERE chat.id = NEW.chat_id
    ON CONFLICT (message_id) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END $$;
CREATE TRIGGER chat_keep_words AFTER INSERT OR UPDATE OF content, status ON chat_message
    FOR EACH ROW WHEN (NEW.status <> 'streaming') EXECUTE FUNCTION chat_keep_words();

CREATE FUNCTION chat_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM chat_messagewords WHERE message_id = OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER chat_forget_words BEFORE DELETE ON chat_message
    FOR EACH ROW EXECUTE FUNCTION chat_forget_words();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('workspaces', '0100_initial'),
        ('workspaces', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Chat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='chat')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chats', to='workspaces.workspace')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chats', to=settings.AUTH_USER_MODEL)),
                ('brought_by', models.BigIntegerField(blank=True, editable=False, help_text="Key of the person who brought it in another's name, whose room it takes, also once they are gone.", null=True)),
                ('agent', models.ForeignKey(blank=True, help_text='Which assistant answers. Empty: none in particular.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='chats', to='workspaces.agent')),
                ('connection', models.ForeignKey(blank=True, help_text="Which model answers. Empty: the workspace's.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='chats', to='workspaces.connection')),
                ('title', models.CharField(blank=True, max_length=200)),
                ('memory_enabled', models.BooleanField(blank=True, help_text="The chip. Empty: the person's default.", null=True)),
                ('is_private', models.BooleanField(default=False)),
                ('is_temporary', models.BooleanField(default=False)),
                ('opened_at', models.DateTimeField(blank=True, editable=False, help_text='When it was last a private chat that its creator opened to the workspace. Empty: never.', null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('active_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('personal_of', models.ManyToManyField(blank=True, help_text='Who lets their personal memories be used here though others read it (chat.chats.personal_memories).', related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-active_at', '-id'],
                'permissions': [('read_private_chat', 'Can read private and temporary chats')],
                'indexes': [models.Index(condition=models.Q(('brought_by__isnull', False)), fields=['brought_by'], name='chat_brought'), models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-active_at', '-id'], name='chat_list'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='chat_deleted')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='msg')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='chat.chat')),
                ('role', models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant')], max_length=10)),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('imported_by', models.ForeignKey(blank=True, db_index=False, help_text="Who imported it under its author's name, where that is another person.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('imported_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('content', models.TextField(blank=True)),
                ('html', models.TextField(blank=True, db_default='', default='', editable=False, help_text="An answer's content as it is shown. Empty: as it was written. Written by chat.rendering.")),
                ('html_of', models.CharField(blank=True, db_default='', default='', editable=False, help_text='Marks the content, and the renderer, that the HTML was made of and by.', max_length=32)),
                ('status', models.CharField(choices=[('streaming', 'Being written'), ('done', 'Done'), ('stopped', 'Stopped'), ('failed', 'Failed')], default='done', max_length=10)),
                ('error_code', models.CharField(blank=True, max_length=30)),
                ('error', models.CharField(blank=True, help_text="Why the answer failed, fit for a person's eyes.", max_length=500)),
                ('reply_to', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='chat.message')),
                ('memory_enabled', models.BooleanField(default=False, help_text='Whether automatic memory was on in this turn.')),
                ('mode', models.CharField(choices=[('chat', 'Chat'), ('deep_think', 'Think'), ('research', 'Research')], db_default='chat', default='chat', max_length=20)),
                ('only_documents', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, help_text='Of a question: the public ids of the documents that its answer may draw on. Null: all; none: none.', null=True, size=None)),
                ('has_thoughts', models.BooleanField(db_default=False, default=False, help_text='Whether its model showed what it thought: a step has that.')),
                ('other_chats', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, editable=False, help_text='Of an answer: the public ids of the other chats that it was shown in short.', size=None)),
                ('personal', models.CharField(blank=True, choices=[('', 'Nothing personal'), ('seen', 'Written with an answer in view that was given something personal'), ('held', 'Given something personal')], default='', editable=False, help_text="Of an answer: whether it rests on something of somebody's own. Later readers do not see it.", max_length=4)),
                ('stays_here', models.BooleanField(default=False, editable=False, help_text="Of an answer: whether it rests on another workspace's text that never leaves this machine.")),
                ('model', models.CharField(blank=True, max_length=200)),
                ('seen_from', models.PositiveBigIntegerField(blank=True, help_text='Key of the first message that the model was shown as it was. Empty: of all of them.', null=True)),
                ('usage', models.JSONField(blank=True, editable=False, help_text='What all attempts at this answer took and cost, as of Bill.as_json().', null=True)),
                ('attempt', models.PositiveSmallIntegerField(default=1, help_text='Counts up with every retry in the same place.')),
                ('superseded_by', models.ForeignKey(blank=True, db_index=False, help_text='What stands in its place: an edited question, or another answer.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='supersedes', to='chat.message')),
                ('superseded_at', models.DateTimeField(blank=True, help_text='What was set aside at one time belongs together.', null=True)),
                ('stop_requested', models.BooleanField(default=False)),
                ('beat_at', models.DateTimeField(blank=True, help_text='Last sign of life of the process that answers.', null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['chat', 'id'], name='message_list'), models.Index(condition=models.Q(('superseded_by__isnull', False)), fields=['superseded_by'], name='message_superseded'), models.Index(condition=models.Q(('imported_by__isnull', False)), fields=['imported_by'], name='message_imported')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'streaming')), fields=('chat',), name='one_answer_at_a_time_in_a_chat')],
            },
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='step')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='chat.message')),
                ('kind', models.CharField(choices=[('plan', 'Plan'), ('thought', 'Thought of the model'), ('check', 'Check against memory'), ('research', 'Research')], max_length=10)),
                ('outcome', models.CharField(blank=True, choices=[('planned', 'Planned'), ('thought', 'Thought'), ('agrees', 'Nothing differs'), ('differs', 'Something differs'), ('nothing', 'Nothing to compare with'), ('off', 'Memory is off'), ('stopped', 'Stopped'), ('timeout', 'Took too long'), ('error', 'Did not work')], help_text='Empty while it runs.', max_length=10)),
                ('text', models.TextField(blank=True, help_text='The plan or the thought; of a check the correction that the answer got.')),
                ('findings', models.JSONField(blank=True, default=list, help_text="The answer's words, the id of the memory that speaks of them, whether they agree.")),
                ('memory_ids', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('error', models.CharField(blank=True, help_text="Why it failed, fit for a person's eyes.", max_length=200)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='MessageWords',
            fields=[
                ('message_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('words', django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['words'], name='message_words')],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='imp')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(blank=True, help_text='Where everything goes. Empty: each workspace of the file to its own.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='workspaces.workspace')),
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
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['user', '-created_at', '-id'], name='import_list'), models.Index(condition=models.Q(('status', 'running'), models.Q(('checked_at', None), ('status', 'preview')), _connector='OR'), fields=['progressed_at'], name='import_at_work')],
            },
        ),
        migrations.CreateModel(
            name='ImportRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('of', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='chat.import')),
                ('number', models.PositiveIntegerField(help_text='Of the line.')),
                ('offset', models.BigIntegerField(help_text='Where the line begins, in bytes.')),
                ('kind', models.CharField(max_length=10)),
                ('outcome', models.CharField(choices=[('new', 'Would be stored'), ('update', 'Would change a memory'), ('duplicate', 'Known already'), ('refused', 'Refused')], max_length=10)),
                ('reason', models.CharField(blank=True, max_length=200)),
                ('duplicate_of', models.CharField(blank=True, help_text='The id of what says it already.', max_length=32)),
                ('became', models.CharField(blank=True, default='', help_text='The id of what was made of it, or changed by it.', max_length=32)),
                ('same_as', models.PositiveIntegerField(help_text='The line that says it already.', null=True)),
                ('fingerprint', models.BigIntegerField(help_text="Of a statement's text: equal ones meet here.", null=True)),
            ],
            options={
                'ordering': ['number'],
                'indexes': [models.Index(fields=['of', 'outcome', 'number'], name='import_rows'), models.Index(condition=models.Q(('fingerprint__isnull', False)), fields=['of', 'fingerprint'], name='import_equal')],
                'constraints': [models.UniqueConstraint(fields=('of', 'number'), name='one_row_a_line')],
            },
        ),
        migrations.CreateModel(
            name='ChatMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='marks', to='chat.chat')),
                ('kind', models.CharField(choices=[('pinned', 'Pinned'), ('archived', 'Archived')], max_length=8)),
            ],
            options={
                'indexes': [models.Index(fields=['user', 'kind'], name='chat_marks')],
                'constraints': [models.UniqueConstraint(fields=('user', 'chat'), name='one_mark_a_person_and_chat')],
            },
        ),
        migrations.CreateModel(
            name='ChatTag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='chat.chat')),
                ('name', models.CharField(max_length=40)),
            ],
            options={
                'ordering': [django.db.models.functions.text.Lower('name')],
                'indexes': [models.Index(models.F('user'), django.db.models.functions.text.Lower('name'), name='chat_tags')],
                'constraints': [models.UniqueConstraint(models.F('user'), models.F('chat'), django.db.models.functions.text.Lower('name'), name='one_tag_of_a_name')],
            },
        ),
        migrations.CreateModel(
            name='PassingTurn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='turn')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('connection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='workspaces.connection')),
                ('conversation', models.CharField(help_text='Of a keyed hash of its beginning.', max_length=32)),
                ('fingerprint', models.CharField(help_text='Keyed hash of all up to the question.', max_length=64, unique=True)),
                ('said', models.JSONField(blank=True, default=list, help_text='[role, text] of the question, the last, and of some before it.')),
                ('shown', models.JSONField(blank=True, default=list, help_text='Words before the model that no person said.')),
                ('shown_more', models.BooleanField(db_default=False, default=False, help_text='It was shown more than these: pictures, files, too many.')),
                ('answer', models.TextField(blank=True)),
                ('memory_ids', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('created_at', models.DateTimeField(db_index=True)),
                ('ended_at', models.DateTimeField(blank=True, help_text='When it was handed on to be mined.', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='AnswerRating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='chat.message')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rating', models.CharField(choices=[('up', 'Good answer'), ('down', 'Bad answer')], max_length=4)),
                ('reasons', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('correct', 'Correct'), ('helpful', 'Helpful'), ('well_written', 'Well written'), ('wrong', 'Not correct'), ('beside', 'Did not answer the question'), ('long', 'Too long'), ('memory', 'Used or missed a memory'), ('refused', 'Refused without reason')], max_length=12), blank=True, default=list, size=None)),
                ('comment', models.CharField(blank=True, max_length=500)),
                ('model_name', models.CharField(blank=True, max_length=200, verbose_name='model')),
                ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='workspaces.agent', verbose_name='assistant')),
                ('rated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-rated_at', '-id'],
                'indexes': [models.Index(fields=['-rated_at', '-id'], name='ratings_newest')],
                'constraints': [models.UniqueConstraint(fields=('message', 'user'), name='one_rating_a_person_and_answer')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='run')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='workspaces.workspace')),
                ('user', models.ForeignKey(help_text='Who started it.', on_delete=django.db.models.deletion.CASCADE, related_name='runs', to=settings.AUTH_USER_MODEL)),
                ('connection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='workspaces.connection')),
                ('mode', models.CharField(choices=[('loop', 'One step'), ('plan', 'Planned tasks'), ('multi-agent', 'Team'), ('research', 'Research')], max_length=12)),
                ('objective', models.TextField()),
                ('status', models.CharField(choices=[('running', 'Running'), ('waiting', 'Needs your approval'), ('stopped', 'Stopped'), ('done', 'Done'), ('failed', 'Failed')], default='running', max_length=10)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('is_private', models.BooleanField(default=False, help_text='Of a private chat: nobody else sees it.')),
                ('answer', models.ForeignKey(blank=True, help_text='The answer in a chat that it is made for.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='chat.message')),
                ('chat', models.ForeignKey(blank=True, help_text='Whose research it is, or was done again from: who may read it follows that, whoever did it again.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='chat.chat')),
                ('reviews_plan', models.BooleanField(default=False, help_text='Its plan is shown before anything of it is done.')),
                ('plan', models.JSONField(blank=True, null=True)),
                ('board', models.JSONField(blank=True, null=True)),
                ('states', models.JSONField(blank=True, default=dict)),
                ('tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                ('limits', models.JSONField(blank=True, default=dict)),
                ('expected_tokens', models.BigIntegerField(default=0, help_text='As they were guessed before it began.')),
                ('expected_cost', models.DecimalField(blank=True, decimal_places=8, help_text='Empty where the model has no price.', max_digits=18, null=True)),
                ('rounds', models.PositiveIntegerField(default=0, help_text='Replies of the model so far.')),
                ('tokens_in', models.BigIntegerField(default=0)),
                ('tokens_out', models.BigIntegerField(default=0)),
                ('cost', models.DecimalField(blank=True, decimal_places=8, help_text="In the installation's currency, of the replies whose model had a price.", max_digits=18, null=True)),
                ('memory_ids', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, help_text='What it saved to long-term memory.', size=None)),
                ('held_personal', models.BooleanField(default=False, editable=False, help_text="It was told of something personal: it stays its person's own when its chat is opened.")),
                ('web_urls', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, help_text='What its searches found: it reads no other page.', size=None)),
                ('shown', models.JSONField(blank=True, db_default=[], default=list, editable=False, help_text='What its tools quoted: whose, id, from, to. Never the text.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deadline_at', models.DateTimeField(help_text='When its minutes are up.')),
                ('served_at', models.DateTimeField(default=django.utils.timezone.now, help_text='When a step of it was last taken up.')),
                ('progressed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='run_list'), models.Index(condition=models.Q(('status', 'running')), fields=['progressed_at'], name='run_at_work')],
            },
        ),
        migrations.CreateModel(
            name='RunTemplate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='rtp')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='run_templates', to='workspaces.workspace')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('chat', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.chat')),
                ('name', models.CharField(max_length=80)),
                ('mode', models.CharField(choices=[('loop', 'One step'), ('plan', 'Planned tasks'), ('multi-agent', 'Team'), ('research', 'Research')], max_length=12)),
                ('objective', models.TextField()),
                ('plan', models.JSONField(blank=True, null=True)),
                ('tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                ('limits', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['name', 'id'],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='one_run_template_a_name')],
            },
        ),
        migrations.CreateModel(
            name='RunTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='chat.run')),
                ('ref', models.CharField(help_text='Its id in the plan.', max_length=60)),
                ('position', models.PositiveSmallIntegerField()),
                ('title', models.CharField(max_length=200)),
                ('depends_on', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, default=list, size=None)),
                ('status', models.CharField(default='waiting', max_length=10)),
                ('member', models.CharField(blank=True, max_length=60)),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('run', 'ref'), name='one_task_a_ref')],
            },
        ),
        migrations.CreateModel(
            name='RunStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='chat.run')),
                ('user', models.ForeignKey(help_text="The run's, for fair turns.", on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('ref', models.CharField(max_length=80)),
                ('task', models.CharField(blank=True, help_text="Its task's id.", max_length=60)),
                ('unit', models.JSONField(help_text='All that a worker needs to do it.')),
                ('status', models.CharField(choices=[('ready', 'Ready'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='ready', max_length=10)),
                ('lease', models.PositiveIntegerField(default=0)),
                ('attempts', models.PositiveSmallIntegerField(default=0, help_text='Since the last step forward.')),
                ('beat_at', models.DateTimeField(blank=True, help_text='The last sign of life of who does it.', null=True)),
                ('not_before', models.DateTimeField(default=django.utils.timezone.now)),
                ('transcript', models.JSONField(blank=True, default=dict)),
                ('rounds', models.PositiveSmallIntegerField(default=0)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('status__in', ['ready', 'running'])), fields=['status', 'user', 'id'], name='run_step_open')],
                'constraints': [models.UniqueConstraint(fields=('run', 'ref'), name='one_step_a_ref')],
            },
        ),
        migrations.CreateModel(
            name='RunEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='chat.run')),
                ('key', models.CharField(max_length=300)),
                ('kind', models.CharField(max_length=12)),
                ('json', models.TextField()),
                ('size', models.PositiveIntegerField(help_text='Bytes.')),
                ('source', models.CharField(blank=True, max_length=200, null=True)),
                ('title', models.TextField(blank=True, null=True)),
                ('description', models.TextField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('version', models.PositiveIntegerField(default=1, help_text='Counts how often it was written.')),
            ],
            options={
                'verbose_name_plural': 'run entries',
                'ordering': ['created_at', 'id'],
                'indexes': [models.Index(fields=['run', '-created_at', '-id'], name='run_entries_newest')],
                'constraints': [models.UniqueConstraint(fields=('key', 'run'), name='one_entry_a_key')],
            },
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='chat.run')),
                ('step', models.CharField(blank=True, max_length=80)),
                ('kind', models.CharField(max_length=20)),
                ('data', models.JSONField(default=dict)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['run', 'id'], name='run_events')],
            },
        ),
        migrations.CreateModel(
            name='SavedPrompt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='prm')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_prompts', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_prompts', to='workspaces.workspace')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=80)),
                ('text', models.TextField(max_length=8000)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='one_own_prompt_a_name'), models.UniqueConstraint(fields=('workspace', 'name'), name='one_shared_prompt_a_name'), models.CheckConstraint(condition=models.Q(models.Q(('owner', None), ('workspace__isnull', False)), models.Q(('owner__isnull', False), ('workspace', None)), _connector='OR'), name='prompt_of_one')],
            },
        ),
        migrations.CreateModel(
            name='ShareLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='link')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='chat.chat')),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('message_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Keys of the messages, as they stood then.', size=None)),
                ('memories_used', models.JSONField(db_column='resting', default=dict, help_text='Ids of memories that were in these messages or used for them, with the keys of those messages.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('shared_at', models.DateTimeField(help_text='As of when the chat is shown.')),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_opened_at', models.DateTimeField(blank=True, help_text='To the minute.', null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='AnswerSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='chat.message')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.document')),
                ('number', models.PositiveSmallIntegerField(help_text='By which the answer cites it, from 1.')),
                ('passage', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='workspaces.documentpassage')),
                ('page', models.PositiveIntegerField(default=0, help_text='0 where the document has none.')),
                ('heading', models.CharField(blank=True, default='', max_length=300)),
                ('score', models.FloatField()),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('message', 'number'), name='one_source_a_number')],
            },
        ),
        migrations.CreateModel(
            name='ShortTermMemory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('chat', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='short_term', to='chat.chat')),
                ('summary', models.TextField(blank=True, max_length=1500)),
                ('summarised_by', models.ForeignKey(blank=True, help_text='Who wrote the summary. Empty: the model.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('summarised_in', models.CharField(blank=True, help_text='The answer, and which attempt, in which the model wrote it.', max_length=40)),
                ('summarised_at', models.DateTimeField(blank=True, null=True)),
                ('last_said', models.JSONField(blank=True, default=list, help_text='[role, text] of the last messages of turns with memory on, cut short.')),
                ('personal_at', models.DateTimeField(blank=True, editable=False, help_text='When the first personal answer that it tells of was written. Empty: it tells of none.', null=True)),
                ('stays_here', models.BooleanField(default=False, editable=False, help_text="Whether it tells of another workspace's text that never leaves this machine.")),
                ('touched_at', models.DateTimeField(help_text='The last turn with memory on, or change of the summary.')),
                ('expires_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name_plural': 'short-term memories',
            },
        ),
        migrations.CreateModel(
            name='Compaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='sum')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compactions', to='chat.chat')),
                ('upto', models.ForeignKey(help_text='The last message that it summarises; it speaks for all before, too.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.message')),
                ('summary', models.TextField()),
                ('is_marked', models.BooleanField(default=False, editable=False, help_text='Whether an answer is in it that not every reader, or not every model, may be shown.')),
                ('model', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-upto_id', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ToolCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='call')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tool_calls', to='chat.message')),
                ('name', models.CharField(max_length=64)),
                ('arguments', models.JSONField(blank=True, default=dict)),
                ('status', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='running', max_length=10)),
                ('outcome', models.CharField(blank=True, choices=[('saved', 'Saved'), ('duplicate', 'Known already'), ('found', 'Found'), ('noted', 'Noted'), ('refused', 'Not stored'), ('denied', 'Not allowed'), ('timeout', 'Took too long'), ('error', 'Did not work')], max_length=10)),
                ('count', models.PositiveSmallIntegerField(default=0, help_text='How much was found.')),
                ('memory_ids', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('held_personal', models.BooleanField(default=False, editable=False, help_text="It held something of its person's own: no link shows its answer.")),
                ('shown', models.JSONField(blank=True, editable=False, help_text='What it quoted of documents, artifacts and messages: whose, id, from, to. Never their text.', null=True)),
                ('output', models.TextField(blank=True, help_text='What may be mined for memories; most calls have none.')),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.RunSQL(WORDS),
    ]
