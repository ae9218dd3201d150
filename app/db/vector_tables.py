"""The vector tables of an embedding profile: created and dropped by the owner's role when a profile comes and goes.

The three `lightrag_vdb_*` tables are what LightRAG would create for itself (a test compares them) but for indexes that repeat
the primary key; the passages' vectors are ours. Each is partitioned by workspace: small ones share a partition without an ANN index, where all vectors of a
workspace are compared; moving large ones out of it is `app/db/vector_partitions.py`'s. Writing and searching is left to
the retrieval layer.
"""

import re
from hashlib import blake2b, md5

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from app.db.policies import APP_ROLE, ENGINE_ROLE, fence_by_tenant, fence_by_workspace
from app.errors import Conflict, Invalid

Connection = AsyncConnection | AsyncSession

MAX_IDENTIFIER = 63
# A large workspace's partition is called after its table and the workspace's number.
MAX_SUFFIX = MAX_IDENTIFIER - len("lightrag_vdb_relation_") - len("_w2147483647")
# pgvector cannot index longer vectors in an HNSW index; those are compared one by one in workspaces of any size.
MAX_INDEXED_DIMENSION = 2000
VECTOR_TABLES_LOCK = 0x7665_6374

_STAMPS = """create_time timestamp(0) DEFAULT CURRENT_TIMESTAMP, update_time timestamp(0) DEFAULT CURRENT_TIMESTAMP"""
_ENGINE_COLUMNS = {
    "lightrag_vdb_chunks": (
        "id varchar(255), workspace varchar(255), full_doc_id varchar(256), chunk_order_index integer, tokens integer,"
        f" content text, content_vector vector({{dimension}}), file_path text, {_STAMPS}"
    ),
    "lightrag_vdb_entity": (
        "id varchar(255), workspace varchar(255), entity_name varchar(512), content text,"
        f" content_vector vector({{dimension}}), {_STAMPS}, chunk_ids varchar(255)[], file_path text"
    ),
    "lightrag_vdb_relation": (
        "id varchar(255), workspace varchar(255), source_id varchar(512), target_id varchar(512), content text,"
        f" content_vector vector({{dimension}}), {_STAMPS}, chunk_ids varchar(255)[], file_path text"
    ),
}


class DimensionMismatch(Conflict):
    """The tables of this suffix hold vectors of another length; `expected` and `found` are facts."""

    code = "dimension_mismatch"
    title = "The embedding model has another dimension"


def vector_suffix(model_name: str, dimension: int) -> str:
    """What LightRAG appends to its tables' names for a model, shortened with a digest where Postgres could not hold it."""
    clean = re.sub(r"[^a-z0-9_]", "_", model_name.strip().lower())
    ending = f"_{dimension}d"
    if not clean:
        raise Invalid("an embedding model needs a name", code="embedding_name_missing")
    if len(clean) + len(ending) > MAX_SUFFIX:
        digest = blake2b(model_name.encode(), digest_size=5).hexdigest()
        clean = f"{clean[: MAX_SUFFIX - len(ending) - len(digest) - 1]}_{digest}"
    return clean + ending


def vector_table_names(suffix: str) -> tuple[str, ...]:
    """The four tables of a suffix, that of the passages last. Raises Invalid if no table can be called so."""
    _check(suffix)
    return (*(f"{base}_{suffix}" for base in _ENGINE_COLUMNS), f"passage_vectors_{suffix}")


async def create_vector_tables(connection: Connection, suffix: str, dimension: int) -> None:
    """Create what is missing of the four tables, in the caller's transaction, which must be the owner's.

    Raises DimensionMismatch if they exist for vectors of another length.
    """
    _check(suffix)
    # Two operators registering the same profile at once must not race on CREATE TABLE.
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": VECTOR_TABLES_LOCK})
    for base, columns in _ENGINE_COLUMNS.items():
        table = f"{base}_{suffix}"
        if not await _exists(connection, table, "content_vector", dimension):
            await _run(connection, _engine_table(table, columns.format(dimension=dimension)))
    table = f"passage_vectors_{suffix}"
    if not await _exists(connection, table, "embedding", dimension):
        await _run(connection, _passage_table(table, dimension))


