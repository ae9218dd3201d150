"""Entities of a workspace's graph: browsing, aliases, merges and what undoes them, edits."""

from app.retrieval.lightrag.entities.aliasing import EntityAliasing
from app.retrieval.lightrag.entities.finding import EntityFinding
from app.retrieval.lightrag.entities.mending import EntityMending
from app.retrieval.lightrag.entities.relating import RelationEditing
from app.retrieval.lightrag.entities.restoring import EntityRestoring
from app.retrieval.lightrag.entities.splitting import EntitySplitting


class GraphEntities(EntitySplitting, RelationEditing, EntityFinding, EntityMending, EntityRestoring, EntityAliasing):
    """`Entities`, `EntityEditor`, `EntityGraph` and `GraphCheck` over LightRAG, one base class a feature."""
