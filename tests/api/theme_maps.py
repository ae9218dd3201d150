"""Makes a map of themes by hand, so that a test knows what is in which theme."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select

from app.db.base import WorkspaceId
from app.db.models import LazyPassage, Passage, Theme, ThemeConcept, ThemeMap, ThemePassage, Workspace
from app.db.session import TenantSession
from tests.factories import Tenancy

PARTS = {"size": 0.5, "distinctiveness": 0.5, "coverage": 0.5, "entropy": 0.5, "density": 0.5, "product": 1.0}


async def add_map(
    tenancy: Tenancy, workspace_id: WorkspaceId, leaves: Sequence[Sequence[Any]], **columns: Any
) -> list[UUID]:
    """A map of two levels: the first two leaves are one theme above, every other leaf stands for itself on both.

    `leaves` are documents, as uploaded and indexed. Importance falls from leaf to leaf. Returns the theme above and then
    the leaves.
    """
    ids = [uuid4() for _ in range(len(leaves) + 1)]
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        number = (await session.get_one(Workspace, (tenancy.tenant_id, workspace_id))).number
        held = await _held(session, tenancy, number, leaves)
        total = sum(len(passages) for passages in held)
        made = ThemeMap(
            id=uuid4(),
            tenant_id=tenancy.tenant_id,
            **{
                "workspace_id": workspace_id, "state": "ready", "levels": 2, "leaves": len(leaves), "passages": total,
                "used_passages": total, "assigned": total, "finished_at": datetime.now(UTC), **columns,
            },
        )  # fmt: skip
        session.add(made)
        await session.flush()
        scope = {"tenant_id": tenancy.tenant_id, "map_id": made.id}
        themes: list[tuple[UUID, int, int, UUID | None, int, int, Any, float]] = [
            (ids[0], 0, 0, None, 0, 1, held[0] + held[1], 0.9)
        ]
        for leaf, passages in enumerate(held):
            level, parent = (1, ids[0]) if leaf < 2 else (0, None)
            themes.append((ids[leaf + 1], level, 1, parent, leaf, leaf, passages, 0.8 - leaf / 10))
        everywhere = Counter(key for passages in held for _, row in passages for key in row.keys)
        members: set[int] = set()
        for place, (theme_id, level, last, parent, first, until, passages, importance) in enumerate(themes):
            session.add(
                Theme(
                    **scope, id=theme_id, level=level, last_level=last, number=place, parent_id=parent,
                    first_leaf=first, last_leaf=until, passages=len(passages),
                    documents=len({passage.document_id for passage, _ in passages}), importance=importance, **PARTS,
                )
            )  # fmt: skip
            concepts = _concepts(scope, theme_id, passages, everywhere, total)
            # Those of leaves are members, each of one.
            for concept in [found for found in concepts if place and found.key not in members]:
                concept.weight, concept.degree, concept.pagerank = 1.0, concept.df, concept.df / 100
                members.add(concept.key)
            session.add_all(concepts)
        for leaf, passages in enumerate(held):
            for passage, row in passages:
                session.add(
                    ThemePassage(
                        **scope, passage_id=passage.id, theme_id=ids[leaf + 1], version_id=passage.version_id,
                        document_id=passage.document_id, weight=float(len(row.keys)), is_placed=False,
                    )
                )  # fmt: skip
    return ids


async def _held(
    session: TenantSession, tenancy: Tenancy, number: int, leaves: Sequence[Sequence[Any]]
) -> list[list[tuple[Passage, LazyPassage]]]:
    held = []
    for documents in leaves:
        versions = [UUID(document["version"]["id"]) for document in documents]
        query = (
            select(Passage, LazyPassage)
            .join(LazyPassage, LazyPassage.passage_id == Passage.id)
            .where(
                Passage.tenant_id == tenancy.tenant_id,
                Passage.version_id.in_(versions),
                LazyPassage.workspace == number,
            )
            .order_by(Passage.id)
        )
        held.append([(passage, row) for passage, row in await session.execute(query)])
    return held


def _concepts(
    scope: dict[str, Any],
    theme_id: UUID,
    passages: Sequence[tuple[Passage, LazyPassage]],
    everywhere: Counter[int],
    total: int,
) -> list[ThemeConcept]:
    here = Counter(key for _, row in passages for key in row.keys)
    surfaces = {key: surface for _, row in passages for key, surface in zip(row.keys, row.surfaces, strict=True)}
    kinds = {key: flags & 3 for _, row in passages for key, flags in zip(row.keys, row.flags, strict=True)}
    lifts = {key: (df / len(passages)) / (everywhere[key] / total) * math.log1p(df) for key, df in here.items()}
    ordered = sorted(here, key=lambda key: (kinds[key], -lifts[key], surfaces[key]))
    return [
        ThemeConcept(
            **scope, theme_id=theme_id, key=key, kind=kinds[key], df=here[key], corpus_df=everywhere[key],
            lift=lifts[key], rank=rank, weight=None, surface=surfaces[key], label_rank=rank if rank < 6 else None,
        )
        for rank, key in enumerate(ordered)
    ]  # fmt: skip
