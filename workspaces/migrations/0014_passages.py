"""The index of passages takes over the tables of memories' vectors and words: names and columns, no row is rewritten.

``kind`` says of each row what it is about: 1 is memories, and stands in every row without being written into one.
What makes keys and indexes of it is in 0015, beside readers and writers.
"""

from django.db import migrations, models
from pgvector.django import HalfVectorField

TABLES = (
    ("memoryembedding", "passagevector"),
    ("memoryword", "passageword"),
    ("embeddingmodel", "embeddingmodel"),
    ("placestatistics", "placestatistics"),
    ("commonword", "commonword"),
    ("vectorindex", "vectorindex"),
)
RENAME = "".join(f"ALTER TABLE memories_{old} RENAME TO workspaces_{new};" for old, new in TABLES)
RENAME_BACK = "".join(f"ALTER TABLE workspaces_{new} RENAME TO memories_{old};" for old, new in TABLES)

# Who may see what in the admin, and what was done there, follows the tables.
def renamed(app, old, to, new):
    return f"""
UPDATE django_content_type SET app_label = '{to}', model = '{new}' WHERE app_label = '{app}' AND model = '{old}'
  AND NOT EXISTS (SELECT 1 FROM django_content_type WHERE app_label = '{to}' AND model = '{new}');
UPDATE auth_permission p SET codename = replace(codename, '{old}', '{new}') FROM django_content_type t
WHERE t.id = p.content_type_id AND t.app_label = '{to}' AND t.model = '{new}';
"""


NAMES = "".join(renamed("memories", old, "workspaces", new) for old, new in TABLES)
NAMES_BACK = "".join(renamed("workspaces", new, "memories", old) for old, new in TABLES)

# The default fills the column of the rows there are, and is then dropped: who writes says of what kind.
KINDS = "".join(
    f"ALTER TABLE workspaces_{table} ADD COLUMN kind smallint NOT NULL DEFAULT 1;"
    f"ALTER TABLE workspaces_{table} ALTER COLUMN kind DROP DEFAULT;"
    for table in ("passagevector", "passageword", "placestatistics", "commonword", "vectorindex")
)
KINDS_BACK = "".join(
    f"DELETE FROM workspaces_{table} WHERE kind <> 1; ALTER TABLE workspaces_{table} DROP COLUMN kind;"
    for table in ("passagevector", "passageword", "placestatistics", "commonword", "vectorindex")
)
COLUMNS = """
ALTER TABLE workspaces_passagevector RENAME COLUMN memory_id TO ref;
ALTER TABLE workspaces_passageword RENAME COLUMN memory_id TO ref;
ALTER TABLE workspaces_placestatistics RENAME COLUMN memory_count TO passage_count;
ALTER TABLE workspaces_commonword RENAME COLUMN memory_count TO passage_count;
ALTER SEQUENCE memories_memoryembedding_id_seq RENAME TO workspaces_passagevector_id_seq;
ALTER SEQUENCE memories_embeddingmodel_id_seq RENAME TO workspaces_embeddingmodel_id_seq;
DO $$
DECLARE name text;
BEGIN
    SELECT conname INTO name FROM pg_constraint
    WHERE conrelid = 'workspaces_passagevector'::regclass AND contype = 'f' AND confrelid = 'memories_memory'::regclass;
    EXECUTE format('ALTER TABLE workspaces_passagevector DROP CONSTRAINT %I', name);
    SELECT indexrelid::regclass::text INTO name FROM pg_index
    WHERE indrelid = 'workspaces_passagevector'::regclass AND NOT indisunique AND indnatts = 1
      AND indpred IS NULL AND pg_get_indexdef(indexrelid) LIKE '%(ref)';
    EXECUTE format('DROP INDEX %s', name);
END $$;
"""
COLUMNS_BACK = """
ALTER TABLE workspaces_passagevector RENAME COLUMN ref TO memory_id;
ALTER TABLE workspaces_passageword RENAME COLUMN ref TO memory_id;
ALTER TABLE workspaces_placestatistics RENAME COLUMN passage_count TO memory_count;
ALTER TABLE workspaces_commonword RENAME COLUMN passage_count TO memory_count;
ALTER SEQUENCE workspaces_passagevector_id_seq RENAME TO memories_memoryembedding_id_seq;
ALTER SEQUENCE workspaces_embeddingmodel_id_seq RENAME TO memories_embeddingmodel_id_seq;
CREATE INDEX memories_memoryembedding_memory_id_0a1b2c3d ON workspaces_passagevector (memory_id);
ALTER TABLE workspaces_passagevector ADD CONSTRAINT memories_memoryembedding_memory_id_0a1b2c3d_fk_memories_memory_id
    FOREIGN KEY (memory_id) REFERENCES memories_memory (id) DEFERRABLE INITIALLY DEFERRED;
"""

