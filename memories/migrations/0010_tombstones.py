"""Keyed hashes of what was forgotten for good. A new table; nothing here looks at the memories."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('memories', '0009_nodes_assets_sources')]

    operations = [
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.BigIntegerField(help_text='Where the memory was looked for; see Memory.place.')),
                ('digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(fields=('place', 'digest'), name='one_tombstone_a_text'),
        ),
    ]
