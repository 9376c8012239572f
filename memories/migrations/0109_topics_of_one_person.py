import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Coalesce


def give_owners(apps, schema_editor):
    """Give topics that gather nothing but personal memories of who made them to that person."""
    links = apps.get_model("memories", "NodeMemory").objects.filter(node=OuterRef("pk"))
    own = links.filter(memory__owner=OuterRef("created_by"))
    others = links.exclude(memory__owner__isnull=False, memory__owner=OuterRef("created_by"))
    nodes = apps.get_model("memories", "MemoryNode").objects.filter(Exists(own), ~Exists(others))
    nodes.update(owner=F("created_by"))


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0108_topics_told_apart"),
        ("workspaces", "0104_profile"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="memorynode", name="one_node_of_a_name"),
        migrations.AddField(
            model_name="memorynode",
            name="owner",
            field=models.ForeignKey(
                blank=True,
                help_text="Who made it of personal memories, or alone in their own workspace. Others see it once it "
                "gathers a memory that they may see.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="memorynode",
            constraint=models.UniqueConstraint(
                F("workspace"),
                F("folded"),
                Coalesce("owner", 0, output_field=models.BigIntegerField()),
                name="one_node_of_a_name",
            ),
        ),
        migrations.RunPython(give_owners, migrations.RunPython.noop),
    ]
