from django.db import migrations, models


class Migration(migrations.Migration):
    older_may_run = True
    dependencies = [
        ("workspaces", "0042_invitation_user"),
    ]

    operations = [
        migrations.AddField(
            model_name="invitation",
            name="declined_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
