"""Statements about names that may go with a version: who holds them in records, who else says them, and forgetting."""

import re
import string
import unicodedata
from collections.abc import Iterable, Sequence

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase

_HAS_RECORDS = "SELECT has_entity_records($1) AS found"
_RECORDED = "SELECT recorded_entity_names($1, $2) AS name"
_FORGET = "SELECT forget_entity_names($1, $2, $3, $4)"

# The answers about a version, and about text that it shares with others.
_ANSWERS = """
SELECT k.return_value AS answer FROM lightrag_llm_cache k
 WHERE k.workspace = $1 AND k.cache_type = 'extract'
   AND (k.chunk_id LIKE $2 || '-chunk-%' OR k.id IN (
         SELECT used.key FROM lightrag_doc_chunks c CROSS JOIN LATERAL jsonb_array_elements_text(c.llm_cache_list) used (key)
          WHERE c.workspace = $1 AND c.full_doc_id = $2))"""
_PARTS = (
    "SELECT DISTINCT target FROM entity_splits WHERE tenant_id = $1 AND workspace_id = $2 AND version_id = $3::uuid"
)
# A bounded number of other answers, with those that may give one of these names.
_OTHERS = """
SELECT id, CASE WHEN NOT coalesce(chunk_id LIKE $2 || '-chunk-%', false) AND normalize(return_value, NFKC) ~* ANY ($3::text[])
                THEN return_value END AS answer
  FROM (SELECT id, chunk_id, return_value FROM lightrag_llm_cache
         WHERE workspace = $1 AND cache_type = 'extract' AND id > $4 ORDER BY id LIMIT $5) page
 ORDER BY id"""
_OWN = """
SELECT w.name FROM unnest($3::text[], $4::bytea[]) AS w (name, key)
 WHERE EXISTS (SELECT 1 FROM entity_aliases a
                WHERE a.tenant_id = $1 AND a.workspace_id = $2 AND a.source = 'manual' AND w.key IN (a.key, a.target_key))
    OR EXISTS (SELECT 1 FROM entity_changes c CROSS JOIN LATERAL unnest(c.names) n
                WHERE c.tenant_id = $1 AND c.workspace_id = $2 AND c.kind = 'create_entity' AND lower(n) = lower(w.name))"""


# Answers of a model are some KB each.
PAGE_ANSWERS = 200
# Postgres keeps few compiled expressions; one of too many names is slow.
NAMES_OF_PATTERN = 50
LOOKED_AT = 60

_ALNUM = frozenset(string.ascii_letters + string.digits)
_RUNS = re.compile(r"[A-Za-z0-9]+|[^\W_]")
# What is no letter or digit, HTML's entities and tags, and JSON's escapes.
_BETWEEN = r"(?:[^a-z0-9]|&#?[a-z0-9]+;|</?[a-z]+|\\[nrt])*"
_START = r"(?:^|[^a-z0-9]|\\[nrt])"
_END = r"(?:[^a-z0-9]|$)"


class DepartureStore:
    """Of one version of a workspace's graph. Runs inside the workspace's fence."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef, version_id: str) -> None:
        self._database = database
        self._ref = ref
        self._version_id = version_id

    async def has_records(self) -> bool:
        """Whether anything of people's in the workspace could hold a name."""
        return bool((await self._database.fetch(_HAS_RECORDS, self._ref.workspace_id))[0]["found"])

    async def answers(self) -> Sequence[str]:
        """What the model said of the version."""
        rows = await self._database.fetch(_ANSWERS, self._ref.engine_name, self._version_id)
        return [row["answer"] for row in rows]

    async def parts(self) -> set[str]:
        """What parts of the version mean by a split."""
        rows = await self._database.fetch(_PARTS, self._ref.tenant_id, self._ref.workspace_id, self._version_id)
        return {row["target"] for row in rows}

    async def recorded(self, names: Sequence[str]) -> list[str]:
        """Those of these names that records hold."""
        return [row["name"] for row in await self._database.fetch(_RECORDED, self._ref.workspace_id, list(names))]

    async def own(self, names: Sequence[str]) -> set[str]:
        """Those of these names that are people's own."""
        keys = [entity_key(name) for name in names]
        rows = await self._database.fetch(_OWN, self._ref.tenant_id, self._ref.workspace_id, list(names), keys)
        return {row["name"] for row in rows}

    async def other_answers(self, names: Sequence[str], after: str) -> tuple[Sequence[str], str | None]:
        """Of some answers about other versions, from the first after id `after`, those that may give one of these names;
        and the id to go on after, None at the end."""
        patterns = [words_pattern(names[at : at + NAMES_OF_PATTERN]) for at in range(0, len(names), NAMES_OF_PATTERN)]
        of_others = self._ref.engine_name, self._version_id, patterns, after, PAGE_ANSWERS
        rows = await self._database.fetch(_OTHERS, *of_others)
        answers = [row["answer"] for row in rows if row["answer"] is not None]
        return answers, rows[-1]["id"] if len(rows) == PAGE_ANSWERS else None

    def forgetting(self, names: Sequence[str], spoken_of: Sequence[str] = ()) -> Statement:
        """No record holds `names` any more, nor what was said of the entities `spoken_of`."""
        keys = [entity_key(name) for name in names]
        return Statement(_FORGET, (self._ref.workspace_id, list(names), keys, list(spoken_of)))


def words_pattern(names: Iterable[str]) -> str:
    """A regular expression of Postgres, regardless of case, for text in NFKC that may give one of these names as words of
    its own: their letters and digits in order, whatever a model has put between them."""
    return f"(?:{'|'.join(map(_words, names))})"


def _words(name: str) -> str:
    # Of a long one the beginning: the engine may have cut it.
    plain = unicodedata.normalize("NFKC", name)
    runs = _RUNS.findall(plain[:LOOKED_AT]) or [re.escape(plain[:LOOKED_AT])]
    start = _START if runs[0][0] in _ALNUM else ""
    end = _END if runs[-1][-1] in _ALNUM and len(plain) <= LOOKED_AT else ""
    return start + _BETWEEN.join(runs) + end
