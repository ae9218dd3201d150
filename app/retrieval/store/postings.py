"""Full text search by BM25 over our own term postings, which need no extension and no language setting.

BM25 as Robertson and Zaragoza give it ("The Probabilistic Relevance Framework", 2009, section 3), with the never
negative idf of Lucene. Which terms a text has is decided in `app/text/concepts/terms.py`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
from sqlalchemy import TextClause, text

from app.db.session import TenantSession
from app.db.statements import as_array
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.allowed import Allowed, allowed_parameters, within
from app.retrieval.store.hits import Hit, ranking
from app.retrieval.store.trust import judged_passage, trust_parameters
from app.text.concepts.extraction import concept_key
from app.text.concepts.terms import terms, terms_of
from app.text.concepts.words import Token

# Measured on nine sets: a little better than the usual 1.2 and 0.75 on English multi-hop ones, equal elsewhere.
K1 = 0.9
B = 0.4
# A long question is cut to its most repeated terms.
MAX_QUERY_TERMS = 64
# How many postings one question may read: its rarest terms come first, and what is left out hardly tells passages apart.
POSTING_BUDGET = 4000
# Of a term that was added to a question, beside 1 for its own.
ADDED_WEIGHT = 0.3
_MAX_SMALLINT = 32767

# As text, for the driver takes longer for each element of an array than for all of a string.
_WRITE = text("""
INSERT INTO term_postings (workspace, key, passage_id, frequency, length)
SELECT :workspace, posting.key, given.passage_id, posting.frequency, given.length
  FROM unnest(CAST(:ids AS bigint[]), CAST(:lengths AS smallint[]), CAST(:keys AS text[]), CAST(:frequencies AS text[]))
       AS given (passage_id, length, keys, frequencies)
 CROSS JOIN LATERAL unnest(CAST(given.keys AS bigint[]), CAST(given.frequencies AS smallint[])) AS posting (key, frequency)
 ORDER BY posting.key, given.passage_id
""")

# OFFSET 0 keeps each term's postings one range of the primary key, read without touching the table. What a term tells is
# counted over the corpus (df), what it costs over the passages that a filter allows.
_SEARCH = f"""
WITH size AS (
  SELECT GREATEST(sum(passages), 1) AS passages, GREATEST(sum(terms) / GREATEST(sum(passages), 1), 1) AS length,
         COALESCE(sum(terms), 0)::bigint AS terms
    FROM lazy_versions WHERE workspace = :workspace
), probed AS MATERIALIZED (
  SELECT asked.key, asked.weight, probe.df, READ AS read
    FROM unnest(CAST(:keys AS bigint[]), CAST(:weights AS float8[])) asked (key, weight)
   CROSS JOIN LATERAL (
     SELECT count(*) AS df
       FROM (SELECT 1 FROM term_postings t WHERE t.workspace = :workspace AND t.key = asked.key LIMIT :budget + 1) few
   ) probe
), chosen AS MATERIALIZED (
  SELECT key, weight, ln(1 + GREATEST(size.passages - df + 0.5, 0.5) / (df + 0.5))::float8 AS idf, size.length::float8 AS average
    FROM (SELECT key, weight, df, sum(read) OVER (ORDER BY df, key) AS total,
                 row_number() OVER (ORDER BY df, key) AS position
            FROM probed WHERE read > 0) ordered, size
   WHERE total <= :budget OR position = 1
), scored AS MATERIALIZED (
  SELECT posting.passage_id, COALESCE(sum(chosen.idf) FILTER (WHERE chosen.weight = 1), 0) AS mass,
         sum(chosen.weight * chosen.idf * posting.frequency * (CAST(:k1 AS float8) + 1)
             / (posting.frequency + CAST(:k1 AS float8)
                * (1 - CAST(:b AS float8) + CAST(:b AS float8) * posting.length / chosen.average))) AS score
    FROM chosen
   CROSS JOIN LATERAL (SELECT t.passage_id, t.frequency, t.length FROM term_postings t
                        WHERE t.workspace = :workspace AND t.key = chosen.key
                               WITHIN(t.passage_id) OFFSET 0) posting
   GROUP BY posting.passage_id
   ORDER BY score DESC, posting.passage_id LIMIT :wanted
)
SELECT found.*, hit.*
  FROM (SELECT (SELECT count(*) FROM scored) AS seen, (SELECT passages FROM size)::bigint AS corpus,
               (SELECT terms FROM size) AS terms,
               ARRAY(SELECT key FROM probed ORDER BY key) AS keys, ARRAY(SELECT df FROM probed ORDER BY key) AS dfs,
               ARRAY(SELECT read FROM probed ORDER BY key) AS reads,
               ARRAY(SELECT key FROM chosen ORDER BY key) AS used) found
  LEFT JOIN (
    SELECT scored.passage_id, scored.score, scored.mass, source.reason
      FROM scored {judged_passage("scored.passage_id")}
  ) hit ON true
 ORDER BY hit.score DESC, hit.passage_id
