"""Reading personal memories in the admin is a permission of its own. No table changes."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [('memories', '0015_review_checked')]

    operations = [
        migrations.AlterModelOptions(
            name='memory',
            options={'ordering': ['-created_at', '-id'], 'permissions': [('read_personal_memory', "Can read memories that are one person's alone")], 'verbose_name_plural': 'memories'},
        ),
    ]
