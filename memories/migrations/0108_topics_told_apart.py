from django.db import migrations, models


def tell_apart(apps, schema_editor):
    """Turn the relations that "They differ" made, between names that look alike, into what it stores now."""
    relations = apps.get_model("memories", "NodeRelation").objects.filter(relation="differs from")
    for relation in relations.select_related("source", "target"):
        short, long = sorted((relation.source.folded, relation.target.folded), key=len)
        if long.startswith(short) or set(short.split()) <= set(long.split()):
            relation.source.differs_from.add(relation.target)
            relation.delete()


class Migration(migrations.Migration):
    dependencies = [("memories", "0107_profile")]

    operations = [
        migrations.AddField(
            model_name="memorynode",
            name="differs_from",
            field=models.ManyToManyField(
                blank=True,
                help_text="Topics that look like this one, and that a person said are others.",
                to="memories.memorynode",
            ),
        ),
        migrations.AddField(
            model_name="memorynode",
            name="unlinked",
            field=models.ManyToManyField(
                blank=True,
                help_text="Taken out by a person, and not gathered by name again.",
                related_name="+",
                to="memories.memory",
            ),
        ),
        migrations.RunPython(tell_apart, migrations.RunPython.noop),
    ]
