"""Which concepts of a passage are kept, and in which order."""

from app.retrieval.lazy import selection
from app.retrieval.lazy.parameters import CASELESS_CAP, MAX_RANK, NAME_CAP, WORD_FILL
from app.retrieval.lazy.selection import Mention, is_lead, is_prominent, is_title, kind_of, rank_of
from app.text.concepts.extraction import ConceptKind
from app.text.concepts.words import sentences

TEXT = "Marie Curie discovered radium in 1898. She worked with Pierre Curie in Paris. The laboratory was cold."


def select_mentions(title: str, heading_path: tuple[str, ...], passage: str) -> list[Mention]:
    return selection.select_mentions(title, heading_path, sentences(passage))


def by_surface(mentions: list[Mention]) -> dict[str, Mention]:
    return {mention.surface: mention for mention in mentions}


def test_names_numbers_and_words_are_kept_with_the_sentences_that_hold_them() -> None:
    found = by_surface(select_mentions("", (), TEXT))
    assert found["Marie Curie"].sentences == 0b10
    assert found["Paris"].sentences == 0b100
    assert found["laboratory"].sentences == 0b1000
    assert kind_of(found["1898"].flags) == ConceptKind.NUMBER
    assert kind_of(found["radium"].flags) == ConceptKind.WORD


def test_title_and_headings_mark_the_concepts_of_a_passage() -> None:
    found = by_surface(select_mentions("Marie Curie (physicist)", ("Discovery of radium",), TEXT))
    assert is_title(found["Marie Curie"].flags)
    assert found["Marie Curie"].sentences == 0b11
    assert found["radium"].sentences & 1
    assert is_prominent(found["radium"].flags)
    assert not is_title(found["radium"].flags)
    assert not found["Paris"].sentences & 1
    assert not is_prominent(found["Paris"].flags)


def test_paragraphs_are_led_by_the_longest_concept_that_they_begin_with() -> None:
    text = "Marie Curie Prize winners met.\nThe Radium Institute is in Paris. Pierre Curie came.\n\nbotany is old"
    found = by_surface(select_mentions("", (), text))
    led = {surface for surface, mention in found.items() if is_lead(mention.flags)}
    assert led == {"Marie Curie Prize", "Radium Institute", "botany"}
    assert is_prominent(found["Paris"].flags), "in the first sentence of a paragraph"
    assert not is_prominent(found["Pierre Curie"].flags)


def test_names_come_before_plain_words_and_the_title_first() -> None:
    ranks = {
        surface: rank_of(mention.flags)
        for surface, mention in by_surface(select_mentions("Marie Curie", (), TEXT)).items()
    }
    assert ranks["Marie Curie"] == 0
    assert max(ranks["Paris"], ranks["Pierre Curie"], ranks["1898"]) < min(ranks["radium"], ranks["laboratory"])


def test_caps_hold_for_each_kind_and_ranks_stay_on_one_scale() -> None:
    names = " ".join(f"We met Person{n} Smith{n} there." for n in range(100))
    words = " ".join(f"walked{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(100))
    cities = ["北京", "上海", "广州", "深圳", "天津", "重庆", "成都", "武汉", "南京", "西安", "杭州", "苏州"]
    chinese = "。".join(f"第{city}研究所" for city in cities)
    assert len(select_mentions("", (), names)) == NAME_CAP
    assert len(select_mentions("", (), words)) == WORD_FILL
    assert 0 < len(select_mentions("", (), chinese)) <= CASELESS_CAP
    for text in (names, words, chinese):
        ranks = [rank_of(mention.flags) for mention in select_mentions("", (), text)]
        assert ranks == sorted(ranks)
        assert ranks[-1] < MAX_RANK
        assert all(0 <= mention.flags < 2**15 for mention in select_mentions("", (), text))


def test_more_sentences_than_a_mask_has_bits_do_not_break_it() -> None:
    many = " ".join(f"Sentence {n} speaks of Berlin." for n in range(200))
    mask = by_surface(select_mentions("", (), many))["Berlin"].sentences
    assert mask == (1 << (selection.MAX_SENTENCES + 1)) - 2
    assert mask < 2**63


def test_an_empty_passage_has_no_concepts() -> None:
    assert select_mentions("", (), "") == []
