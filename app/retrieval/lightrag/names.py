"""Entity names as the engine's tables can hold them: LightRAG's own normalisation, and a digest for what is too long."""

import unicodedata
from functools import lru_cache
from hashlib import blake2b

from lightrag.utils import normalize_entity_name

# A relation's key is both names and a separator in a VARCHAR(512), and LightRAG cuts a name at 256 characters and 512
# bytes (facts F25).
MAX_CHARS = 240
MAX_BYTES = 480
FIELD = "<|#|>"
# Of a name whose key is remembered; and of one that is surely short enough, whatever its normal form.
MAX_CACHED_CHARS = SURELY_SHORT = 100


def engine_name(name: str) -> str:
    """The name under which the engine keeps an entity that a model calls `name`; '' if it keeps none."""
    return shorten(str(normalize_entity_name(name)))


def entity_key(name: str) -> bytes:
    """Equal for names that are one entity: the same but for case, width, compatibility forms and spaces. 16 bytes."""
    return _key_of_short(name) if len(name) <= MAX_CACHED_CHARS else _key(name)


# Names come again and again, and telling one's key takes longer than looking it up.
@lru_cache(maxsize=65_536)
def _key_of_short(name: str) -> bytes:
    return _key(name)


def _key(name: str) -> bytes:
    return blake2b(folded(engine_name(name)).encode(), digest_size=16).digest()


def folded(name: str) -> str:
    """The name without case, in compatibility form (Unicode 3.13, D146), its spaces collapsed."""
    flat = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(flat.split())


def shorten(name: str) -> str:
    """`name`, or its beginning and a digest of the whole where it is too long: equal names stay equal.

    The digest is the same for other spellings of a name (`folded`), as `entity_key` is.
    """
    if _fits(name):
        return name
    flat = " ".join(name.split())
    if _fits(flat):
        return flat
    ending = "~" + blake2b(folded(name).encode(), digest_size=5).hexdigest()
    head = flat[: MAX_CHARS - len(ending)]
    while len(head.encode()) + len(ending) > MAX_BYTES:
        head = head[:-1]
    return head.rstrip() + ending


def _fits(name: str) -> bool:
    return len(name) <= MAX_CHARS and len(name.encode()) <= MAX_BYTES


def shorten_names(answer: str) -> tuple[str, dict[str, str]]:
    """An extraction answer whose too long names are shortened, and the whole names by the short ones.

    Everything else stays as the model wrote it.
    """
    lines, whole = answer.split("\n"), dict[str, str]()
    short = [_shorten_record(line, whole) if len(line) > MAX_BYTES // 4 else line for line in lines]
    return "\n".join(short), whole


def _shorten_record(line: str, whole: dict[str, str]) -> str:
    fields = line.split(FIELD)
    kind = fields[0].strip().strip("(").lower()
    names = {"entity": (1,), "relation": (1, 2), "relationship": (1, 2)}.get(kind, ())
    for position in names:
        if position < len(fields) and len(fields[position]) > SURELY_SHORT:
            name = str(normalize_entity_name(fields[position]))
            if shorten(name) != name:
                fields[position] = shorten(name)
                whole.setdefault(shorten(name), name)
    return FIELD.join(fields)
