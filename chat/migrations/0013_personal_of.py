"""People say chat by chat whether their personal memories may be used where others read: until they do, not."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0012_deleted_chats"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="chat",
            name="personal_of",
            field=models.ManyToManyField(
                blank=True,
                help_text="Who lets their personal memories be used here though others read it (chat.chats.personal_memories).",
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
