"""Sentence ends in the scripts of the world, abbreviations, and offsets that lose nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.sentences import sentence_spans, split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She stayed! Why? Nobody knows.", ["He left.", "She stayed!", "Why?", "Nobody knows."]),
        ("Mr. Smith met Dr. J. R. R. Lee. They talked.", ["Mr. Smith met Dr. J. R. R. Lee.", "They talked."]),
        ("See e.g. the U.S. Army, i.e. soldiers. Done.", ["See e.g. the U.S. Army, i.e. soldiers.", "Done."]),
        ("He lives in the U.S. The rest is known.", ["He lives in the U.S.", "The rest is known."]),
        ("Apple Inc. CEO Cook spoke. We listened.", ["Apple Inc. CEO Cook spoke.", "We listened."]),
        ("He works at Apple Inc. The firm is large.", ["He works at Apple Inc.", "The firm is large."]),
        ("It costs 3.14 dollars at www.a.org today.", ["It costs 3.14 dollars at www.a.org today."]),
        ("He said no. Then he left.", ["He said no.", "Then he left."]),
        ("Look at No. 5 and Fig. 3 again.", ["Look at No. 5 and Fig. 3 again."]),
        ("It ended in 1999. The war was over.", ["It ended in 1999.", "The war was over."]),
        ("1. The first. 2. The second.", ["1. The first.", "2. The second."]),
        ("See pages 9–18. The rest is lost.", ["See pages 9–18.", "The rest is lost."]),
        ('"Why?" he asked. "Because."', ['"Why?" he asked.', '"Because."']),
        ("Am 3. Oktober kam Dr. Müller z.B. nach Bonn. Er blieb.",
         ["Am 3. Oktober kam Dr. Müller z.B. nach Bonn.", "Er blieb."]),
        ("今天很好。“你好！”他说？是；不是", ["今天很好。", "“你好！”", "他说？", "是；", "不是"]),
        ("東京は首都です。「本当？」はい。", ["東京は首都です。", "「本当？」", "はい。"]),
        ("Он ушёл, т.е. исчез. Потом г. Иванов пришёл.", ["Он ушёл, т.е. исчез.", "Потом г. Иванов пришёл."]),
        ("هل أنت بخير؟ نعم. شكرا!", ["هل أنت بخير؟", "نعم.", "شكرا!"]),
        ("यह एक है। वह दो है॥ ठीक", ["यह एक है।", "वह दो है॥", "ठीक"]),
        ("یہ ہے۔ وہ تھا۔", ["یہ ہے۔", "وہ تھا۔"]),
        ("No end here\n\nNew paragraph", ["No end here", "New paragraph"]),
        ("Wrapped line\ngoes on. Next.", ["Wrapped line\ngoes on.", "Next."]),
        ("Wait... What? Well… fine", ["Wait...", "What?", "Well… fine"]),
        ("", []),
        (" \n\t ", []),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_sees_it(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_thai_breaks_at_spaces_after_a_while() -> None:
    clause = "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในภูมิภาคเอเชีย"
    sentences = split_sentences(" ".join([clause] * 20))
    assert len(sentences) > 5
    assert max(len(sentence) for sentence in sentences) <= 240
    assert all(sentence.startswith("ประเทศไทย") for sentence in sentences)


def test_offsets_are_of_the_whole_text_when_a_part_is_asked_for() -> None:
    text = "Skip this. One here. Two here. Not that."
    spans = sentence_spans(text, 11, 30)
    assert [text[left:right] for left, right in spans] == ["One here.", "Two here."]


_ALPHABET = st.text(alphabet="aZé .!?。！；\n\t؟।ก中1\"'”」)…" + "\u3000\u200d", max_size=300)


@given(text=_ALPHABET | st.text(max_size=200))
def test_spans_are_ordered_trimmed_and_hold_every_visible_character(text: str) -> None:
    spans = sentence_spans(text)
    position = 0
    for left, right in spans:
        assert position <= left < right <= len(text)
        assert text[position:left].strip() == ""
        assert text[left:right] == text[left:right].strip()
        position = right
    assert text[position:].strip() == ""
