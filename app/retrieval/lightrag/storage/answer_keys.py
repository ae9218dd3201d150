"""Keys of the extraction cache as chunks ask for them: chunks of equal text share an answer, whose row names one of them.

LightRAG's rebuild takes an answer for that one chunk's and would lose what the others said (facts, section 4).
"""

# No key and no chunk id contains it.
_FOR = "\x1f"


def answer_for(key: str, chunk_id: str) -> str:
    """The key of an answer as one of its chunks asks for it."""
    return f"{plain_key(key)}{_FOR}{chunk_id}"


def plain_key(key: str) -> str:
    """The key as it is stored."""
    return key.partition(_FOR)[0]


def asking_chunk(key: str) -> str:
    """The chunk that asks, or ''."""
    return key.partition(_FOR)[2]
