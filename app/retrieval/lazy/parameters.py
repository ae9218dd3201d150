"""Every number that the lazy modes are tuned by, in one frozen place; the evaluation reports this file's hash.

They were tuned on questions set apart for it; DECISIONS.md says how, and what did not help.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# --- Selection: what is kept of a passage when it is indexed ---
NAME_CAP: Final = 40  # names and numbers
CASELESS_CAP: Final = 48  # words of scripts without capitals, where names cannot be told from words
WORD_FILL: Final = 32  # plain lower-case words only fill up to here
MAX_RANK: Final = NAME_CAP  # ranks of all three kinds are on the scale of the first

# --- Seeds ---
LEG_SIZE: Final = 200  # passages taken from each leg
LEXICAL_SHARE: Final = 0.75  # weight of BM25 where the best passage covers the question
FULL_COVERAGE: Final = 0.4  # from this part of the question's weight on it counts as covered

NAMED_SHARE: Final = 0.4  # added to a passage that is about a name of the question
NAMED_PASSAGES: Final = 8  # a name that more passages are about does not tell which is meant

# --- Activation ---
SEED_POWER: Final = 5.0
KIND_WEIGHTS: Final = (1.0, 0.3, 0.3)  # name, number, word
OVERLAP_FLOOR: Final = 0.1
QUERY_CONCEPT_FACTOR: Final = 0.3  # the question's own concepts lead back to what the seeds are already
OWN_TITLE_FACTOR: Final = 0.3
OWN_LEAD_FACTOR: Final = 0.5

# --- Expansion ---
DF_POWER: Final = 0.8  # a concept spreads its score over its passages, a little more than evenly
TITLE_BONUS: Final = 14.0
LEAD_BONUS: Final = 2.0  # where a paragraph begins with the concept
PROMINENT_BONUS: Final = 1.0  # in the title or the first sentence of a paragraph
GRAPH_WEIGHT: Final = 1.5
SEED_DAMPING: Final = 0.3
# The lowest places that the first of the plain ranking may fall to, counted from 0.
KEPT_PLACES: Final = (0, 3, 4)

# --- What the first seed leaves unanswered ---
REST_WEIGHT: Final = 6.0  # how much more mass counts in a passage that holds all of it
REST_PASSAGES: Final = 100  # reached passages that are looked into, those with most mass
REST_TERMS: Final = 16  # terms of the question that are looked for, the rarest

# --- Second hop ---
FRONT_SIZE: Final = 4
FRONT_SKIPS_SEEDS: Final = 3
FRONT_FLOOR: Final = 0.3


# --- Looking up ---
PROBES_PER_CONCEPT: Final = 8  # concepts whose postings are looked up for each that is expanded


@dataclass(frozen=True)
class Flavour:
    """The budgets of one mode: cost knobs rather than steps of quality."""

    seeds: int
    concepts: int  # expanded in each hop
    max_concepts_per_passage: int  # highest selection rank read
    returned: int  # passages
    max_df: int  # a concept in more passages than this leads nowhere
    hops: int

    @property
    def probes(self) -> int:
        return PROBES_PER_CONCEPT * self.concepts


FLAVOURS: Final[Mapping[str, Flavour]] = {
    "lazy-fast": Flavour(seeds=4, concepts=8, max_concepts_per_passage=24, returned=4, max_df=32, hops=1),
    "lazy-balanced": Flavour(seeds=8, concepts=16, max_concepts_per_passage=32, returned=8, max_df=64, hops=1),
    "lazy-wide": Flavour(seeds=12, concepts=24, max_concepts_per_passage=40, returned=12, max_df=64, hops=2),
}
DEFAULT_FLAVOUR: Final = "lazy-balanced"
