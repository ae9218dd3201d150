"""What beat asks for leaves slots to documents, however long it takes."""

from workers.turns import Turns


def test_each_task_runs_once_at_a_time_and_never_in_the_last_slot() -> None:
    turns = Turns(slots=3)
    with turns.of("sweep") as first, turns.of("sweep") as again, turns.of("webhooks") as second:
        assert (first, again, second) == (True, False, True)
        with turns.of("leftovers") as third:
            assert not third
    with turns.of("sweep") as anew:
        assert anew


def test_a_worker_of_one_slot_does_one_at_a_time() -> None:
    turns = Turns(slots=1)
    with turns.of("sweep") as first, turns.of("webhooks") as second:
        assert (first, second) == (True, False)