async def require_dimension(session: AsyncSession, suffix: str, dimension: int) -> None:
    """Raise DimensionMismatch if the passages' table of this suffix is there for vectors of another length."""
    *_, table = vector_table_names(suffix)
    await _exists(session, table, "embedding", dimension)


async def drop_vector_tables(connection: Connection, suffix: str) -> None:
    """Drop the four tables, in the caller's transaction, which must be the owner's; those that are not there are fine."""
    await _run(connection, [f"DROP TABLE IF EXISTS {table}" for table in vector_table_names(suffix)])


def _engine_table(table: str, columns: str) -> list[str]:
    return [
        f"CREATE TABLE {table} ({columns}, CONSTRAINT {table}_pk PRIMARY KEY (workspace, id)) PARTITION BY LIST (workspace)",
        *_inline_storage(table, "content_vector"),
        *fence_by_workspace(table),
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {ENGINE_ROLE}",
        _shared_partition(table),
        *fence_by_workspace(f"{table}_rest"),
    ]


def _passage_table(table: str, dimension: int) -> list[str]:
    return [
        f"CREATE TABLE {table} ("
        " tenant_id uuid NOT NULL, workspace_id uuid NOT NULL, passage_id bigint NOT NULL, version_id uuid NOT NULL,"
        f" content_hash bytea NOT NULL, embedding vector({dimension}) NOT NULL, PRIMARY KEY (workspace_id, passage_id),"
        " FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE)"
        " PARTITION BY LIST (workspace_id)",
        *_inline_storage(table, "embedding"),
        f"CREATE INDEX {index_name(table, 'passage')} ON {table} (tenant_id, passage_id)",
        f"CREATE INDEX {index_name(table, 'content_hash')} ON {table} (workspace_id, content_hash)",
        *fence_by_tenant(table),
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP_ROLE}",
        _shared_partition(table),
        *fence_by_tenant(f"{table}_rest"),
    ]


def _inline_storage(table: str, column: str) -> list[str]:
    """Keeps vectors in the row as long as it fits a page: comparing them all is five to ten times slower out of line."""
    return [f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE MAIN"]


def _shared_partition(table: str) -> str:
    # Nothing of a row is moved out of line before it outgrows its page. Nobody is granted anything on a partition:
    # whatever comes has passed its table's policies.
    return f"CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT WITH (toast_tuple_target = 8160)"


def index_name(table: str, ending: str) -> str:
    """LightRAG's rule (`_safe_index_name`): readable, or with a digest where Postgres would cut it off."""
    name = f"idx_{table}_{ending}"
    if len(name) <= MAX_IDENTIFIER:
        return name
    return f"idx_{md5(table.encode(), usedforsecurity=False).hexdigest()[:12]}_{ending}"


async def _exists(connection: Connection, table: str, column: str, dimension: int) -> bool:
    found = await connection.scalar(
        text("SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attname = :column"),
        {"table": table, "column": column},
    )
    if found is not None and found != dimension:
        raise DimensionMismatch(
            f"table {table} holds vectors of {found} dimensions, the model gives {dimension}",
            expected=dimension,
            found=found,
        )
    return found is not None


async def _run(connection: Connection, statements: list[str]) -> None:
    for statement in statements:
        await connection.execute(text(statement))


def _check(suffix: str) -> None:
    # The suffix becomes part of SQL identifiers.
    if not re.fullmatch(rf"[a-z0-9_]{{1,{MAX_SUFFIX}}}", suffix):
        raise Invalid(f"{suffix!r} cannot end a table's name", code="bad_table_suffix")
