"""Day, origin and workspace of a memory are read off one index: a chart of a hundred thousand looks at none of them.

It takes the place of the index on the day alone, and is built beside readers and writers.
"""

import django.utils.timezone
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0012_refusals')]

    operations = [
        AddIndexConcurrently(
            model_name='memory',
            index=models.Index(fields=['created_at'], include=('source_type', 'workspace'), name='memory_days'),
        ),
        migrations.AlterField(
            model_name='memory',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
    ]
