"""The walk from seeds over concepts to passages, as arithmetic on hand-made postings."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from app.retrieval.lazy.parameters import DF_POWER, FLAVOURS, LEAD_BONUS, SEED_POWER, TITLE_BONUS
from app.retrieval.lazy.selection import select_mentions
from app.retrieval.lazy.store import Postings, SeedPassage
from app.retrieval.lazy.traversal import (
    Question,
    Walk,
    activate,
    choose,
    expand,
    next_front,
    rarity,
    seed_weights,
)  # fmt: skip
from app.text.concepts.extraction import concept_key, query_concepts
from app.text.concepts.terms import terms
from app.text.concepts.words import sentences

BALANCED = FLAVOURS["lazy-balanced"]
PLAIN = 0
TITLE = select_mentions("Paris", (), [])[0].flags
LEAD = next(m.flags for m in select_mentions("", (), sentences("Paris Hilton sings.")) if m.surface == "Paris Hilton")


def seed(passage_id: int, title: str, text: str) -> SeedPassage:
    mentions = tuple(select_mentions(title, (), sentences(text)))
    return SeedPassage(passage_id, mentions, title, (), text)


def ask(query: str) -> Question:
    return Question(dict.fromkeys(terms(query), 1.0), frozenset(concept.key for concept in query_concepts(query)))


FILM = seed(1, "Dark Water", "Dark Water was directed by Hideo Nakata. It was shot in Tokyo.")


def test_concepts_beside_the_words_of_the_question_are_strongest() -> None:
    found = activate(ask("Who directed the film Dark Water?"), [FILM], {1: 1.0}, BALANCED)
    strength = {activation.surface: activation.strongest for activation in found}
    assert strength["Hideo Nakata"] > strength["Tokyo"] > 0
    assert strength["Hideo Nakata"] > strength["Dark Water"]
    assert found[0].surface == "Hideo Nakata"


def test_a_smaller_budget_reads_fewer_concepts_of_a_passage() -> None:
    narrow = replace(BALANCED, max_concepts_per_passage=2)
    assert len(activate(ask("film"), [FILM], {1: 1.0}, narrow)) < len(activate(ask("film"), [FILM], {1: 1.0}, BALANCED))
    assert activate(ask("film"), [FILM], {1: 1.0}, replace(BALANCED, concepts=0)) == []


def test_a_concept_of_one_passage_or_of_too_many_is_not_expanded() -> None:
    activations = activate(ask("Dark Water"), [FILM], {1: 1.0}, BALANCED)
    nakata, tokyo = concept_key("hideo nakata"), concept_key("tokyo")
    postings: Postings = {
        nakata: [(1, PLAIN), (2, PLAIN)],
        tokyo: [(number, PLAIN) for number in range(BALANCED.max_df + 1)],
        concept_key("shot"): [(1, PLAIN)],
    }
    assert [visit.key for visit in choose(activations, postings, 100, BALANCED, set())] == [nakata]
    assert choose(activations, postings, 100, BALANCED, {nakata}) == []


def test_starts_that_agree_make_a_concept_more_likely_but_never_more_than_certain() -> None:
    other = seed(2, "Ring", "Ring was directed by Hideo Nakata.")
    nakata = concept_key("hideo nakata")
    postings: Postings = {nakata: [(1, PLAIN), (2, PLAIN), (3, PLAIN)]}
    weights = {1: 1.0, 2: 1.0}
    both = choose(activate(ask("directed"), [FILM, other], weights, BALANCED), postings, 100, BALANCED, set())[0]
    one = choose(activate(ask("directed"), [FILM], weights, BALANCED), postings, 100, BALANCED, set())[0]
    assert one.score < both.score < 1
    assert set(both.starts) == {1, 2}


def test_mass_is_shared_among_the_passages_and_titles_get_most() -> None:
    nakata = concept_key("hideo nakata")
    postings: Postings = {nakata: [(1, PLAIN), (2, PLAIN), (3, TITLE), (4, LEAD)]}
    visits = choose(activate(ask("directed"), [FILM], {1: 1.0}, BALANCED), postings, 100, BALANCED, set())
    walk = Walk()
    expand(walk, visits, postings)
    assert 1 not in walk.masses, "a start gains nothing from its own concept"
    assert walk.masses[2] == pytest.approx(visits[0].score / 4**DF_POWER)
    assert walk.masses[3] == pytest.approx(walk.masses[2] * (2 + TITLE_BONUS))
    assert walk.masses[4] == pytest.approx(walk.masses[2] * (2 + LEAD_BONUS))
    assert walk.reasons[3][0][1].surface == "Hideo Nakata"


def test_the_next_hop_starts_at_what_was_reached_best_beside_the_first_seeds() -> None:
    walk = Walk()
    walk.masses.update({1: 9.0, 5: 3.0, 6: 2.0, 7: 1.0, 8: 0.5, 9: 0.1})
    front = next_front(walk, {6: 1.0}, seeds=[1, 2, 3, 9])
    assert list(front) == [6, 5, 7, 8]


def test_seeds_are_trusted_by_their_score_against_the_best() -> None:
    assert seed_weights({1: 0.8, 2: 0.4}, [1, 2]) == pytest.approx({1: 1.0, 2: 0.5**SEED_POWER})
    assert seed_weights({1: 0.0, 2: 0.0}, [1, 2]) == {1: 1.0, 2: 1.0}


def test_rarity_falls_with_the_number_of_passages() -> None:
    found = [rarity(df, 1000) for df in (1, 2, 10, 100, 1000)]
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < found[0] < 1
    assert rarity(5, 0) > 0, "a corpus size that lags behind does no harm"


def test_what_is_computed_is_the_same_in_every_process() -> None:
    """Sets of strings are ordered by a seed of the process; sums over them would differ in their last digits."""
    code = """
from app.retrieval.lazy.traversal import Question, Walk, weigh_rest
terms = [f"term{number}" for number in range(16)]
question = Question({term: 1 / (3 + number) for number, term in enumerate(terms)}, frozenset())
walk = Walk()
for passage in range(40):
    walk.masses[passage] = 1.0
held = {passage: frozenset(terms[passage % 7 : 3 + passage % 13]) for passage in range(40)}
weigh_rest(walk, question, 0, held)
print(sorted(walk.masses.items()))
"""
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
