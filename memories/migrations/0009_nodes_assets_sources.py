import django.db.models.deletion
import django.utils.timezone
import memoryhub.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0008_agent_scope_checked'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Asset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='asset')),
                ('name', models.CharField(max_length=150)),
                ('content_type', models.CharField(help_text='From its first bytes, never as the sender says.', max_length=50)),
                ('size', models.BigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(help_text='Of the content, hexadecimal.', max_length=64)),
                ('file_name', models.CharField(editable=False, max_length=40, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assets', to='memories.memory')),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='MemoryNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', memoryhub.ids.PublicIdField(prefix='node')),
                ('name', models.CharField(max_length=100)),
                ('folded', models.TextField(editable=False)),
                ('kind', models.CharField(blank=True, help_text='Such as person or project.', max_length=50)),
                ('description', models.TextField(blank=True, max_length=1000)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_nodes', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['folded', 'id'],
            },
        ),
        migrations.CreateModel(
            name='NodeMemory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='node_links', to='memories.memory')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='memories.memorynode')),
            ],
            options={
                'verbose_name_plural': 'node memories',
            },
        ),
        migrations.AddField(
            model_name='memorynode',
            name='memories',
            field=models.ManyToManyField(related_name='nodes', through='memories.NodeMemory', to='memories.memory'),
        ),
        migrations.CreateModel(
            name='NodeRelation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('relation', models.CharField(max_length=80)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('source', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='relations', to='memories.memorynode')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='relations_to', to='memories.memorynode')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='MemorySource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source_id', models.CharField(max_length=32)),
                ('memory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='memories.memory')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['source_id'], name='memory_of_source')],
                'constraints': [models.UniqueConstraint(fields=('memory', 'source_id'), name='one_source_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='nodememory',
            constraint=models.UniqueConstraint(fields=('node', 'memory'), name='one_link_a_memory'),
        ),
        migrations.AddConstraint(
            model_name='memorynode',
            constraint=models.UniqueConstraint(fields=('workspace', 'folded'), name='one_node_of_a_name'),
        ),
        migrations.AddConstraint(
            model_name='noderelation',
            constraint=models.UniqueConstraint(fields=('source', 'target', 'relation'), name='one_relation_of_a_type'),
        ),
        migrations.AddConstraint(
            model_name='noderelation',
            constraint=models.CheckConstraint(condition=models.Q(('source', models.F('target')), _negated=True), name='related_to_another'),
        ),
    ]
