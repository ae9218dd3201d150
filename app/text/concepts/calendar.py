"""Names of months and days of the week: they stand in texts about anything, so they name no subject."""

from functools import cache

from babel import Locale

from app.text.concepts.stopwords import BY_LANGUAGE
from app.text.concepts.words import normalise


def is_date(normal: str) -> bool:
    """Whether a text, normalised, is made of such names and of numbers only."""
    return all(word in calendar_names() or word.isdecimal() for word in normal.split())


@cache
def calendar_names() -> frozenset[str]:
    """In full, of the languages whose function words are known, as CLDR has them."""
    names: set[str] = set()
    for language in BY_LANGUAGE:
        locale = Locale.parse(language)
        for context in ("format", "stand-alone"):
            # Short forms would be abbreviations of other things as well.
            names.update(locale.months[context]["wide"].values(), locale.days[context]["wide"].values())
    return frozenset(normalise(name) for name in names)
