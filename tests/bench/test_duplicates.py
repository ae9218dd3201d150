"""The bench's sets are as they are documented, and the rules reach what they have to."""

from app.text.duplicates.likeness import PROPOSED
from bench.duplicates import DATA, MIN_PRECISION, MIN_RECALL, SEED, labelled_sets, run
from bench.duplicates_corruption import corrupted


def test_the_rules_find_what_they_have_to() -> None:
    rows = run(DATA, SEED, [PROPOSED])
    assert {row.name for row in rows if row.precision < MIN_PRECISION or row.recall <= MIN_RECALL} == set()
    assert [row.name for row in rows] == ["typing", "paper", "real"]


def test_sets_are_repeatable_and_of_their_size() -> None:
    sets = dict(labelled_sets(DATA, SEED))
    assert len(sets["real"]) == 200
    names = ["Elena Petrova", "Harbor Works"]
    assert corrupted(names, "paper", 3) == corrupted(names, "paper", 3)
    assert all(spoilt != name for name, spoilt in sets["typing"].items())
