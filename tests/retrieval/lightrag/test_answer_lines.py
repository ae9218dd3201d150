"""Names are read from regular answers as LightRAG's parser reads them; whatever else a model sends is left to the parser."""

from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lightrag.utils import normalize_entity_name

from app.retrieval.lightrag.storage.aliases import names_of, parsed
from app.retrieval.lightrag.storage.answer_lines import reading_about, regular_lines, wanted_part

D = "<|#|>"
END = "<|COMPLETE|>"
ANSWER = "\n".join(
    [
        f"entity{D}Ada Lovelace{D}person{D}Ada wrote the first programme.",
        f"entity{D}  the Engine {D}artifact{D}A machine of brass.",
        f"entity{D}“Londres”{D}location{D}Where she lived.",
        f"relation{D}Ada Lovelace{D}the Engine{D}work, study{D}Ada worked on it.",
        f"relation{D}the Engine{D}Ada Lovelace{D}praise{D}It made her known.",
        f"relation{D}Ada Lovelace{D}“Ada Lovelace”{D}self{D}She is herself.",
        END,
    ]
)
# What models get wrong, and what LightRAG drops or cuts.
IRREGULAR = [
    f"entity<|#>Ada{D}person{D}Ada wrote it.",
    f"entity{D}Ada{D}person",
    f"entity{D}Ada{D}person{D}Ada wrote.{D}relation{D}Ada{D}Engine{D}work{D}Ada worked.",
    f"entity{D}Ada{D}__proto__{D}Ada wrote it.",
    f"entity{D}Ada{D}Proto Type{D}Ada wrote it.",
    f"entity{D}Ada{D}{D}Ada wrote it.",
    f"relation{D}Ada{D}Engine{D} {D}Ada worked.",
    f"entity{D}Ada{D}person{D}",
    f"entity{D}{'A' * 300}{D}person{D}Ada wrote it.",
    f"- entity{D}Ada{D}person{D}Ada wrote it.",
    f"entity{D}Ada{D}Engine{D}work{D}Ada worked.",
    "Here is what I found:",
    '{"entities": [{"name": "Ada", "type": "person", "description": "Ada wrote it."}], "relationships": []}',
]
PIECES = st.text(alphabet="ABc d'\"“”‘’`(（）)-.,:&;#/\\«»你好 \u3000\t1é—null", max_size=14)
TEXT = st.text(alphabet="ab cd'\"“(),.&;#你1", max_size=12)
RECORDS = st.one_of(
    st.tuples(st.just("entity"), PIECES, st.sampled_from(["person", "Work Of-Art", "a,b", "(x)", "1", ""]), TEXT),
    st.tuples(st.sampled_from(["relation", "relationship"]), PIECES, PIECES, TEXT, TEXT),
)


@pytest.mark.parametrize("line", IRREGULAR)
def test_what_the_parser_would_mend_or_drop_is_left_to_it(line: str) -> None:
    assert regular_lines(f"{ANSWER}\n{line}") is None


async def test_names_are_those_of_the_parser() -> None:
    lines = regular_lines(ANSWER)
    assert lines is not None
    assert list(dict.fromkeys(chain(*(line.names for line in lines)))) == list(names_of([await parsed(ANSWER)]))
    assert lines[-1].names == ()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(RECORDS, min_size=1, max_size=3))
async def test_whatever_is_taken_for_regular_is_read_as_the_parser_reads_it(records: list[tuple[str, ...]]) -> None:
    answer = "\n".join([*(D.join(record) for record in records), END])
    lines = regular_lines(answer)
    if lines is not None:
        assert set(chain(*(line.names for line in lines))) == set(names_of([await parsed(answer)]))


async def test_what_is_left_of_an_answer_says_the_same_of_its_subject() -> None:
    lines = regular_lines(ANSWER)
    assert lines is not None
    assert wanted_part(ANSWER, lines) == ANSWER
    engine = str(normalize_entity_name("  the Engine "))
    with reading_about({engine}, {(engine, "Ada Lovelace")}):
        part = wanted_part(ANSWER, lines)
    assert part.count("\n") == 3
    entities, relations = await parsed(ANSWER)
    told, related = await parsed(part)
    assert told == {engine: entities[engine]}
    assert related == relations
    with reading_about({"Ada Lovelace"}, ()):
        assert await parsed(wanted_part(ANSWER, lines)) == ({"Ada Lovelace": entities["Ada Lovelace"]}, {})
