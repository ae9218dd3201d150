"""LightRAG's storage classes have the calls and the private names that the transactional ones are built on, and no others.

A new release that adds a call fails here: decide then whether it reads or writes, and give it a form inside units.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import lightrag
import pytest
from lightrag import base
from lightrag.kg import pgtable_impl, postgres_impl

from app.retrieval.lightrag import private_names
from app.retrieval.lightrag.private_names import PRIVATE_NAMES
from app.retrieval.lightrag.storage.doc_status_overlay import UPSERT
from app.retrieval.lightrag.storage.doc_status_store import UnitDocStatusStorage
from app.retrieval.lightrag.storage.extraction_cache import ExtractionCache
from app.retrieval.lightrag.storage.graph_store import UnitGraphStorage
from app.retrieval.lightrag.storage.kv_store import UnitKvStore
from app.retrieval.lightrag.storage.vector_store import UnitVectorStorage

LIFE = {"initialize", "finalize", "index_done_callback", "drop_pending_index_ops", "drop"}
KV = {"get_by_id", "get_by_id_strict", "get_by_ids", "filter_keys", "is_empty", "upsert", "delete"}

# Class of LightRAG, ours, the calls that have a form of ours, and those that are refused inside a unit by the guard.
STORAGES: tuple[tuple[type, type, type, set[str], set[str]], ...] = (
    (base.BaseKVStorage, postgres_impl.PGKVStorage, UnitKvStore, LIFE | KV, set()),
    (base.BaseKVStorage, postgres_impl.PGKVStorage, ExtractionCache, LIFE | KV, set()),
    (
        base.BaseVectorStorage,
        postgres_impl.PGVectorStorage,
        UnitVectorStorage,
        LIFE
        | {"get_by_id", "get_by_ids", "upsert", "delete", "delete_entity", "delete_entity_relation"}
        | {"query", "get_vectors_by_ids"},
        # LightRAG's own way to create tables, which `initialize` does not go.
        {"setup_table"},
    ),
    (
        base.BaseGraphStorage,
        pgtable_impl.PGTableGraphStorage,
        UnitGraphStorage,
        LIFE
        | {"has_node", "get_node", "has_edge", "get_edge", "get_node_edges"}
        | {"get_nodes_batch", "has_nodes_batch", "get_edges_batch", "get_nodes_edges_batch"}
        | {"upsert_node", "upsert_nodes_batch", "upsert_edge", "upsert_edges_batch"}
        | {"delete_node", "remove_nodes", "remove_edges"},
        {"node_degree", "edge_degree", "node_degrees_batch", "edge_degrees_batch"}
        | {"get_all_labels", "get_all_nodes", "get_all_edges", "get_knowledge_graph"}
        | {"get_popular_labels", "search_labels"},
    ),
    (
        base.DocStatusStorage,
        postgres_impl.PGDocStatusStorage,
        UnitDocStatusStorage,
        LIFE
        | KV
        | {"get_docs_by_ids", "get_full_docs_by_ids", "get_docs_by_statuses", "get_docs_by_statuses_page"}
        | {"get_doc_by_content_hash", "get_doc_by_file_basename", "resolve_doc_source_strict"}
        | {"update_doc_status_fields", "repair_source_conflict"},
        {"get_status_counts", "get_all_status_counts", "count_docs_by_statuses", "get_docs_by_track_id"}
        | {"get_docs_paginated", "get_doc_by_file_path", "list_source_conflicts_page"},
    ),
)
# Names that are the same in every process: the order of a set is not, and parallel runs compare what they collected.
NAMES = [ours.__name__ for _, _, ours, _, _ in STORAGES]
# Calls that do nothing in LightRAG's own class, or only let go of the pool.
INHERITED = {"finalize", "drop_pending_index_ops"}


def _calls(kind: type) -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(kind)
        if inspect.iscoroutinefunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(("abstract", "stock", "ours", "formed", "refused"), STORAGES, ids=NAMES)
def test_every_call_is_accounted_for(
    abstract: type, stock: type, ours: type, formed: set[str], refused: set[str]
) -> None:
    assert _calls(abstract) | _calls(stock) == formed | refused
    package = "app.retrieval.lightrag.storage."
    inherited = {name for name in formed if not str(getattr(ours, name).__module__).startswith(package)}
    assert inherited <= INHERITED


def test_version_is_the_one_these_storages_were_made_for() -> None:
    assert lightrag.__version__ == "1.5.7"


def _parameters(call: Any) -> list[str]:
    return [name for name in inspect.signature(call).parameters if name != "self"]


@pytest.mark.parametrize(("abstract", "stock", "ours", "formed", "refused"), STORAGES, ids=NAMES)
def test_calls_keep_the_parameter_names(
    abstract: type, stock: type, ours: type, formed: set[str], refused: set[str]
) -> None:
    for name in formed - {"repair_source_conflict"}:
        assert _parameters(getattr(ours, name)) == _parameters(getattr(stock, name)), name


def _owner_and_name(module: str, path: str) -> tuple[Any, str]:
    *owners, name = path.split(".")
    found: Any = importlib.import_module(module)
    for part in owners:
        found = getattr(found, part)
    return found, name


@pytest.mark.parametrize(("module", "path"), [entry[:2] for entry in PRIVATE_NAMES], ids=lambda value: str(value))
def test_private_name_is_there(module: str, path: str) -> None:
    owner, name = _owner_and_name(module, path)
    if not hasattr(owner, name):
        # Set on instances only, by the class or one of those it is made of.
        sources = [inspect.getsource(kind) for kind in owner.__mro__ if kind.__module__.startswith("lightrag")]
        assert re.search(rf"self\.{name}(: [^=]+)? = ", "".join(sources))


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("LightRAG._build_global_config", []),
        ("LightRAG._insert_done", None),
        (
            "LightRAG._process_extract_entities",
            ["chunk", "pipeline_status", "pipeline_status_lock", "truncation_tally"],
        ),
        ("PostgreSQLDB._before_sleep", ["retry_state"]),
        ("PostgreSQLDB._create_vector_index", ["table_name", "embedding_dim"]),
        ("PostgreSQLDB._ensure_pool", []),
        ("PostgreSQLDB._reset_pool", []),
        ("PostgreSQLDB._run_with_retry", ["operation", "with_age", "graph_name", "timing_label"]),
        ("PGVectorStorage._upsert_chunks", ["item", "current_time"]),
        ("PGVectorStorage._upsert_entities", ["item", "current_time"]),
        ("PGVectorStorage._upsert_relationships", ["item", "current_time"]),
        ("PGDocStatusStorage._pg_scheduling_record_from_row", ["row", "strict"]),
        ("PGDocStatusStorage._pg_doc_processing_status_from_row", ["element"]),
        ("PGDocStatusStorage._format_datetime_with_timezone", ["dt"]),
        ("_parse_doc_status_datetime", ["dt_str", "context"]),
    ],
)
def test_private_call_is_still_called_like_this(path: str, parameters: list[str] | None) -> None:
    (entry,) = [entry for entry in PRIVATE_NAMES if entry[1] == path]
    found = _parameters(getattr(*_owner_and_name(*entry[:2])))
    # None: every parameter of it has a default.
    assert parameters is None or found == parameters


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("_DOC_STATUS_JSON_COLUMNS", {"chunks_list", "metadata"}),
        ("_DOC_STATUS_DATETIME_COLUMNS", {"created_at", "updated_at"}),
        (
            "_DOC_STATUS_UPDATABLE_COLUMNS",
            {"content_summary", "content_length", "chunks_count", "status", "file_path", "chunks_list", "track_id"}
            | {"metadata", "error_msg", "content_hash", "updated_at"},
        ),
    ],
)
def test_private_constant_still_says_this(name: str, members: set[str]) -> None:
    assert set(getattr(postgres_impl, name)) == members


def test_no_private_name_is_used_beside_the_list() -> None:
    listed = {path.split(".")[-1] for _, path, _ in PRIVATE_NAMES}
    package = Path(private_names.__file__).parent
    trees = {source: ast.parse(source.read_text()) for source in package.rglob("*.py")}
    own = set().union(*map(_own_names, trees.values()))
    for source, tree in trees.items():
        assert _private_names(tree) - own <= listed, source.name


def _own_names(tree: ast.Module) -> set[str]:
    """Names that our code defines: functions, fields, and attributes that it sets on itself."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id == "self" else set()
    return found


def _private_names(tree: ast.Module) -> set[str]:
    """Private attributes that are read, and private names that are imported from LightRAG."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lightrag"):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def test_upsert_of_a_status_is_the_one_in_lightrag() -> None:
    # LightRAG has no template for it.
    source = inspect.getsource(postgres_impl.PGDocStatusStorage.upsert)
    assert "".join(UPSERT.split()) in "".join(source.split())


def test_flush_lock_is_still_made_on_first_use() -> None:
    assert "self._flush_lock = None" in inspect.getsource(postgres_impl.PGVectorStorage.__post_init__)
    assert "self._flush_lock = get_namespace_lock(" in inspect.getsource(postgres_impl.PGVectorStorage.initialize)
