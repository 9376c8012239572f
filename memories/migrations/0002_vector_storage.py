"""Keep vectors inside their rows: a scan that follows every vector into the TOAST table is 3 to 10 times slower."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memories", "0001_initial")]
    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE memories_memoryembedding ALTER COLUMN embedding SET STORAGE MAIN;
            ALTER TABLE memories_memoryembedding SET (toast_tuple_target = 8160);
            """,
            """
            ALTER TABLE memories_memoryembedding ALTER COLUMN embedding SET STORAGE EXTERNAL;
            ALTER TABLE memories_memoryembedding RESET (toast_tuple_target);
            """,
        )
    ]
