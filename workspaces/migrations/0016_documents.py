"""Documents and their passages, the second kind of what the index finds."""

import django.db.models.deletion
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models

# A passage's own words count once, those around it a third: it is found by what it is about as well.
WORDS = """
CREATE FUNCTION documents_counted_words(m workspaces_documentpassage) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count)::float8 FROM (
        SELECT lexeme, cardinality(positions) * 2 / 3.0 AS count FROM unnest(to_tsvector('english', m.text))
        UNION ALL
        SELECT lexeme, cardinality(positions) / 3.0 FROM unnest(to_tsvector('english', m.around))
    ) said GROUP BY lexeme
$$;
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON workspaces_documentpassage
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION workspaces_forget_passages('2', 'documents_counted_words', 'm.workspace_id');
"""
WORDS_BACK = """
DROP TRIGGER workspaces_forget_passages ON workspaces_documentpassage;
DROP FUNCTION documents_counted_words(workspaces_documentpassage);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0015_passage_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='doc')),
                ('title', models.CharField(max_length=200)),
                ('file_name', models.CharField(editable=False, max_length=40, unique=True)),
                ('media_type', models.CharField(help_text="From its first bytes and its name's ending.", max_length=100)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(help_text='Of the content, hexadecimal.', max_length=64)),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('reading', 'Being read'), ('ready', 'Ready'), ('failed', 'Could not be read')], default='waiting', max_length=10)),
                ('error', models.CharField(blank=True, default='', help_text='Why it could not be read.', max_length=300)),
                ('pages', models.PositiveIntegerField(default=0, help_text='0 where it has none.')),
                ('characters', models.PositiveIntegerField(default=0)),
                ('passage_count', models.PositiveIntegerField(default=0)),
                ('seconds', models.FloatField(default=0, help_text='How long the last reading took.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('reading_since', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='DocumentPassage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='From 0, in reading order.')),
                ('page', models.PositiveIntegerField(default=0, help_text='0 where the document has none.')),
                ('heading', models.CharField(blank=True, default='', max_length=300)),
                ('begins', models.PositiveIntegerField(help_text="Its first character's place in the text.")),
                ('text', models.TextField()),
                ('around', models.TextField(help_text='Its heading and its text with some of what stands before and after.')),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='workspaces.document')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'verbose_name_plural': 'document passages',
            },
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-created_at', '-id'], name='document_list'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(condition=models.Q(('status__in', ['waiting', 'reading'])), fields=['status', 'updated_at'], name='document_unread'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('workspace', 'sha256'), name='one_document_a_content'),
        ),
        migrations.AddIndex(
            model_name='documentpassage',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace'], name='passage_live'),
        ),
        migrations.AddConstraint(
            model_name='documentpassage',
            constraint=models.UniqueConstraint(fields=('document', 'number'), name='one_passage_a_number'),
        ),
        migrations.RunSQL(WORDS, WORDS_BACK),
    ]