# Small tables: a row for each large place, and for each model.
SMALL = """
ALTER TABLE workspaces_placestatistics DROP CONSTRAINT memories_placestatistics_pkey;
ALTER TABLE workspaces_placestatistics ADD PRIMARY KEY (place, kind);
ALTER TABLE workspaces_commonword DROP CONSTRAINT memories_commonword_pkey;
ALTER TABLE workspaces_commonword ADD PRIMARY KEY (place, lexeme, kind);
ALTER TABLE workspaces_vectorindex DROP CONSTRAINT one_index_a_place_and_model;
ALTER TABLE workspaces_vectorindex ADD CONSTRAINT one_index_a_place_and_model UNIQUE (place, kind, model, dimension);
ALTER TABLE workspaces_embeddingmodel ADD COLUMN reached jsonb NOT NULL DEFAULT '{}';
ALTER TABLE workspaces_embeddingmodel ADD COLUMN refused jsonb NOT NULL DEFAULT '{}';
UPDATE workspaces_embeddingmodel SET reached = jsonb_build_object('1', reached_id) WHERE reached_id > 0;
UPDATE workspaces_embeddingmodel SET refused = jsonb_build_object('1', refused_ids) WHERE refused_ids <> '{}';
ALTER TABLE workspaces_embeddingmodel ALTER COLUMN reached DROP DEFAULT, ALTER COLUMN refused DROP DEFAULT,
    DROP COLUMN reached_id, DROP COLUMN refused_ids;
"""
SMALL_BACK = """
DELETE FROM workspaces_placestatistics WHERE kind <> 1;
DELETE FROM workspaces_commonword WHERE kind <> 1;
DELETE FROM workspaces_vectorindex WHERE kind <> 1;
ALTER TABLE workspaces_placestatistics DROP CONSTRAINT workspaces_placestatistics_pkey;
ALTER TABLE workspaces_placestatistics ADD CONSTRAINT memories_placestatistics_pkey PRIMARY KEY (place);
ALTER TABLE workspaces_commonword DROP CONSTRAINT workspaces_commonword_pkey;
ALTER TABLE workspaces_commonword ADD CONSTRAINT memories_commonword_pkey PRIMARY KEY (place, lexeme);
ALTER TABLE workspaces_vectorindex DROP CONSTRAINT one_index_a_place_and_model;
ALTER TABLE workspaces_vectorindex ADD CONSTRAINT one_index_a_place_and_model UNIQUE (place, model, dimension);
ALTER TABLE workspaces_embeddingmodel ADD COLUMN reached_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN refused_ids bigint[] NOT NULL DEFAULT '{}';
UPDATE workspaces_embeddingmodel SET reached_id = coalesce((reached->>'1')::bigint, 0),
    refused_ids = ARRAY(SELECT jsonb_array_elements_text(coalesce(refused->'1', '[]'))::bigint);
ALTER TABLE workspaces_embeddingmodel ALTER COLUMN reached_id DROP DEFAULT, ALTER COLUMN refused_ids DROP DEFAULT,
    DROP COLUMN reached, DROP COLUMN refused;
"""

# For the triggers of the tables whose rows are passages: their kind's number, the function that counts a row's words,
# and the place of a row ``m``. Once a statement, so its own text may be made anew for each.
FORGET = """
CREATE FUNCTION workspaces_forget_passages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM workspaces_passagevector v USING gone
    WHERE v.kind = TG_ARGV[0]::smallint AND v.ref = gone.id;
    EXECUTE format('
        DELETE FROM workspaces_passageword w USING (
            SELECT m.id, %s AS place, c.lexeme FROM gone m, LATERAL %s(ROW(m.*)::%I) c
        ) said
        WHERE w.place = said.place AND w.lexeme = said.lexeme AND w.kind = %s AND w.ref = said.id
    ', TG_ARGV[2], TG_ARGV[1], TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0013_key_calls"),
        ("memories", "0019_kept_copies"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(RENAME, RENAME_BACK),
                migrations.RunSQL(NAMES, NAMES_BACK),
                migrations.RunSQL(COLUMNS, COLUMNS_BACK),
                migrations.RunSQL(KINDS, KINDS_BACK),
                migrations.RunSQL(SMALL, SMALL_BACK),
                migrations.RunSQL(FORGET, "DROP FUNCTION workspaces_forget_passages()"),
            ],
            state_operations=[
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
                    name='PassageVector',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.SmallIntegerField()),
                        ('ref', models.BigIntegerField()),
                        ('place', models.BigIntegerField(help_text='Where it is looked for; see workspaces.index.places.')),
                        ('model', models.CharField(max_length=200)),
                        ('dimension', models.PositiveIntegerField()),
                        ('live', models.BooleanField(default=True)),
                        ('embedding', HalfVectorField()),
                        ('statement', HalfVectorField(null=True)),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('live', True)), fields=['place', 'kind', 'model'], name='passage_of_place')],
                        'constraints': [models.UniqueConstraint(fields=('kind', 'ref', 'model'), name='one_vector_a_passage')],
                    },
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
            ],
        ),
    ]
