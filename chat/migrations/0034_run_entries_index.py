import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0033_import_became")]

    operations = [
        migrations.RemoveConstraint(model_name="runentry", name="one_entry_a_key"),
        migrations.AlterField(
            model_name="runentry",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="entries",
                to="chat.run",
            ),
        ),
        migrations.AddConstraint(
            model_name="runentry",
            constraint=models.UniqueConstraint(fields=("key", "run"), name="one_entry_a_key"),
        ),
    ]
