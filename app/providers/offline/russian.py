"""Inflected Russian: recognises titles, first names and places in any case, and gives places their nominative back."""

import re
from functools import cache
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.name_words import GIVEN_NAMES
from app.text.concepts.words import normalise

_TITLE: Final = re.compile(
    r"^(?:президент|император|императриц|корол|премьер-министр|министр|господин|княз|княгин|цар[ьяюе]|цариц|граф|герцог|епископ|"
    r"архиепископ|канцлер|султан|принц|доктор|профессор|генерал|сэр|лорд|пап[аыеу]$|хан[а-я]{0,2}$|член[а-я]{0,2}$)"
)
_ADJECTIVE: Final = re.compile(
    r"(?:(?:ск|цк|нн|[бвглрт]н|льн|ов|ев)(?:ий|ый|им|ым|ом|ую|их|ых)|ого|его|ому|ыми|ими|ая|яя|ое|ее|ые|ой|ую|н(?:ей|юю|ий|ие|их|им))$"
)
# Institutions and works that are written with a capital and name nothing alone.
_GENERIC: Final = re.compile(
    r"^(?:совет|акт[аоуе]?|парламент|институт|палат|запад|восток|север|юг|програм|закон|списо?к|процесс|изменени|журнал|газет|"
    r"корон|бо[гж]|земл|обществ|союз|здани|церк|суд|конституц|правительств|комитет|министерств|экономист|конгресс|сенат|"
    r"университет|колледж|школ|собор|штат|округ|город|район|област|республик|империи?|королевств|партии?я?|комисси|договор|"
    r"конференци|декларац|государств|стран|народ|мир|центр|век|эпох|год|день|дня|протокол|компани|орган)"
)
_CASE_ENDINGS: Final = frozenset(
    {"", "а", "я", "у", "ю", "е", "и", "ы", "ом", "ем", "ой", "ей", "ою", "ею", "ию", "ии"}
)
_NOMINATIVE_ENDING: Final = re.compile("[аяыийьо]$")
_MIN_STEM: Final = 4
_LONGEST_ENDING: Final = 2


def is_russian_title(normal: str) -> bool:
    return _TITLE.match(normal) is not None


def is_russian_adjective(normal: str) -> bool:
    """Whether a word ends as adjectives do: with a capital and alone it is a part of some longer name."""
    return _ADJECTIVE.search(normal) is not None


def is_russian_institution(normal: str) -> bool:
    """Whether a word calls an institution, a region or a work by its kind."""
    return _GENERIC.match(normal) is not None


def is_russian_first_name(normal: str) -> bool:
    return any(
        normal[: len(normal) - cut] + nominative in GIVEN_NAMES
        for cut in range(_LONGEST_ENDING + 1)
        if normal[len(normal) - cut :] in _CASE_ENDINGS
        for nominative in ("", "а", "я", "й", "ь")
    )


def nominative_place(normal: str) -> str | None:
    """The name of the place that an inflected word means, from CLDR's table; None for any other word."""
    stems = _place_stems()
    for cut in range(_LONGEST_ENDING + 1):
        stem, ending = normal[: len(normal) - cut], normal[len(normal) - cut :]
        if len(stem) >= _MIN_STEM and ending in _CASE_ENDINGS and stem in stems:
            return stems[stem]
    return None


@cache
def _place_stems() -> dict[str, str]:
    names = {normal: name for normal, name in place_names("ru").items() if " " not in normal}
    return {_NOMINATIVE_ENDING.sub("", normalise(name)): name for name in names.values()}
