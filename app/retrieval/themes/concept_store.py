"""The SQL that lists the concepts of a map: the most central first, or those that look like what is searched for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from app.retrieval.themes.reading_store import KINDS, Usable

# Of what is read of a concept's postings to count its passages and to see how one of them writes it.
MAX_POSTINGS: Final = 5000

_CONCEPTS = """
WITH {trusted}, page AS MATERIALIZED (
  SELECT c.key, c.kind, c.theme_id, c.degree, c.pagerank
    FROM theme_concepts c
   WHERE c.tenant_id = :tenant_id AND c.map_id = :map_id AND c.pagerank IS NOT NULL
     AND (CAST(:pattern AS text) IS NULL OR c.key = ANY (CAST(:keys AS bigint[])) OR c.surface ILIKE :pattern)
     AND (CAST(:rank AS float8) IS NULL OR (c.pagerank, c.key) < (CAST(:rank AS float8), CAST(:key AS bigint)))
   ORDER BY c.pagerank DESC, c.key DESC LIMIT :wanted
)
SELECT page.key, page.kind, page.theme_id, page.degree, page.pagerank, count(held.version_id) AS passages,
       (array_agg(held.passage_id ORDER BY held.passage_id) FILTER (WHERE held.version_id IS NOT NULL))[1] AS shown
  FROM page
  LEFT JOIN LATERAL (
    SELECT t.passage_id, trusted.version_id
      FROM (SELECT t.passage_id FROM concept_postings t
             WHERE t.workspace = :workspace AND t.key = page.key LIMIT :max_postings) t
     CROSS JOIN LATERAL (SELECT p.version_id FROM passages p
                          WHERE p.tenant_id = :tenant_id AND p.id = t.passage_id OFFSET 0) p
      JOIN trusted ON trusted.version_id = p.version_id
  ) held ON true
 GROUP BY page.key, page.kind, page.theme_id, page.degree, page.pagerank
 ORDER BY page.pagerank DESC, page.key DESC
"""

_SURFACES = """
WITH {trusted}
SELECT asked.key, l.surfaces[array_position(l.keys, asked.key)] AS surface
  FROM unnest(CAST(:keys AS bigint[]), CAST(:ids AS bigint[])) asked (key, passage_id)
  JOIN lazy_passages l ON l.workspace = :workspace AND l.passage_id = asked.passage_id
"""


@dataclass(frozen=True)
class RankedConcept:
    """A concept of the graph. `degree` and `pagerank` are those of when the map was made, `passages` that may be used now."""

    key: int
    label: str
    kind: Literal["name", "number", "word"]
    theme_id: UUID
    passages: int
    degree: int
    pagerank: float


@dataclass(frozen=True)
class ConceptSearch:
    """What concepts are looked for; `keys` are those of what the text names. Both empty: all."""

    text: str = ""
    keys: tuple[int, ...] = ()

    @property
    def pattern(self) -> str | None:
        if not self.text:
            return None
        escaped = self.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"%{escaped}%"


ConceptPosition = tuple[float, int]
"""Where a page of a list ends: PageRank and key of its last concept."""


async def list_concepts(
    usable: Usable, search: ConceptSearch, after: ConceptPosition | None, limit: int
) -> tuple[Sequence[RankedConcept], ConceptPosition | None]:
    """At most `limit` concepts that a usable passage holds, as one of these writes them, and where the list goes on."""
    rank, key = after if after is not None else (None, None)
    rows = await usable.rows(
        _CONCEPTS,
        workspace=usable.ref.number,
        pattern=search.pattern,
        keys=list(search.keys),
        rank=rank,
        key=key,
        wanted=limit + 1,
        max_postings=MAX_POSTINGS,
    )
    page, rest = rows[:limit], rows[limit:]
    told = [row for row in page if row.passages]
    surfaces = await usable.rows(
        _SURFACES,
        workspace=usable.ref.number,
        keys=[row.key for row in told],
        ids=[row.shown for row in told],
    )
    names = {row.key: row.surface for row in surfaces}
    found = [
        RankedConcept(row.key, names[row.key], KINDS[row.kind], row.theme_id, row.passages, row.degree, row.pagerank)
        for row in told
        if names.get(row.key)
    ]
    return found, (page[-1].pagerank, page[-1].key) if rest else None
