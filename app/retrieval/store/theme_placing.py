"""How passages that come and go find and leave their themes, as SQL for the statements that write and remove an index.

A map of themes is replaced while documents are written. Both sides take one advisory lock of the workspace: writers share
it, who puts a new map live has it alone. It is taken by a statement before the one that reads the map, for a statement
sees what was committed when it began.
"""

from typing import Final

THEMES_LOCK: Final = 1_953_000_813
"""The class of the lock; beside it stands the workspace's number."""

# A subquery with a volatile function is neither flattened nor left out.
SHARED_LOCK: Final = f"(SELECT pg_advisory_xact_lock_shared({THEMES_LOCK}, :workspace) OFFSET 0) held"
SOLE_LOCK: Final = f"SELECT pg_advisory_xact_lock({THEMES_LOCK}, :workspace)"

FORGET_LOCK: Final = 1_953_000_814
SHARE: Final = f"SELECT pg_advisory_xact_lock_shared({THEMES_LOCK}, :workspace)"

READY_MAP: Final = """
  SELECT m.tenant_id, m.id FROM theme_maps m
   WHERE m.tenant_id = :tenant_id AND m.workspace_id = :workspace_id AND m.state = 'ready'"""

# Where there are themes removers take turns, each to the end of its transaction: of two at once neither would see that the
# other takes the last but its own passage of a concept away. Taken after SHARE, and before any row.
TAKE_TURNS: Final = f"SELECT pg_advisory_xact_lock({FORGET_LOCK}, :workspace) FROM ({READY_MAP}) ready"  # noqa: S608


def placing(passages: str) -> str:
    """An INSERT of the passages of `passages` (a FROM item with tenant_id, id, version_id, document_id) into the leaf that
    their concepts weigh most in, as `app.retrieval.themes.placement` has it; none where there is no map. Looked up row by row,
    for a plan that is kept for any tenant would begin with all that a large one has."""
    return f"""
  INSERT INTO theme_passages (tenant_id, map_id, passage_id, theme_id, version_id, document_id, weight, is_placed)
  SELECT DISTINCT ON (found.passage_id) found.tenant_id, found.map_id, found.passage_id, found.theme_id,
         found.version_id, found.document_id, found.weight, true
    FROM (
      SELECT ready.tenant_id, ready.id AS map_id, p.id AS passage_id, c.theme_id, p.version_id, p.document_id,
             sum(c.weight) AS weight
        FROM ({READY_MAP}) ready
       CROSS JOIN LATERAL (SELECT * FROM {passages} OFFSET 0) p
       CROSS JOIN LATERAL (
         SELECT l.keys FROM lazy_passages l WHERE l.workspace = :workspace AND l.passage_id = p.id OFFSET 0
       ) l
       CROSS JOIN LATERAL unnest(l.keys) AS held (key)
       CROSS JOIN LATERAL (
         SELECT c.theme_id, c.weight FROM theme_concepts c
          WHERE c.tenant_id = ready.tenant_id AND c.map_id = ready.id AND c.key = held.key AND c.weight IS NOT NULL
         OFFSET 0
       ) c
       GROUP BY ready.tenant_id, ready.id, p.id, c.theme_id, p.version_id, p.document_id
    ) found
   ORDER BY found.passage_id, found.weight DESC, found.theme_id
  ON CONFLICT DO NOTHING"""  # noqa: S608 - put together from constants of ours


# For a statement that has `gone` (passage_id, keys) of the version that is removed. What no other passage holds is text of
# that version alone, and goes from the themes with it.
FORGETTING: Final = f"""
ready AS ({READY_MAP}
), placed AS (
  DELETE FROM theme_passages t USING ready
   WHERE t.tenant_id = ready.tenant_id AND t.map_id = ready.id AND t.version_id = :version_id
), unheard AS (
  DELETE FROM theme_concepts c USING ready, (SELECT DISTINCT unnest(keys) AS key FROM gone) g
   WHERE c.tenant_id = ready.tenant_id AND c.map_id = ready.id AND c.key = g.key
     AND (SELECT p.passage_id FROM concept_postings p
           WHERE p.workspace = :workspace AND p.key = c.key AND p.passage_id NOT IN (SELECT passage_id FROM gone)
           LIMIT 1) IS NULL
)"""  # noqa: S608
