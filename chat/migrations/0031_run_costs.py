from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0030_usage")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="expected_cost",
            field=models.DecimalField(
                blank=True,
                decimal_places=8,
                help_text="Empty where the model has no price.",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="cost",
            field=models.DecimalField(
                blank=True,
                decimal_places=8,
                help_text="In the installation's currency, of the replies whose model had a price.",
                max_digits=18,
                null=True,
            ),
        ),
    ]
