"""Entities of a workspace's graph: browsing, aliases, merges and what undoes them, edits."""

from app.retrieval.lightrag.entities.aliasing import EntityAliasing
from app.retrieval.lightrag.entities.undoing import EntityUndoing


class GraphEntities(EntityUndoing, EntityAliasing):
    """`Entities` over LightRAG, one base class a feature."""
