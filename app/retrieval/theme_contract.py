"""What is said of the themes of a corpus: what a caller asks of them, and what comes back. Value types only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

DEFAULT_THEMES: Final = 5  # themes that a question brings
PASSAGES_PER_THEME: Final = 3  # so many of each, where a request does not say how many it wants
COVERAGE_WEIGHT: Final = 0.6  # of the question's coverage in a theme's rank; its importance has the rest


@dataclass(frozen=True)
class Source:
    """Which leg found a piece of evidence, at which rank (from 1), with which score of that leg (None: it gives none)."""

    leg: str
    rank: int
    score: float | None = None


@dataclass(frozen=True)
class ThemeOptions:
    """What only the mode `themes` has a use for. `level` counts from 0, the coarsest; None: as fits the question.

    `min_relevance` is compared with a theme's relevance, from 0 to 1.
    """

    level: int | None = None
    min_relevance: float | None = None
    coverage_weight: float = COVERAGE_WEIGHT

    @property
    def is_given(self) -> bool:
        """Whether the request itself says anything of it."""
        return self.level is not None or self.min_relevance is not None


NO_OPTIONS: Final = ThemeOptions()


@dataclass(frozen=True)
class Notice:
    """What a program should know of an answer: `code` is stable, `detail` a sentence, `facts` what it counts."""

    code: str
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ThemeConcept:
    """A concept of a theme. `passages` counts those of the theme that hold it and may be used; `lift` says how well it
    tells the theme from the rest."""

    id: str
    label: str
    kind: Literal["name", "number", "word"]
    passages: int
    lift: float
    in_question: bool = False


@dataclass(frozen=True)
class Importance:
    """How much a theme matters, by itself: each part and their weighted sum are from 0 to 1."""

    size: float
    distinctiveness: float
    density: float
    vocabulary: float
    entropy: float
    importance: float


@dataclass(frozen=True)
class ThemeRank:
    """Why a theme stands where it does. `relevance` is the fusion of its legs, as a part of the most there can be; without
    a question there is none, and no coverage."""

    score: float
    relevance: float | None = None
    coverage: float | None = None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class ThemeEvidence:
    """A community of concepts. All counts are of passages that the answer may use; `placed`: of these, those that came
    after the map was made. `passage_ids` are those of its passages that stand in the same answer."""

    id: UUID
    level: int
    parent_id: UUID | None
    label: str
    concepts: tuple[ThemeConcept, ...]
    passages: int
    documents: int
    placed: int
    importance: Importance
    rank: ThemeRank
    passage_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class ThemeLevel:
    """A level of a map, and how many themes it has."""

    level: int
    themes: int


@dataclass(frozen=True)
class ThemeMapState:
    """The map that the themes of an answer are from. Shares are from 0 to 1: `placed_share` of its passages came after
    it was made, `sampled_share` of the corpus it was made from. Of `documents` that may be used, `documents_outside` have no
    passage in any theme."""

    id: UUID
    built_at: datetime
    corpus_version: int
    passages: int
    documents: int
    documents_outside: int
    placed_share: float
    sampled_share: float
    levels: tuple[ThemeLevel, ...]
    is_stale: bool


@dataclass(frozen=True)
class ThemesFound:
    """The themes of an answer, best first, the level that they stand on, and the map; None where there is none yet."""

    themes: tuple[ThemeEvidence, ...] = ()
    level: int | None = None
    map: ThemeMapState | None = None
    notices: Sequence[Notice] = ()


NO_THEMES: Final = ThemesFound()
