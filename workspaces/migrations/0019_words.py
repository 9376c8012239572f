"""Words in any language: stems are cut to six letters, and scripts without blanks are read in pairs of characters.

Passages that are there are counted anew in batches of their own, each committed, from where an earlier run was killed.
"""

from django.db import migrations

from workspaces.index.recounting import Recount

# Thai to Burmese, Khmer, Japanese and Chinese, Korean (whose particles have no blank before them), rarer Chinese.
WORDS = r"""
CREATE OR REPLACE FUNCTION workspaces_spaced(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN said !~ '[\u0E01-\u109F\u1780-\u17FF\u3005-\u30FF\u3400-\u9FFF\uAC00-\uD7A3\uF900-\uFAFF\U00020000-\U000323AF]'
           THEN said ELSE (
        SELECT string_agg(CASE WHEN NOT own THEN CASE WHEN before THEN ' ' || c ELSE c END
                               WHEN after THEN c || next || ' '
                               WHEN before THEN '' ELSE ' ' || c || ' ' END, '' ORDER BY i)
        FROM (
            SELECT i, c, own, lead(c) OVER w AS next, coalesce(lag(own) OVER w, false) AS before,
                   coalesce(lead(own) OVER w, false) AS after
            FROM (
                SELECT i, c, ascii(c) <@ '{[3585,4255],[6016,6143],[12293,12295],[12353,12538],[12540,12543],
                    [13312,40959],[44032,55203],[63744,64255],[131072,205743]}'::int4multirange AS own
                FROM regexp_split_to_table(said, '') WITH ORDINALITY AS characters(c, i)
            ) each
            WINDOW w AS (ORDER BY i)
        ) pairs
    ) END
$$;
CREATE OR REPLACE FUNCTION workspaces_words(said text) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN w.lexeme ~ '[0-9._/@:+-]' THEN w.lexeme ELSE left(w.lexeme, 6) END,
           sum(cardinality(w.positions))::float8
    FROM unnest(to_tsvector('english', workspaces_spaced(said))) w
    GROUP BY 1
$$;
"""
WORDS_BACK = "DROP FUNCTION workspaces_words(text); DROP FUNCTION workspaces_spaced(text);"
BEFORE = """
CREATE FUNCTION documents_counted_words(m workspaces_documentpassage) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count)::float8 FROM (
        SELECT lexeme, cardinality(positions) * 2 / 3.0 AS count FROM unnest(to_tsvector('english', m.text))
        UNION ALL
        SELECT lexeme, cardinality(positions) / 3.0 FROM unnest(to_tsvector('english', m.around))
    ) said GROUP BY lexeme
$$;
"""
COUNTED = """
CREATE FUNCTION documents_counted_words(m workspaces_documentpassage) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count) FROM (
        SELECT lexeme, count * 2 / 3.0 AS count FROM workspaces_words(m.text)
        UNION ALL
        SELECT lexeme, count / 3.0 FROM workspaces_words(m.around)
    ) said GROUP BY lexeme
$$;
"""
DOCUMENTS = Recount(
    2, "workspaces_documentpassage", "documents_counted_words", "m.workspace_id", "m.deleted_at IS NULL",
    before=BEFORE, after=COUNTED,
)
ARTIFACTS_BEFORE = """
CREATE FUNCTION artifacts_counted_words(m workspaces_artifact) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, cardinality(positions)::float8
    FROM unnest(to_tsvector('english', m.title || E'\\n' || m.content))
$$;
"""
ARTIFACTS_COUNTED = """
CREATE FUNCTION artifacts_counted_words(m workspaces_artifact) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, count FROM workspaces_words(m.title || E'\\n' || m.content)
$$;
"""
ARTIFACTS = Recount(
    3, "workspaces_artifact", "artifacts_counted_words", "coalesce(-m.owner_id, m.workspace_id)",
    "m.deleted_at IS NULL", before=ARTIFACTS_BEFORE, after=ARTIFACTS_COUNTED,
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("workspaces", "0018_artifacts")]
    operations = [
        migrations.RunSQL(WORDS, WORDS_BACK),
        migrations.RunPython(DOCUMENTS.forwards, DOCUMENTS.backwards),
        migrations.RunPython(ARTIFACTS.forwards, ARTIFACTS.backwards),
    ]
