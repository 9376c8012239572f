"""By which rules for credentials a row was checked last. A constant default: nothing is rewritten."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('memories', '0016_personal_memory_permission')]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='secret_rules',
            field=models.IntegerField(default=0, editable=False),
        ),
        migrations.AlterField(
            model_name='revision',
            name='action',
            field=models.CharField(choices=[('create', 'Saved'), ('edit', 'Edited'), ('delete', 'Forgotten'), ('restore', 'Restored'), ('evict', 'Made room'), ('merge', 'Merged with an older one'), ('propose', 'Proposed'), ('approve', 'Approved'), ('reject', 'Rejected'), ('hide', 'Hidden: looks like a credential')], max_length=10),
        ),
    ]
