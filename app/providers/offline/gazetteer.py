"""Names of countries, continents and cities in many languages, from the Unicode CLDR tables that ship with Babel."""

from functools import cache
from typing import Final

from babel import Locale, UnknownLocaleError

from app.text.concepts.words import normalise

_NOT_PLACES: Final = frozenset({"UN", "EZ", "ZZ", "XA", "XB", "QO", "001"})
_MIN_CHARS: Final = 2


@cache
def place_names(language: str) -> dict[str, str]:
    """The places of `language` as {normal form: name}; empty for a language that CLDR does not know."""
    try:
        locale = Locale(language)
    except (UnknownLocaleError, ValueError):
        return {}
    names = [name for code, name in locale.territories.items() if code not in _NOT_PLACES]
    for zone in _zones():
        city = locale.time_zones.get(zone, {}).get("city")
        names.append(city or (zone.rsplit("/", 1)[-1].replace("_", " ") if language == "en" else ""))
    return {normalise(name): name for name in names if len(name) >= _MIN_CHARS}


@cache
def _zones() -> tuple[str, ...]:
    zones = Locale("en").time_zones.keys() | Locale("ru").time_zones.keys()
    return tuple(
        sorted(zone for zone in zones if zone.count("/") == 1 and not zone.startswith(("Etc/", "Antarctica/")))
    )
