"""Artifacts and their versions, the third kind of what the index finds."""

import django.db.models.deletion
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models


WORDS = """
CREATE FUNCTION artifacts_counted_words(m workspaces_artifact) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, cardinality(positions)::float8
    FROM unnest(to_tsvector('english', m.title || E'\\n' || m.content))
$$;
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON workspaces_artifact
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION workspaces_forget_passages(
    '3', 'artifacts_counted_words', 'coalesce(-m.owner_id, m.workspace_id)'
);
"""
WORDS_BACK = """
DROP TRIGGER workspaces_forget_passages ON workspaces_artifact;
DROP FUNCTION artifacts_counted_words(workspaces_artifact);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0017_document_versions'),
    ]

    operations = [
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='art')),
                ('title', models.CharField(max_length=200)),
                ('kind', models.CharField(choices=[('markdown', 'Text'), ('code', 'Code'), ('html', 'Web page'), ('table', 'Table')], max_length=10)),
                ('language', models.CharField(blank=True, default='', help_text='Of code.', max_length=40)),
                ('content', models.TextField(help_text='Of its newest version; a table as Markdown.')),
                ('gist', models.TextField(help_text='What its vector is made of: its title and how it begins.')),
                ('version', models.PositiveIntegerField(default=1, help_text='The number of its newest version.')),
                ('source_chat_id', models.CharField(blank=True, default='', max_length=40)),
                ('source_message_id', models.CharField(blank=True, default='', max_length=40)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(blank=True, help_text='Who alone sees it: it comes from a private chat. Empty: every member of the workspace.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ArtifactVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='From 1.')),
                ('title', models.CharField(max_length=200)),
                ('language', models.CharField(blank=True, default='', max_length=40)),
                ('content', models.TextField()),
                ('size', models.PositiveIntegerField(help_text='Bytes of the content.')),
                ('by_model', models.BooleanField(default=False, help_text='A model wrote it, for that person.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('artifact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='workspaces.artifact')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-number'],
            },
        ),
        migrations.AddIndex(
            model_name='artifact',
            index=models.Index(condition=models.Q(('deleted_at', None)), fields=['workspace', '-created_at', '-id'], name='artifact_list'),
        ),
        migrations.AddIndex(
            model_name='artifact',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='artifact_deleted'),
        ),
        migrations.AddConstraint(
            model_name='artifactversion',
            constraint=models.UniqueConstraint(fields=('artifact', 'number'), name='one_artifact_version_a_number'),
        ),
        migrations.RunSQL(WORDS, WORDS_BACK),
    ]
