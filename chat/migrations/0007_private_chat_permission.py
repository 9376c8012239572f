"""Reading private chats in the admin is a permission of its own. No table changes."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [('chat', '0006_last_said')]

    operations = [
        migrations.AlterModelOptions(
            name='chat',
            options={'ordering': ['-active_at', '-id'], 'permissions': [('read_private_chat', 'Can read private and temporary chats')]},
        ),
    ]
