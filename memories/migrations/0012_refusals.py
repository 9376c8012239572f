"""How often something was not stored, by day and kind. A new table; nothing here looks at the memories."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('memories', '0011_purge'), ('workspaces', '0007_short_term_choices')]

    operations = [
        migrations.CreateModel(
            name='Refusal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('source_type', models.CharField(max_length=20)),
                ('kind', models.CharField(max_length=40)),
                ('number', models.PositiveIntegerField(default=1)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-day', '-id'],
            },
        ),
        migrations.AddIndex(
            model_name='refusal',
            index=models.Index(fields=['-day', '-id'], name='refusal_days'),
        ),
        migrations.AddConstraint(
            model_name='refusal',
            constraint=models.UniqueConstraint(fields=('workspace', 'day', 'source_type', 'kind'), name='one_refusal_a_day_and_kind'),
        ),
    ]
