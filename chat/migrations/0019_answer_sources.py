import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0018_passing_turns'),
        ('workspaces', '0016_documents'),
    ]

    operations = [
        migrations.CreateModel(
            name='AnswerSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(help_text='By which the answer cites it, from 1.')),
                ('page', models.PositiveIntegerField(default=0, help_text='0 where the document has none.')),
                ('heading', models.CharField(blank=True, default='', max_length=300)),
                ('score', models.FloatField()),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.document')),
                ('passage', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='workspaces.documentpassage')),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='chat.message')),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('message', 'number'), name='one_source_a_number')],
            },
        ),
    ]
