"""`make eval-duplicates`: how many spoilt names are found again, and how many names that are different things are taken for one.

Names are spoilt by two generators (`typing`, on which the rules were tuned, and `paper`, which only judges them), and
there are pairs of real names of one thing. Each set is all there is to compare: every pair that is proposed and is not
one of the set's counts against precision.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.text.duplicates.finding import pairs_of
from app.text.duplicates.likeness import PROPOSED
from bench.duplicates_corruption import GENERATORS, corrupted

DATA = Path("tests/data/duplicates")
SEED = 11
MIN_PRECISION = 0.95
MIN_RECALL = 0.8


@dataclass(frozen=True)
class Measured:
    """One set at one threshold."""

    name: str
    threshold: float
    wanted: int
    proposed: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.proposed if self.proposed else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted

    @property
    def is_enough(self) -> bool:
        return self.precision >= MIN_PRECISION and self.recall > MIN_RECALL


def labelled_sets(folder: Path, seed: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What each set calls the same thing, by name."""
    names = json.loads((folder / "names.json").read_text())
    for generator in GENERATORS:
        yield generator, corrupted(names, generator, seed)
    yield "real", dict(json.loads((folder / "aliases.json").read_text()))


def measure(name: str, same: Mapping[str, str], others: list[str], thresholds: list[float]) -> list[Measured]:
    """`others` stand among the names of the set."""
    found = pairs_of([*others, *same, *same.values()], min(thresholds))
    truth = {(min(pair), max(pair)) for pair in same.items()}
    measured = []
    for threshold in thresholds:
        proposed = {pair for pair, alike in found.items() if alike.score >= threshold}
        measured.append(Measured(name, threshold, len(truth), len(proposed), len(proposed & truth)))
    return measured


def run(folder: Path, seed: int, thresholds: list[float]) -> list[Measured]:
    names = json.loads((folder / "names.json").read_text())
    rows: list[Measured] = []
    for name, same in labelled_sets(folder, seed):
        rows += measure(name, same, names if name in GENERATORS else [], thresholds)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    thresholds = sorted({PROPOSED, 0.85, 0.9, 0.95})
    rows = run(arguments.data, arguments.seed, thresholds)
    sys.stdout.write(f"{'set':8} {'score':>6} {'pairs':>6} {'found':>6} {'precision':>10} {'recall':>7}\n")
    for row in rows:
        sys.stdout.write(
            f"{row.name:8} {row.threshold:6.2f} {row.wanted:6} {row.proposed:6} {row.precision:10.3f} {row.recall:7.3f}\n"
        )
    return 0 if all(row.is_enough for row in rows if row.threshold == PROPOSED) else 1


if __name__ == "__main__":
    sys.exit(main())
