"""A list of all statements that write to the table of memories; a new one fails.

Read off the sources, product and benchmarks: raw SQL (INSERT, UPDATE, COPY, MERGE, DELETE) on this table or on one
whose name is put in, and the ORM's verbs on rows and querysets of Memory, or of a model that is found by its name. What
decides about a text asks ``memories.writing.decide``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("memories", "chat", "workspaces", "memoryhub", "tests/bench")
VERB = r"\b(INSERT\s+INTO|UPDATE|COPY|MERGE\s+INTO|DELETE\s+FROM|TRUNCATE)\s+(?:ONLY\s+)?"
RAW = re.compile(VERB + r"\"?(?:memories_memory\"?(?!\w)|\{|%s)", re.IGNORECASE)
VERBS = {
    "create",
    "bulk_create",
    "get_or_create",
    "update_or_create",
    "update",
    "bulk_update",
    "save",
    "save_base",
}
VERBS |= {f"a{verb}" for verb in VERBS}
# Rows of Memory under any name: expressions that contain these names.
MEMORIES = re.compile(
    r"(await |list\(|\()*(Memory\b|[\w.]+\._(default|base)_manager\b"
    r"|(django\.)?apps\.get_model\(('memories(\.|', ')[Mm]emory'|(?!'))"
    r"|_locked\(memory|(changing\.)?locked_row\(|(gate\.)?new_row\(|get_memory\(|_LOCKED\b"
    r"|[\w.]+\.((owned_)?memories|Memory|memory)\b(?!\.(embeddings|sources|revisions)\b))"
)
RELATED = re.compile(r"\w+\.(embeddings|sources|revisions|values|values_list|aggregate|count|exists|pk)\b")

# Function and statements. Texts and keys are written by the gate, by its bulk variant, and by the fillers of
# benchmarks.
WRITES = {
    ("memories/writing/gate.py", "new_row"): {"Memory()"},
    ("memories/writing/gate.py", "_insert"): {"save"},
    ("memories/writing/gate.py", "_propose"): {"save"},
    ("memories/writing/changing.py", "change"): {"save"},
    ("memories/writing/changing.py", "replace"): {"save"},
    ("memories/writing/gate.py", "delete_memory"): {"save"},
    ("memories/writing/changing.py", "restore_memory"): {"save"},
    ("memories/writing/bulk_save.py", "_record_replaced"): {"update"},
    ("memories/writing/changing.py", "_point"): {"save"},
    ("memories/writing/review.py", "_decide"): {"save"},
    ("memories/writing/bulk_save.py", "-"): {"INSERT INTO"},
    # Writes of other columns: times, links, sources, words, the rules checked by, and permanent deletion.
    ("memories/writing/vector_backfill.py", "reembed"): {"update"},
    ("memories/writing/vector_backfill.py", "store_late_vector"): {"update"},
    ("memories/writing/vector_backfill.py", "_compare_late"): {"update"},
    ("memories/tasks.py", "embed_memories"): {"update"},
    ("memories/forgetting/for_good.py", "forget_source"): {"update"},
    ("memories/forgetting/remaining_copies.py", "drop_excerpts"): {"update"},
    ("memories/forgetting/remaining_copies.py", "drop_noted"): {"update"},
    ("memories/writing/changing.py", "set_sources"): {"save"},
    ("memories/writing/gate.py", "move_memory"): {"update"},
    ("memories/writing/extraction_jobs.py", "supersede"): {"save"},
    ("memories/indexing.py", "-"): {"UPDATE"},
    ("memories/recalling/loading.py", "-"): {"UPDATE"},
    ("memories/forgetting/remaining_copies.py", "-"): {"UPDATE"},
    # The table's name is a parameter: rows deleted with their workspace or person.
    ("workspaces/actions/purging.py", "delete_rows"): {"DELETE FROM"},
    # For benchmarks only: rows without keys.
    ("tests/bench/row_copies.py", "copy_places"): {"INSERT INTO"},
    ("tests/bench/synthetic.py", "-"): {"INSERT INTO"},
    ("tests/bench/bulk.py", "-"): {"INSERT INTO", "UPDATE"},
}
ASKING = {"gate.py", "changing.py", "bulk_save.py", "review.py", "vector_backfill.py"}


def sources() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def writes_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield (function, operation) for each statement that writes memories, or may."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def name_of(node: ast.AST) -> str:
        line = getattr(node, "lineno", 0)
        around = [each for each in functions if each.lineno <= line <= (each.end_lineno or 0)]
        return around[-1].name if around else "-"

    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said = "".join(each.value if isinstance(each, ast.Constant) else "{" for each in node.values)
            yield from ((name_of(node), " ".join(found.upper().split())) for found in RAW.findall(said))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((name_of(node), " ".join(found.upper().split())) for found in RAW.findall(node.value))
        elif isinstance(node, ast.Call) and _may_write(node):
            if verb := _verb_of(node, functions, name_of(node)):
                yield name_of(node), verb
        elif _is_renamed(node):
            yield name_of(node), "another name"


def _may_write(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) or (
        isinstance(call.func, ast.Attribute) and call.func.attr in VERBS
    )


def _is_renamed(node: ast.AST) -> bool:
    if isinstance(node, ast.alias):
        return node.name == "Memory" and node.asname is not None
    return isinstance(node, ast.Assign) and ast.unparse(node.value) == "Memory"


def _verb_of(call: ast.Call, functions: list[ast.FunctionDef | ast.AsyncFunctionDef], name: str) -> str:
    if isinstance(call.func, ast.Name) and call.func.id == "Memory":
        return "Memory()"
    if isinstance(call.func, ast.Attribute) and call.func.attr in VERBS:
        return call.func.attr if _is_memory(call.func.value, functions, name) else ""
    return ""


def _is_memory(value: ast.expr, functions: list[ast.FunctionDef | ast.AsyncFunctionDef], name: str) -> bool:
    """Return whether an expression is of Memory, also through a parameter or an assignment of its function."""
    text = ast.unparse(value)
    if MEMORIES.match(text):
        return True
    function = next((each for each in functions if each.name == name), None)
    if function is None or RELATED.match(text):
        return False
    return text.split(".")[0].split("[")[0] in _names_of_memories(function)


def _names_of_memories(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    names = {
        each.arg
        for each in _arguments(function)
        if each.annotation is not None and re.search(r"\bMemory(QuerySet)?\b", ast.unparse(each.annotation))
    }
    while True:
        new = set(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                targets, made_of = (
                    [target for target in node.targets if isinstance(target, ast.Name)],
                    node.value,
                )
            elif isinstance(node, ast.NamedExpr | ast.For | ast.AsyncFor | ast.comprehension):
                made_of = node.value if isinstance(node, ast.NamedExpr) else node.iter
                targets = [node.target] if isinstance(node.target, ast.Name) else []
            else:
                continue
            text = ast.unparse(made_of)
            of_one = re.match(r"\w*", text)[0] in names and not RELATED.match(text)  # type: ignore[index]
            if MEMORIES.match(text) or of_one:
                new |= {target.id for target in targets}
        if new == names:
            return names
        names = new


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def test_nothing_writes_memories_but_what_is_listed() -> None:
    found: dict[tuple[str, str], set[str]] = {}
    for path in sources():
        for function, verb in writes_in(path.read_text()):
            found.setdefault((path.relative_to(ROOT).as_posix(), function), set()).add(verb)
    assert found == WRITES


def test_new_writing_statement_is_found() -> None:
    writing_sources = [
        "def act():\n    Memory.objects.create(content='x')",
        "def act():\n    Memory.objects.bulk_create([])",
        "async def act():\n    await Memory.objects.acreate(content='x')",
        "def act(memory: Memory):\n    memory.content = 'x'\n    memory.save()",
        "def act(pk):\n    found = Memory.objects.filter(pk=pk).first()\n    found.save(update_fields=['key'])",
        "def act(rows: QuerySet[Memory]):\n    rows.filter(pk=1).update(key='x')",
        "def act(workspace):\n    workspace.memories.update(key='x')",
        "def act(rows: MemoryQuerySet):\n    for memory in rows:\n        memory.save()",
        "def act(cursor):\n    cursor.execute('insert into memories_memory (content) values (1)')",
        "def act(cursor):\n    cursor.copy('COPY \"memories_memory\" (content) FROM STDIN')",
        "SQL = f'''\n  UPDATE   memories_memory SET key = {x}'''",
        "def act():\n    return Memory(content='x')",
        "def act(cursor, table):\n    cursor.execute(f'INSERT INTO {table} SELECT 1')",
        "def act(cursor):\n    cursor.execute(SQL('UPDATE {of} SET key = 1').format(of=Identifier('memories_memory')))",
        "def act():\n    apps.get_model('memories', 'Memory').objects.update(key='x')",
        "def act(label):\n    rows = apps.get_model(label).objects.all()\n    rows.update(key='x')",
        "def act():\n    models.Memory.objects.create(content='x')",
        "def act(item):\n    item.memory.save()",
        "from memories.models import Memory as Kept",
        "Kept = Memory",
        "def act(kind):\n    kind.model._default_manager.filter(pk=1).update(key='x')",
    ]
    for source in writing_sources:
        assert list(writes_in(source)), source


def test_each_door_that_takes_texts_asks_the_one_decision() -> None:
    asking = {
        path.name for path in (ROOT / "memories").rglob("*.py") if re.search(r"\bdecide\(", path.read_text())
    }
    assert asking == ASKING | {"decide.py"}
