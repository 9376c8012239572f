import django.contrib.auth.models
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import memoryhub.ids
import pgvector.django.halfvec
import workspaces.models.documents
from django.conf import settings
from django.db import migrations, models
from pgvector.django import VectorExtension

# Only workspaces.audit.prune deletes, and says so for its own transaction. Nobody changes an event.
AUDIT = """
CREATE FUNCTION workspaces_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('memoryhub.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON workspaces_auditevent
    FOR EACH ROW EXECUTE FUNCTION workspaces_audit_guard();
"""

# Rows that a crash of the server may lose are not worth a write to its log. The first is the table of Django's
# DatabaseCache.
UNLOGGED = """
CREATE UNLOGGED TABLE workspaces_cache (
    cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamp with time zone NOT NULL
);
CREATE INDEX workspaces_cache_expires ON workspaces_cache (expires);
ALTER TABLE workspaces_spent SET UNLOGGED;
"""

# Vectors that recall scans stay inside their rows: following each into the TOAST table is 3 to 10 times slower.
# The statement's own vector is read for a few rows at a time and lies outside. A word's weight is in the index, so that
# a sum over its passages never visits the table.
STORAGE = """
ALTER TABLE workspaces_passagevector ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE workspaces_passagevector SET (toast_tuple_target = 128);
ALTER TABLE workspaces_passageword DROP CONSTRAINT workspaces_passageword_pkey;
ALTER TABLE workspaces_passageword ADD PRIMARY KEY (place, lexeme, kind, ref) INCLUDE (weight);
"""

# Stems are cut to six letters, and scripts without blanks are read in pairs of characters: Thai to Burmese, Khmer,
# Japanese and Chinese, Korean (whose particles have no blank before them), rarer Chinese.
WORDS = r"""
CREATE FUNCTION workspaces_spaced(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN said !~ '[\u0E01-\u109F\u1780-\u17FF\u3005-\u30FF\u3400-\u9FFF\uAC00-\uD7A3\uF900-\uFAFF\U00020000-\U000323AF]'
           THEN said ELSE (
        SELECT string_agg(CASE WHEN NOT own THEN CASE WHEN before THEN ' ' || c ELSE c END
                               WHEN after THEN c || next || ' '
                               WHEN before THEN '' ELSE ' ' || c || ' ' END, '' ORDER BY i)
        FROM (
            SELECT i, c, own, lead(c) OVER w AS next, coalesce(lag(own) OVER w, false) AS before,
                   coalesce(lead(own) OVER w, false) AS after
            FROM (
                SELECT i, c, ascii(c) <@ '{[3585,4255],[6016,6143],[12293,12295],[12353,12538],[12540,12543],
                    [13312,40959],[44032,55203],[63744,64255],[131072,205743]}'::int4multirange AS own
                FROM regexp_split_to_table(said, '') WITH ORDINALITY AS characters(c, i)
            ) each
            WINDOW w AS (ORDER BY i)
        ) pairs
    ) END
$$;
CREATE FUNCTION workspaces_words(said text) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN w.lexeme ~ '[0-9._/@:+-]' THEN w.lexeme ELSE left(w.lexeme, 6) END,
           sum(cardinality(w.positions))::float8
    FROM unnest(to_tsvector('english', workspaces_spaced(said))) w
    GROUP BY 1
$$;
"""

# Two thirds of a passage's weight are its own words', one third those of the heading and file that it stands under.
DOCUMENTS = """
CREATE FUNCTION documents_counted_words(m workspaces_documentpassage) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count) FROM (
        SELECT lexeme, count * 2 / 3.0 AS count FROM workspaces_words(m.text)
        UNION ALL
        SELECT lexeme, count / 3.0 FROM workspaces_words(m.around)
    ) said GROUP BY lexeme
$$;
"""
ARTIFACTS = r"""
CREATE FUNCTION artifacts_counted_words(m workspaces_artifact) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, count FROM workspaces_words(m.title || E'\n' || m.content)
$$;
"""

