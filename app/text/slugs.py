"""A name as one word: what people type, and programs pass on, in place of it."""

import re
import unicodedata

_NOT_IN_SLUGS = re.compile(r"[^\w]+|_+")


def slug(name: str) -> str:
    """`name` in small letters and digits of any script, hyphens between them; empty for one without letters and digits."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return _NOT_IN_SLUGS.sub("-", unicodedata.normalize("NFC", plain)).strip("-")
