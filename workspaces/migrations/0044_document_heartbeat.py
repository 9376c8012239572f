from django.db import migrations, models

older_may_run = True


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0043_invitation_declined")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="heartbeat_at",
            field=models.DateTimeField(
                blank=True,
                help_text="While it is read: the reader's last sign of life. Else: when it was queued.",
                null=True,
            ),
        ),
    ]