# Arguments of the trigger: the kind's number, the function that counts a row's words, and the place of a row ``m``.
FORGET = """
CREATE FUNCTION workspaces_forget_passages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    places bigint[];
BEGIN
    EXECUTE format('SELECT array_agg(DISTINCT %s) FROM gone m', TG_ARGV[2]) INTO places;
    EXECUTE format('
        DELETE FROM workspaces_passagevector v USING gone
        WHERE v.place = ANY($1) AND v.kind = %s AND v.ref = gone.id
    ', TG_ARGV[0]) USING places;
    EXECUTE format('
        DELETE FROM workspaces_passageword w USING (
            SELECT m.id, %s AS place, c.lexeme FROM gone m, LATERAL %s(ROW(m.*)::%I) c
        ) said
        WHERE w.place = said.place AND w.lexeme = said.lexeme AND w.kind = %s AND w.ref = said.id
          AND w.place = ANY($1)
    ', TG_ARGV[2], TG_ARGV[1], TG_TABLE_NAME, TG_ARGV[0]) USING places;
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON workspaces_documentpassage
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION workspaces_forget_passages('2', 'documents_counted_words', 'coalesce(-m.owner_id, m.workspace_id)');
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON workspaces_artifact
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION workspaces_forget_passages('3', 'artifacts_counted_words', 'coalesce(-m.owner_id, m.workspace_id)');
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        VectorExtension(),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='usr')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, max_length=150, unique=True, validators=[django.core.validators.RegexValidator("^[\\w.@+'-]+\\Z", "Use only letters, numbers and these signs: @ . + - _ '")])),
                ('memory_default', models.BooleanField(blank=True, help_text="Automatic memory in this person's chats. Empty: not asked yet.", null=True, verbose_name='memory on by default')),
                ('short_term_everywhere', models.BooleanField(default=False, help_text='Their chats are told of their recent chats in other workspaces, too.', verbose_name='short-term memory across workspaces')),
                ('language', models.CharField(blank=True, default='', help_text='Of the pages and mails they read, as the settings name it. Empty: as their browser asks.', max_length=20)),
                ('picture_version', models.CharField(blank=True, db_default='', default='', editable=False, max_length=16)),
                ('looks', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, editable=False, size=None)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['looks'], name='user_looks')],
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='PersonPicture',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='picture', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('jpeg', models.BinaryField()),
            ],
            options={
                'verbose_name_plural': 'pictures',
            },
        ),
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='conn')),
                ('owner', models.ForeignKey(blank=True, help_text='Whose own it is. Empty: for everybody here.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='connections', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=80)),
                ('base_url', models.CharField(max_length=500, verbose_name='address')),
                ('model', models.CharField(max_length=200)),
                ('sealed_key', models.TextField(blank=True, editable=False)),
                ('has_tools', models.BooleanField(default=True, verbose_name='can call tools')),
                ('can_extract', models.BooleanField(default=True, help_text='Off: rules notice what is said, and no model.', verbose_name='can extract memories')),
                ('sees', models.BooleanField(blank=True, help_text='Unknown: its list of models is asked, or a picture is sent once, and what came of it is kept here.', null=True, verbose_name='can see pictures')),
                ('context_tokens', models.PositiveIntegerField(default=16384, help_text='What prompt and answer may hold together.')),
                ('is_local', models.BooleanField(default=False, help_text='Workspaces whose memories never leave this machine may use it. It is then connected to at internal addresses only.', verbose_name='runs on this machine')),
                ('price_in', models.DecimalField(blank=True, decimal_places=6, max_digits=13, null=True, verbose_name='price of a million tokens in')),
                ('price_cached', models.DecimalField(blank=True, decimal_places=6, help_text='Empty: as the others.', max_digits=13, null=True, verbose_name="of them from the provider's cache")),
                ('price_out', models.DecimalField(blank=True, decimal_places=6, help_text='Both empty: nobody is told what an answer costs.', max_digits=13, null=True, verbose_name='price of a million tokens out')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                'ordering': ['name', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='ws')),
                ('name', models.CharField(max_length=120)),
                ('description', models.TextField(blank=True, max_length=2000)),
                ('default_of', models.OneToOneField(blank=True, help_text='The person whose default workspace this is, if it is one.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='default_workspace', to=settings.AUTH_USER_MODEL)),
                ('made_by', models.ForeignKey(blank=True, help_text="Who is charged for it. Nobody, if it is somebody's default one.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('private_short_term', models.BooleanField(default=False, help_text="A person's private chats here are told of, in short, in that person's other chats.", verbose_name='private chats in short-term memory')),
                ('reviews_proposals', models.BooleanField(default=False, help_text='What viewers or models propose waits for an editor.')),
                ('connection', models.ForeignKey(blank=True, help_text='Which model answers here, where a chat has not chosen another. Empty: the configured one.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='workspaces', to='workspaces.connection')),
                ('share_links', models.BooleanField(db_default=True, default=True, help_text='Chats here may be read by a link, by whoever has it, without signing in.')),
                ('local_only', models.BooleanField(default=False, help_text='Only models and embedders that are marked local are asked about what is said and stored here.', verbose_name='memories never leave this machine')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['name', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='workspaces.workspace')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='viewer', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['created_at', 'id'],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'user'), name='one_membership_a_person')],
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='agent')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agents', to='workspaces.workspace')),
                ('name', models.CharField(max_length=80)),
                ('description', models.CharField(blank=True, max_length=300)),
                ('instructions', models.TextField(blank=True, max_length=4000)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['name', 'id'],
                'constraints': [models.UniqueConstraint(models.F('workspace'), django.db.models.functions.text.Lower('name'), condition=models.Q(('archived_at', None)), name='one_agent_of_a_name')],
            },
        ),
        migrations.CreateModel(
            name='SignIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='ses')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sign_ins', to=settings.AUTH_USER_MODEL)),
                ('session_key', models.CharField(editable=False, max_length=40, unique=True)),
                ('device', models.CharField(blank=True, max_length=60)),
                ('network', models.CharField(blank=True, max_length=50)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_seen_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-last_seen_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Spent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('limit', models.CharField(max_length=20)),
                ('paid_until', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'limit'), name='one_count_a_limit')],
            },
        ),
        migrations.CreateModel(
            name='DoneRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=64, unique=True)),
                ('fingerprint', models.CharField(max_length=64)),
                ('note', models.JSONField()),
                ('done_at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='OAuthClient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='app')),
                ('name', models.CharField(max_length=60)),
                ('redirect_uris', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'program',
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='key')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='workspaces.workspace')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL)),
                ('client', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='workspaces.oauthclient')),
                ('name', models.CharField(max_length=80)),
                ('scope', models.CharField(choices=[('read', 'Read'), ('write', 'Read and write')], default='read', max_length=5)),
                ('key_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('beginning', models.CharField(editable=False, max_length=12)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, help_text='To the minute.', null=True)),
                ('calls', models.PositiveBigIntegerField(default=0, editable=False, help_text='Requests that passed.')),
                ('counted_at', models.DateTimeField(editable=False, null=True)),
                ('counted', models.PositiveIntegerField(default=0, editable=False)),
            ],
            options={
                'verbose_name': 'API key',
                'ordering': ['-created_at', '-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('revoked_at', None)), fields=('user', 'name'), name='one_live_key_of_a_name')],
            },
        ),
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='art')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='workspaces.workspace')),
                ('owner', models.ForeignKey(blank=True, help_text='Who alone sees it, in every workspace. It lies in their own one. Empty: every member of the workspace.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('title', models.CharField(max_length=200)),
                ('kind', models.CharField(choices=[('markdown', 'Text'), ('code', 'Code'), ('html', 'Web page'), ('table', 'Table')], max_length=10)),
                ('language', models.CharField(blank=True, default='', help_text='Of code.', max_length=40)),
                ('content', models.TextField(help_text='Of its newest version; a table as Markdown.')),
                ('gist', models.TextField(help_text='What its vector is made of: its title and how it begins.')),
                ('version', models.PositiveIntegerField(default=1, help_text='The number of its newest version.')),
                ('source_chat_id', models.CharField(blank=True, default='', max_length=40)),
                ('source_message_id', models.CharField(blank=True, default='', max_length=40)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-created_at', '-id'], name='artifact_list'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='artifact_deleted')],
            },
            bases=(workspaces.models.documents.Owned, models.Model),
        ),
        migrations.CreateModel(
            name='ArtifactVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('artifact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='workspaces.artifact')),
                ('number', models.PositiveIntegerField(help_text='From 1.')),
                ('title', models.CharField(max_length=200)),
                ('language', models.CharField(blank=True, default='', max_length=40)),
                ('content', models.TextField()),
                ('size', models.PositiveIntegerField(help_text='Bytes of the content.')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('by_model', models.BooleanField(default=False, help_text='A model wrote it, for that person.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [models.UniqueConstraint(fields=('artifact', 'number'), name='one_artifact_version_a_number')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('verb', models.CharField(max_length=40)),
                ('by_id', models.CharField(blank=True, max_length=32, verbose_name='person')),
                ('by_name', models.CharField(blank=True, max_length=150, verbose_name='name then')),
                ('workspace_id', models.CharField(blank=True, max_length=32, verbose_name='workspace')),
                ('target', models.CharField(blank=True, max_length=32)),
                ('details', models.JSONField(blank=True, default=dict)),
                ('network', models.CharField(blank=True, help_text='Their address without its last part.', max_length=50)),
                ('request_id', models.CharField(blank=True, max_length=64, verbose_name='request')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['workspace_id', '-id'], name='audit_of_workspace'), models.Index(fields=['by_id', '-id'], name='audit_of_person'), models.Index(fields=['verb', '-id'], name='audit_of_verb')],
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='doc')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='workspaces.workspace')),
                ('owner', models.ForeignKey(blank=True, help_text='Who alone sees it, in every workspace. It lies in their own one. Empty: every member of the workspace.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('title', models.CharField(max_length=200)),
                ('file_name', models.CharField(editable=False, max_length=40, unique=True)),
                ('media_type', models.CharField(help_text="From its first bytes and its name's ending.", max_length=100)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(help_text='Of the content, hexadecimal.', max_length=64)),
                ('version', models.PositiveIntegerField(default=1, help_text='Counts up with every newer file.')),
                ('version_by', models.ForeignKey(blank=True, help_text='Who brought the newest file. Empty: who brought the document.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('version_at', models.DateTimeField(blank=True, help_text='And when.', null=True)),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('reading', 'Being read'), ('ready', 'Ready'), ('failed', 'Could not be read')], default='waiting', max_length=10)),
                ('error', models.CharField(blank=True, default='', help_text='Why it could not be read.', max_length=300)),
                ('pages', models.PositiveIntegerField(default=0, help_text='0 where it has none.')),
                ('characters', models.PositiveIntegerField(default=0)),
                ('passage_count', models.PositiveIntegerField(default=0)),
                ('seconds', models.FloatField(default=0, help_text='How long the last reading took.')),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('reading_since', models.DateTimeField(blank=True, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, help_text="While it is read: the reader's last sign of life. Else: when it was queued.", null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('drafted_at', models.DateTimeField(blank=True, help_text="When it was put in a composer, until its message is sent. So long it is its owner's and not in use: deleted_at is the same moment (workspaces.documents.documents).", null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-created_at', '-id'], name='document_list'), models.Index(condition=models.Q(('status__in', ['waiting', 'reading'])), fields=['status', 'updated_at'], name='document_unread')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None), ('owner', None)), fields=('workspace', 'sha256'), name='one_document_a_content'), models.UniqueConstraint(condition=models.Q(('deleted_at', None), ('owner__isnull', False)), fields=('owner', 'sha256'), name='one_own_document_a_content')],
            },
            bases=(workspaces.models.documents.Owned, models.Model),
        ),
        migrations.CreateModel(
            name='DocumentPicture',
            fields=[
                ('document', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='picture', serialize=False, to='workspaces.document')),
                ('jpeg', models.BinaryField()),
                ('width', models.PositiveSmallIntegerField()),
                ('height', models.PositiveSmallIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='DocumentVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='workspaces.document')),
                ('version', models.PositiveIntegerField()),
                ('file_name', models.CharField(editable=False, max_length=40, unique=True)),
                ('media_type', models.CharField(max_length=100)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(max_length=64)),
                ('version_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='document_versions', to=settings.AUTH_USER_MODEL)),
                ('version_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['-version'],
                'constraints': [models.UniqueConstraint(fields=('document', 'version'), name='one_version_a_number')],
            },
        ),
        migrations.CreateModel(
            name='DocumentPassage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='workspaces.document')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('owner', models.ForeignKey(blank=True, db_index=False, help_text="The document's.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('number', models.PositiveIntegerField(help_text='From 0, in reading order.')),
                ('page', models.PositiveIntegerField(default=0, help_text='0 where the document has none.')),
                ('heading', models.CharField(blank=True, default='', max_length=300)),
                ('begins', models.PositiveIntegerField(help_text="Its first character's place in the text.")),
                ('text', models.TextField()),
                ('around', models.TextField(help_text='Its heading and its text with some of what stands before and after.')),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'document passages',
                'indexes': [models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace'], name='passage_live'), models.Index(condition=models.Q(('owner__isnull', False)), fields=['owner'], name='passage_own')],
                'constraints': [models.UniqueConstraint(fields=('document', 'number'), name='one_passage_a_number')],
            },
            bases=(workspaces.models.documents.Owned, models.Model),
        ),
        migrations.CreateModel(
            name='EmbeddingModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', models.CharField(max_length=200, unique=True)),
                ('name', models.CharField(help_text='What its endpoint calls it.', max_length=200)),
                ('base_url', models.CharField(blank=True, help_text='Empty: in this process.', max_length=500)),
                ('dimension', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('active', 'Compared by recall'), ('building', 'Being built'), ('retired', 'No longer used')], max_length=10)),
                ('started_at', models.DateTimeField()),
                ('activated_at', models.DateTimeField(blank=True, null=True)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('cleaned_at', models.DateTimeField(blank=True, help_text='When the last of its vectors went.', null=True)),
                ('stopped_at', models.DateTimeField(blank=True, help_text='Somebody stopped the building.', null=True)),
                ('total_count', models.PositiveIntegerField(default=0)),
                ('done_count', models.PositiveIntegerField(default=0)),
                ('rate', models.FloatField(blank=True, help_text='Passages a second, lately.', null=True)),
                ('progressed_at', models.DateTimeField(blank=True, null=True)),
                ('reached', models.JSONField(blank=True, default=dict)),
                ('refused', models.JSONField(blank=True, default=dict)),
                ('error', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'ordering': ['-started_at', '-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'retired'), _negated=True), fields=('state',), name='one_active_one_building')],
            },
        ),
        migrations.CreateModel(
            name='DirectoryGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='grp')),
                ('name', models.CharField(max_length=256, unique=True)),
                ('external_id', models.CharField(blank=True, help_text="The directory's own id of it.", max_length=256)),
                ('members', models.ManyToManyField(related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='GroupGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('role', models.CharField(blank=True, max_length=10)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'workspace'), name='one_grant_a_place'), models.UniqueConstraint(condition=models.Q(('workspace', None)), fields=('user',), name='one_grant_of_staff')],
            },
        ),
        migrations.CreateModel(
            name='PlaceStatistics',
            fields=[
                ('pk', models.CompositePrimaryKey('place', 'kind', blank=True, editable=False, primary_key=True, serialize=False)),
                ('place', models.BigIntegerField()),
                ('kind', models.SmallIntegerField()),
                ('passage_count', models.PositiveIntegerField()),
                ('counted_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'place statistics',
            },
        ),
        migrations.CreateModel(
            name='CommonWord',
            fields=[
                ('pk', models.CompositePrimaryKey('place', 'lexeme', 'kind', blank=True, editable=False, primary_key=True, serialize=False)),
                ('place', models.BigIntegerField()),
                ('lexeme', models.TextField()),
                ('kind', models.SmallIntegerField()),
                ('passage_count', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='VectorIndex',
            fields=[
                ('name', models.CharField(max_length=63, primary_key=True, serialize=False)),
                ('place', models.BigIntegerField()),
                ('kind', models.SmallIntegerField()),
                ('model', models.CharField(max_length=200)),
                ('dimension', models.PositiveIntegerField()),
                ('vector_count', models.PositiveIntegerField(help_text='Live vectors when it was built.')),
                ('seconds', models.FloatField(help_text='How long the building took.')),
                ('built_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'vector indexes',
                'constraints': [models.UniqueConstraint(fields=('place', 'kind', 'model', 'dimension'), name='one_index_a_place_and_model')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='inv')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='workspaces.workspace')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='viewer', max_length=10)),
                ('most', models.PositiveSmallIntegerField(default=1, help_text='How many people it lets in.')),
                ('used', models.PositiveSmallIntegerField(default=0, help_text='How many have come.')),
                ('used_by', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, default=list, help_text='Their keys: each comes once.', size=None)),
                ('user', models.ForeignKey(blank=True, help_text='The person it is for. Empty: everyone who has its link.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('email', models.EmailField(blank=True, default='', help_text='Where it was sent, if it was.', max_length=254)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('declined_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='OAuthCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='codes', to='workspaces.oauthclient')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.apikey')),
                ('code_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('read', 'Read'), ('write', 'Read and write')], max_length=5)),
                ('challenge', models.CharField(max_length=128)),
                ('redirect_uri', models.TextField()),
                ('names_redirect', models.BooleanField(default=True)),
                ('resource', models.CharField(max_length=20)),
                ('expires_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name': 'sign-in of a program',
                'verbose_name_plural': 'sign-ins of programs',
            },
        ),
        migrations.CreateModel(
            name='OAuthToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='workspaces.apikey')),
                ('kind', models.CharField(choices=[('access', 'Access'), ('refresh', 'Refresh')], max_length=7)),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('read', 'Read'), ('write', 'Read and write')], max_length=5)),
                ('resource', models.CharField(max_length=20)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('used_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'token of a program',
                'verbose_name_plural': 'tokens of programs',
                'constraints': [models.CheckConstraint(condition=models.Q(('kind', 'refresh'), ('used_at', None), _connector='OR'), name='only_refresh_is_used_up')],
            },
        ),
        migrations.CreateModel(
            name='PassageVector',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.SmallIntegerField()),
                ('ref', models.BigIntegerField()),
                ('place', models.BigIntegerField(help_text='Where it is looked for; see workspaces.models.index.')),
                ('model', models.CharField(max_length=200)),
                ('dimension', models.PositiveIntegerField()),
                ('live', models.BooleanField(default=True)),
                ('embedding', pgvector.django.halfvec.HalfVectorField()),
                ('statement', pgvector.django.halfvec.HalfVectorField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('live', True)), fields=['place', 'kind', 'model'], name='passage_of_place')],
                'constraints': [models.UniqueConstraint(fields=('kind', 'ref', 'model'), name='one_vector_a_passage')],
            },
        ),
        migrations.CreateModel(
            name='PassageWord',
            fields=[
                ('pk', models.CompositePrimaryKey('place', 'lexeme', 'kind', 'ref', blank=True, editable=False, primary_key=True, serialize=False)),
                ('place', models.BigIntegerField()),
                ('lexeme', models.TextField()),
                ('kind', models.SmallIntegerField()),
                ('ref', models.BigIntegerField()),
                ('weight', models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name='Retention',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='retention', to='workspaces.workspace')),
                ('set_by', models.ForeignKey(help_text='The owner who set it: of personal memories it concerns theirs alone.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('chats', models.PositiveIntegerField(blank=True, help_text='Days that a chat is kept after its last message. Empty: for good.', null=True)),
                ('memories', models.PositiveIntegerField(blank=True, help_text='Days that a memory is kept that nobody changed and no answer used. Empty: for good.', null=True)),
                ('documents', models.PositiveIntegerField(blank=True, help_text='Days that a document is kept after its last change. Empty: for good.', null=True)),
                ('artifacts', models.PositiveIntegerField(blank=True, help_text='Days that an artifact is kept after its last change. Empty: for good.', null=True)),
                ('activity', models.PositiveIntegerField(blank=True, help_text='Days that an entry of the activity is kept. Empty: for good.', null=True)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='ModelUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='workspaces.workspace')),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('day', models.DateField(help_text='In UTC.')),
                ('purpose', models.CharField(choices=[('answer', 'Answers'), ('memory', 'Noticing what to remember'), ('summary', 'Summaries of long chats'), ('run', 'Runs and research'), ('program', 'Other programs'), ('index', 'Making things findable')], max_length=10)),
                ('model', models.CharField(blank=True, help_text="Empty: of somebody's own connection.", max_length=200)),
                ('is_embedded', models.BooleanField(default=False, help_text='Of this installation: no budget counts it.')),
                ('calls', models.BigIntegerField(default=0)),
                ('estimated', models.BigIntegerField(default=0, help_text='Calls whose provider did not say what they took.')),
                ('unpriced', models.BigIntegerField(default=0, help_text='Calls that nobody had set a price of.')),
                ('tokens_in', models.BigIntegerField(default=0)),
                ('cached', models.BigIntegerField(default=0, help_text="Of those in, from the provider's cache.")),
                ('tokens_out', models.BigIntegerField(default=0)),
                ('reasoning', models.BigIntegerField(default=0, help_text='Of those out, thoughts.')),
                ('memory', models.BigIntegerField(default=0, help_text='Of those in, recalled memories; estimated.')),
                ('documents', models.BigIntegerField(default=0, help_text='Of those in, passages of documents; estimated.')),
                ('tools', models.BigIntegerField(default=0, help_text='Of those in, tools and what they returned; estimated.')),
                ('cost', models.DecimalField(decimal_places=8, default=0, help_text="In the installation's currency, as far as priced.", max_digits=24)),
            ],
            options={
                'verbose_name_plural': 'use of models',
                'indexes': [models.Index(fields=['workspace', 'day'], name='use_of_workspace'), models.Index(fields=['user', 'day'], name='use_of_person'), models.Index(fields=['day'], name='use_of_day')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'user', 'day', 'purpose', 'model', 'is_embedded'), name='one_sum_a_day'), models.UniqueConstraint(condition=models.Q(('purpose', 'index')), fields=('day', 'model'), name='one_sum_of_index_a_day')],
            },
        ),
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget', to='workspaces.workspace')),
                ('user', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget', to=settings.AUTH_USER_MODEL)),
                ('tokens', models.BigIntegerField(blank=True, help_text='In and out together. Empty: any number.', null=True)),
                ('money', models.DecimalField(blank=True, decimal_places=2, help_text='Empty: any amount.', max_digits=13, null=True)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('user', None), ('workspace__isnull', False)), models.Q(('user__isnull', False), ('workspace', None)), _connector='OR'), name='budget_of_one')],
            },
        ),
        migrations.CreateModel(
            name='WaitingMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.TextField()),
                ('attempts', models.PositiveSmallIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('next_attempt_at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='hook')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='workspaces.workspace')),
                ('name', models.CharField(max_length=80)),
                ('url', models.CharField(max_length=1000, verbose_name='address')),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=30), size=None)),
                ('with_text', models.BooleanField(default=False, help_text='What was saved or changed is sent along, not only its id.')),
                ('sealed_secret', models.TextField(editable=False)),
                ('sealed_before', models.TextField(blank=True, default='', editable=False)),
                ('before_until', models.DateTimeField(editable=False, null=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('failing_since', models.DateTimeField(help_text='Since then nothing was delivered.', null=True)),
                ('disabled_at', models.DateTimeField(null=True)),
                ('disabled_for', models.CharField(blank=True, default='', help_text='Why, if not by hand.', max_length=300)),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='evt')),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='workspaces.webhook')),
                ('event', models.CharField(max_length=30)),
                ('about', models.CharField(help_text='The id of what it happened to.', max_length=32)),
                ('action', models.CharField(help_text='How: create, edit, restore …', max_length=20)),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('attempted_at', models.DateTimeField(null=True)),
                ('answer_code', models.PositiveIntegerField(help_text='The HTTP status of the last answer.', null=True)),
                ('error', models.CharField(blank=True, default='', help_text='What went wrong last.', max_length=300)),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['webhook', '-created_at', '-id'], name='delivery_list'), models.Index(condition=models.Q(('status', 'waiting')), fields=['webhook', 'next_attempt_at'], name='delivery_due'), models.Index(fields=['created_at'], name='delivery_age')],
            },
        ),
        *(migrations.RunSQL(sql) for sql in (AUDIT, UNLOGGED, STORAGE, WORDS, DOCUMENTS, ARTIFACTS, FORGET)),
    ]
