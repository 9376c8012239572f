"""How an answer was made, and the steps by which it was thought through. No table is rewritten."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import memoryhub.ids


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0009_message_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="mode",
            field=models.CharField(
                choices=[("chat", "Chat"), ("deep_think", "Think")],
                db_default="chat",
                default="chat",
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", memoryhub.ids.PublicIdField(prefix="step")),
                (
                    "kind",
                    models.CharField(
                        choices=[("plan", "Plan"), ("check", "Check against memory")], max_length=10
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("planned", "Planned"),
                            ("agrees", "Nothing differs"),
                            ("differs", "Something differs"),
                            ("nothing", "Nothing to compare with"),
                            ("off", "Memory is off"),
                            ("stopped", "Stopped"),
                            ("timeout", "Took too long"),
                            ("error", "Did not work"),
                        ],
                        help_text="Empty while it runs.",
                        max_length=10,
                    ),
                ),
                (
                    "text",
                    models.TextField(
                        blank=True, help_text="The plan; of a check the correction that the answer got."
                    ),
                ),
                (
                    "findings",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="The answer's words, the id of the memory that speaks of them, whether they agree.",
                    ),
                ),
                (
                    "memory_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "error",
                    models.CharField(
                        blank=True, help_text="Why it failed, fit for a person's eyes.", max_length=200
                    ),
                ),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="chat.message"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
    ]
