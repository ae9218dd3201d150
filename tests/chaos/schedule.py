"""What happens in a run, from one seed: uploads in small lots, between them faults and what users do."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Literal, get_args

from tests.chaos.corpus import Text
from tests.chaos.stack import LEASE_SECONDS, MODEL_TIMEOUT_SECONDS

Fault = Literal[
    "kill_worker",
    "stop_worker",
    "kill_api",
    "restart_postgres",
    "crash_postgres",
    "cut_connections",
    "freeze_postgres",
    "freeze_redis",
    "flush_redis",
    "restart_redis",
    "model_429",
    "model_500",
    "model_nonsense",
    "model_silence",
]
Wish = Literal["replace", "cancel", "delete", "retry"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
# Dying workers are what happens most.
WEIGHTS = [4, 3, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]
WISHES: tuple[Wish, ...] = get_args(Wish)


@dataclass(frozen=True)
class Upload:
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Harm:
    """A fault, `after` so many seconds from when work is under way, or the model is being asked; it lasts `seconds`. `choice` in [0, 1) picks its victim."""

    fault: Fault
    after: float
    seconds: float
    choice: float
    while_asking: bool


@dataclass(frozen=True)
class Ask:
    """What a user does to a document that was uploaded before."""

    wish: Wish
    text: Text


Step = Upload | Harm | Ask


def make_schedule(seed: int, corpus: list[Text], faults: int) -> list[Step]:
    """Each kind of fault at least once if there are as many, the rest by weight, spread over the uploads."""
    chosen = random.Random(f"schedule {seed}")
    kinds = list(FAULTS[:faults]) + chosen.choices(FAULTS, WEIGHTS, k=max(0, faults - len(FAULTS)))
    chosen.shuffle(kinds)
    wishes = cycle(WISHES)
    present: list[Text] = []
    steps: list[Step] = []
    for kind, lot in zip(kinds, _lots(corpus, faults), strict=True):
        if lot:
            steps.append(Upload(tuple(lot)))
            present += lot
        if present and chosen.random() < 0.7:
            ask = Ask(next(wishes), chosen.choice(present))
            steps.append(ask)
            present = after(ask, present)
        while_asking = chosen.random() < 0.5
        pause = chosen.uniform(0, 0.2 if while_asking else 1.5)
        steps.append(Harm(kind, round(pause, 2), _lasting(kind, chosen), chosen.random(), while_asking))
    return steps


def survivors(steps: list[Step]) -> list[Text]:
    """The documents that are there when everything has been done."""
    present: list[Text] = []
    for step in steps:
        if isinstance(step, Upload):
            present += step.texts
        elif isinstance(step, Ask):
            present = after(step, present)
    return present


def after(ask: Ask, present: list[Text]) -> list[Text]:
    """The documents once a wish has been fulfilled."""
    if ask.wish == "delete":
        return [text for text in present if text != ask.text]
    if ask.wish == "replace":
        return [text.revised() if text == ask.text else text for text in present]
    return present


def _lots(corpus: list[Text], count: int) -> Iterator[list[Text]]:
    for number in range(count):
        yield corpus[len(corpus) * number // count : len(corpus) * (number + 1) // count]


def _lasting(kind: Fault, chosen: random.Random) -> float:
    if kind in ("stop_worker", "freeze_postgres"):
        return round(LEASE_SECONDS * chosen.uniform(2.1, 2.6), 2)
    if kind == "model_silence":
        return round(MODEL_TIMEOUT_SECONDS + chosen.uniform(0.5, 2), 2)
    return round(chosen.uniform(0.3, 3.0), 2)
