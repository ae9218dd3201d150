"""The legs that rank themes for a question, made from those that rank passages."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from app.providers.contract import Vectors
from app.retrieval.deadline import leg
from app.retrieval.lazy.parameters import LEG_SIZE
from app.retrieval.lazy.ranking import Legs, fuse
from app.retrieval.store.hits import Ranking
from app.retrieval.store.postings import ADDED_WEIGHT, LexicalResult, search_terms
from app.retrieval.store.vectors import PassageVectors
from app.retrieval.themes.answer import Asked
from app.retrieval.themes.levels import UsableTree
from app.retrieval.themes.ranking import LegScores, TermUse, cover, near, tf_idf, words_weight
from app.retrieval.themes.reading_store import Membership, load_term_uses
from app.text.concepts.extraction import concept_key
from app.text.concepts.terms import terms


async def passage_legs(opened: Asked, query: Vectors | None) -> Legs:
    """Passages by their words and by their vectors; without `query` the latter are left out."""
    workspace, request, session = opened.workspace, opened.request, opened.usable.session
    allowed, partial = opened.usable.allowed, request.include_partial

    async def words() -> LexicalResult:
        added = request.added_terms
        return await search_terms(
            session, workspace.ref, request.query, LEG_SIZE, added=added, include_partial=partial, allowed=allowed
        )

    async def nearest(vector: Vectors) -> Ranking:
        rows = opened.tree.row.passages
        return await PassageVectors(workspace.vector_suffix).nearest(
            session, workspace.ref, vector, LEG_SIZE, rows=rows, include_partial=partial, allowed=allowed
        )

    with opened.clock.stage("terms"):
        lexical = await leg("bm25", words, LexicalResult(), session=session)
    with opened.clock.stage("vectors"):
        nothing = Ranking()
        dense = nothing if query is None else await leg("vectors", lambda: nearest(query), nothing, session=session)
    return fuse(lexical, dense)


async def theme_legs(
    opened: Asked, legs: Legs, memberships: Mapping[int, Membership], owners: Mapping[UUID, UUID]
) -> LegScores:
    """Words that were added to the question count in TF-IDF only, by `ADDED_WEIGHT`, as they do for passages."""
    idf = {term: weight for term, weight in legs.lexical.idf.items() if concept_key(term) in legs.lexical.read}
    added = set(terms(" \n ".join(opened.request.added_terms))) - set(idf)
    weights = {**dict.fromkeys(idf, 1.0), **dict.fromkeys(added, ADDED_WEIGHT)}
    keys = {key: term for term in weights if (key := concept_key(term)) in legs.lexical.read}

    async def load() -> dict[UUID, dict[str, TermUse]]:
        return await load_term_uses(opened.usable, keys)

    uses: dict[UUID, dict[str, TermUse]] | None = {}
    if keys and legs.lexical.hits:
        uses = await leg("words", load, None, session=opened.usable.session)
    homes = ((memberships.get(hit.passage_id), hit.score) for hit in legs.dense.hits)
    cosines = [(owners[home.leaf_id], cosine) for home, cosine in homes if home is not None and home.leaf_id in owners]
    if uses is None:
        return LegScores(coverage=None, vectors=near(cosines), tf_idf=None, words=0.0)
    by_theme = _gathered(uses, owners)
    coverage = cover(by_theme, idf)
    return LegScores(
        coverage=coverage,
        vectors=near(cosines),
        tf_idf=tf_idf(by_theme, weights, _lengths(opened.tree, owners), len(set(owners.values()))),
        words=words_weight(coverage),
    )


def _gathered(
    uses: Mapping[UUID, Mapping[str, TermUse]], owners: Mapping[UUID, UUID]
) -> dict[UUID, dict[str, TermUse]]:
    """The uses of leaves as those of the themes that hold them."""
    gathered: dict[UUID, dict[str, TermUse]] = {}
    for leaf, used in uses.items():
        if (owner := owners.get(leaf)) is None:
            continue
        there = gathered.setdefault(owner, {})
        for term, use in used.items():
            before = there.get(term, TermUse(0, 0))
            there[term] = TermUse(before.frequency + use.frequency, before.passages + use.passages)
    return gathered


def _lengths(tree: UsableTree, owners: Mapping[UUID, UUID]) -> dict[UUID, int]:
    """Passages of each theme."""
    lengths: Counter[UUID] = Counter()
    for leaf, owner in owners.items():
        if leaf in tree.counts:
            lengths[owner] += tree.counts[leaf].passages
    return dict(lengths)