"""  # noqa: S608 - put together from constants of ours

_READ_OF_ALLOWED = """
  (SELECT count(*) FROM (SELECT 1 FROM term_postings t WHERE t.workspace = :workspace AND t.key = asked.key
                                   WITHIN(t.passage_id) LIMIT :budget + 1) few)"""


@cache
def _search(*, is_narrowed: bool) -> TextClause:
    read = _READ_OF_ALLOWED if is_narrowed else "probe.df"
    return text(within(_SEARCH.replace("READ AS read", f"{read} AS read"), is_narrowed=is_narrowed))


@dataclass(frozen=True)
class TermCounts:
    """The terms of one passage."""

    counts: Mapping[str, int]
    length: int  # with repetitions
    keys: tuple[int, ...]  # distinct, in the order of `counts`


@dataclass(frozen=True)
class LexicalResult:
    """Passages by BM25, and what is known of the question's terms.

    `idf` holds every distinct term of the question; one that no passage has weighs most, and of one that is in more
    than `POSTING_BUDGET` passages the frequency is taken to be a tenth of the corpus. `coverage` is the part of the
    terms' weight that the best passage holds (terms too common to be read left out).
    """

    hits: tuple[Hit, ...] = ()
    coverage: float = 0.0
    corpus_passages: int = 0
    corpus_terms: int = 0  # repeated ones counted
    idf: Mapping[str, float] = field(default_factory=dict)
    withheld: Mapping[int, tuple[int, str]] = field(default_factory=dict)  # as of a `Ranking`
    read: frozenset[int] = frozenset()  # keys of the terms that were looked for, but for those too common to be read


def count_terms(title: str, heading_path: Sequence[str], passage: Iterable[Token]) -> TermCounts:
    """The terms of a passage, with those of the title and headings it stands under counted once more."""
    counts = Counter(terms_of(passage))
    counts.update(_terms_above((title, *heading_path)))
    return TermCounts(counts, counts.total(), tuple(map(concept_key, counts)))


@lru_cache(maxsize=1024)
def _terms_above(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(terms(" \n ".join(lines))))


async def write_postings(session: TenantSession, ref: WorkspaceRef, passages: Mapping[int, TermCounts]) -> None:
    """Store the terms of passages by passage id, in the order of the primary key."""
    parameters = {
        "workspace": ref.number,
        "ids": list(passages),
        "lengths": [min(found.length, _MAX_SMALLINT) for found in passages.values()],
        "keys": [as_array(found.keys) for found in passages.values()],
        "frequencies": [
            as_array([min(count, _MAX_SMALLINT) for count in found.counts.values()]) for found in passages.values()
        ],
    }
    await session.execute(_WRITE, parameters)


async def search_terms(
    session: TenantSession,
    ref: WorkspaceRef,
    query: str,
    limit: int,
    *,
    added: Sequence[str] = (),
    include_partial: bool = False,
    allowed: Allowed | None = None,
) -> LexicalResult:
    """The passages of trusted versions that share terms with `query`, best first; of those `allowed`, if any are given.

    Terms of `added` that are not the question's count by `ADDED_WEIGHT`, and in nothing but the order of the passages.
    """
    asked = [term for term, _ in Counter(terms(query)).most_common(MAX_QUERY_TERMS)]
    key_of = {term: concept_key(term) for term in asked}
    weights = dict.fromkeys(map(concept_key, terms(" \n ".join(added))[:MAX_QUERY_TERMS]), ADDED_WEIGHT)
    weights |= dict.fromkeys(key_of.values(), 1.0)
    wanted = limit + limit // 4
    statement = _search(is_narrowed=allowed is not None)
    while True:
        parameters = {
            "tenant_id": ref.tenant_id,
            "workspace": ref.number,
            "keys": sorted(weights),
            "weights": [weights[key] for key in sorted(weights)],
            "budget": POSTING_BUDGET,
            "k1": K1,
            "b": B,
            "wanted": wanted,
            **allowed_parameters(allowed),
            **trust_parameters("lazy", include_partial=include_partial),
        }
        rows = (await session.execute(statement, parameters)).all()
        found = ranking([(row.passage_id, row.score, row.reason) for row in rows if row.passage_id is not None], limit)
        # Untrusted versions are left out after ranking; where they crowd the others out, look further down.
        if len(found.hits) == limit or rows[0].seen < wanted:
            break
        wanted *= 4
    head = rows[0]
    df, read = dict(zip(head.keys, head.dfs, strict=True)), dict(zip(head.keys, head.reads, strict=True))
    idf = {term: term_weight(df[key], head.corpus) for term, key in key_of.items()}
    used = set(head.used)
    mass = sum(weight for term, weight in idf.items() if key_of[term] in used or read[key_of[term]] == 0)
    held = {row.passage_id: row.mass for row in rows}
    return LexicalResult(
        hits=found.hits,
        withheld=found.withheld,
        coverage=held[found.hits[0].passage_id] / mass if found.hits and mass else 0.0,
        corpus_passages=head.corpus,
        corpus_terms=head.terms,
        idf=idf,
        read=frozenset(key for key in df if key in used or read[key] == 0),
    )


def term_weight(df: int, corpus_passages: int) -> float:
    """The idf of a term in `df` of `corpus_passages` passages."""
    known = df if df <= POSTING_BUDGET else max(df, corpus_passages // 10)
    return float(np.log1p(max(corpus_passages - known + 0.5, 0.5) / (known + 0.5)))
