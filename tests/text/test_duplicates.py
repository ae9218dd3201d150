"""Names that are one thing in several languages, and names that are not."""

import pytest

from app.text.duplicates.finding import AlikePair, DuplicateFinder, groups_of, pairs_of
from app.text.duplicates.forms import form_of
from app.text.duplicates.likeness import PROPOSED, errors_between, likeness
from app.text.duplicates.looking import NameLookup

SAME = [
    ("Kubernetes", "K8s", "abbreviation"),
    ("World Health Organization", "WHO", "abbreviation"),
    ("Elena Petrova", "E. Petrova", "abbreviation"),
    ("Elena Petrova", "Petrova, Elena", "word_order"),
    ("Elena Petrova", "Elena Petrowa", "typo"),
    ("Elena Maria Petrova", "Elena Petrova", "shortened"),
    ("Acme Inc.", "ACME", "legal_suffix"),
    ("Siemens AG", "Siemens", "legal_suffix"),
    ("ООО Ромашка", "Ромашка", "legal_suffix"),
    ("华为技术有限公司", "华为技术", "legal_suffix"),
    ("Müller & Söhne", "Muller und Sohne", "normalised_form"),
    ("Peter Tchaikovsky", "Пётр Чайковский", "transliteration"),
    ("Vladimir", "Владимир", "transliteration"),
    ("Toyota", "トヨタ", "transliteration"),
    ("Athina", "Αθήνα", "transliteration"),
    ("The Great Escape (film)", "Great Escape", "qualifier"),
    ("Microsoft Corporaton", "Microsoft Corporation", "typo"),
    ("Harbor Works", "Harb0r Works", "typo"),
    ("E-Mail Server", "email server", "normalised_form"),
]
APART = [
    ("Player 1", "Player 2"), ("Henry IV", "Henry V"), ("Iran", "Iraq"), ("Austria", "Australia"), ("Maria Rossi", "Mario Rossi"),
    ("John Smith (politician)", "John Smith (footballer)"), ("Titanic (1953 film)", "Titanic (1997 film)"), ("Press 4", "Press 4b"),
    ("Slovakia", "Slovenia"), ("Japan", "Japanese Cuisine"), ("Tim Robinson", "Jim Robinson"), ("", "x"), ("2020 Report", "2021 Report"),
    ("Northern Ireland", "Southern Ireland"), ("Benjamin Cheney", "Benjamin Cheney Jr."), ("北京大学", "南京大学"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "reason"), SAME)
def test_names_of_one_thing_are_alike(one: str, other: str, reason: str) -> None:
    found = likeness(form_of(one), form_of(other))
    assert (found.reason, found.score >= PROPOSED) == (reason, True), found
    assert found == likeness(form_of(other), form_of(one))
    assert len(pairs_of([one, other], PROPOSED)) == 1


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_of_different_things_are_not(one: str, other: str) -> None:
    assert likeness(form_of(one), form_of(other)).score < PROPOSED


def test_new_names_are_compared_with_old_ones() -> None:
    finder = DuplicateFinder(PROPOSED)
    finder.add(["Elena Petrova", "Harbor Works"])
    assert finder.pairs == {}
    finder.add(["Harbour Works", "Elena Petrova"])
    assert set(finder.pairs) == {("Harbor Works", "Harbour Works")}
    finder.remove(["Harbor Works"])
    assert finder.pairs == {}
    assert finder.names == frozenset({"Elena Petrova", "Harbour Works"})
    finder.remove(["Elena Petrova"])
    finder.add(["E. Petrova", "Harbor Works"])
    assert set(finder.pairs) == {("Harbor Works", "Harbour Works")}


def test_one_way_is_as_good_as_the_other() -> None:
    names = [name for pair in SAME for name in pair[:2]]
    together = pairs_of(names, PROPOSED)
    finder = DuplicateFinder(PROPOSED)
    for name in names:
        finder.add([name])
    assert finder.pairs == together


def test_groups_respect_what_is_apart() -> None:
    pairs = [AlikePair("a", "b", 0.9, "typo"), AlikePair("b", "c", 0.95, "typo"), AlikePair("x", "y", 0.8, "typo")]
    assert [{p.one + p.other for p in group} for group in groups_of(pairs)] == [{"ab", "bc"}, {"xy"}]
    apart = groups_of(pairs, [frozenset("ac")])
    assert [{p.one + p.other for p in group} for group in apart] == [{"bc"}, {"xy"}]


def test_errors_are_counted_up_to_a_limit() -> None:
    assert [errors_between("abcd", other, 2) for other in ("abcd", "abdc", "abc", "xbcx", "dcba")] == [0, 1, 1, 2, 3]


def test_a_lookup_follows_its_names() -> None:
    lookup = NameLookup()
    lookup.replace(["Elena Petrova", "Jonas Weber"])
    assert lookup.find("weber", 5)[0] == ("Jonas Weber", 0.9)
    lookup.replace(["Elena Petrova"])
    assert lookup.find("weber", 5) == []
    assert lookup.find("", 5) == lookup.find("?!", 5) == []
