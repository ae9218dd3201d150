"""What was read about versions that wait for their workspace is kept for a while, within a bound."""

from uuid import UUID, uuid4

import pytest

from app.domain.ingestion import graph
from app.domain.ingestion.graph import Parked


@pytest.fixture
def waiting() -> list[UUID]:
    return [uuid4() for _ in range(3)]


def test_it_is_found_once_and_under_the_profile_it_was_read_with(waiting: list[UUID]) -> None:
    parked = Parked()
    parked.keep(waiting[0], "profile", {0: "read"})
    assert parked.take(waiting[0], "another profile") == {}
    assert parked.take(waiting[0], "profile") == {0: "read"}
    assert parked.take(waiting[0], "profile") == {}


def test_the_oldest_goes_when_it_becomes_too_much(waiting: list[UUID], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "PARKED_CHUNKS", 4)
    parked = Parked()
    for version_id in waiting:
        parked.keep(version_id, "profile", dict.fromkeys(range(2), "read"))
    assert [len(parked.take(version_id, "profile")) for version_id in waiting] == [0, 2, 2]


def test_one_that_is_too_much_by_itself_is_kept(waiting: list[UUID], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "PARKED_CHUNKS", 4)
    parked = Parked()
    parked.keep(waiting[0], "profile", dict.fromkeys(range(9), "read"))
    assert len(parked.take(waiting[0], "profile")) == 9
