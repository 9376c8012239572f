from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0002_vector_storage")]

    operations = [
        migrations.CreateModel(
            name="PlaceStatistics",
            fields=[
                ("place", models.BigIntegerField(primary_key=True, serialize=False)),
                ("memory_count", models.PositiveIntegerField()),
                ("counted_at", models.DateTimeField()),
            ],
            options={"verbose_name_plural": "place statistics"},
        ),
        migrations.CreateModel(
            name="CommonWord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "place", "lexeme", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("place", models.BigIntegerField()),
                ("lexeme", models.TextField()),
                ("memory_count", models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="VectorIndex",
            fields=[
                ("name", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("place", models.BigIntegerField()),
                ("model", models.CharField(max_length=200)),
                ("dimension", models.PositiveIntegerField()),
                ("vector_count", models.PositiveIntegerField(help_text="Live vectors when it was built.")),
                ("seconds", models.FloatField(help_text="How long the building took.")),
                ("built_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "vector indexes",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("place", "model", "dimension"), name="one_index_a_place_and_model"
                    )
                ],
            },
        ),
    ]
