"""Memories of an assistant. Nothing here rewrites or scans the table; what scans it is in 0008."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

# What a deleted memory's words are found by: an assistant's place is 2^40 and its key (docs/decisions/0011).
FORGET = """
CREATE OR REPLACE FUNCTION memories_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memories_memoryword w
    WHERE w.place = coalesce(-OLD.owner_id, 1099511627776 + OLD.agent_id, OLD.workspace_id) AND w.memory_id = OLD.id
      AND w.lexeme IN (SELECT lexeme FROM memories_counted_words(OLD));
    RETURN OLD;
END $$;
"""
FORGET_BACK = FORGET.replace(" 1099511627776 + OLD.agent_id,", "")


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0006_embedding_model'),
        ('workspaces', '0003_agents'),
    ]

    operations = [
        migrations.RemoveConstraint(model_name='memory', name='personal_memories_have_an_owner'),
        migrations.AddField(
            model_name='memory',
            name='agent',
            field=models.ForeignKey(blank=True, db_index=False, help_text='Whose memory this is: it is recalled in chats with this assistant only.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='workspaces.agent'),
        ),
        migrations.AlterField(
            model_name='memory',
            name='scope',
            field=models.CharField(choices=[('workspace', 'Everyone in the workspace'), ('user', 'Its owner, in every workspace'), ('agent', 'Everyone, in chats with its assistant')], default='workspace', max_length=10),
        ),
        AddConstraintNotValid(
            model_name='memory',
            constraint=models.CheckConstraint(
                condition=Q(agent=None, owner=None, scope='workspace')
                | Q(agent=None, owner__isnull=False, scope='user')
                | Q(agent__isnull=False, owner=None, scope='agent'),
                name='scope_says_whose',
            ),
        ),
        migrations.RunSQL(FORGET, FORGET_BACK),
    ]
