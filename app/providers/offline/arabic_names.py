"""Names in Arabic, which has no capitals: places of CLDR's tables, first names with what follows them, and words
behind a word that announces a name.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.text.concepts.stopwords import BY_LANGUAGE
from app.text.concepts.words import Script, Token, normalise, tokens


def _set(words: str) -> frozenset[str]:
    return frozenset(normalise(word) for word in words.split())


_STOP: Final = BY_LANGUAGE["ar"]
# A title is no part of the name behind it.
_TITLES: Final = _set(
    "الملك الملكة الرئيس الدكتور الإمبراطور الأمير الأميرة البابا القديس السير السيد السيدة اللورد الشيخ الخليفة الجنرال السلطان القيصر"
)
_BARE_PLACES: Final = _set("مدينة مقاطعة ولاية محافظة قرية بلدة ميناء")
# These are part of the name: نهر الراين, جامعة شيكاغو.
_HEADS: Final[dict[str, str]] = {
    normalise(word): kind
    for kind, words in {
        "location": "نهر بحيرة جبل جزيرة خليج بحر",
        "organization": "جامعة شركة بنك صحيفة معهد نادي",
        "event": "معركة معاهدة",
    }.items()
    for word in words.split()
}
_FIRST_NAMES: Final = _set(
    """محمد أحمد حسين عثمان يوسف إبراهيم إسماعيل موسى عيسى داود سليمان خالد مصطفى محمود أنور فاطمة عائشة
    خديجة زينب مريم جون جورج وليام ويليام توماس جيمس تشارلز شارل روبرت ريتشارد هنري إدوارد ديفيد مايكل مارتن كارل ألبرت نيكولا
    فريدريش فردريك لويس نابليون جان بيير بول فرانسيس كلود فرانسوا فرانك جوزيف أنطوان ميلتون رونالد مارغريت مارجريت هربرت يوجين غاري
    ستيفن ستيف بيل دونالد باراك هيلاري فرانكلين أبراهام بنجامين إسحاق يوهان هانس أوتو ماكس لودفيج فولفغانغ ليوناردو ماركو كريستوفر
    كريستوف فاسكو فلاديمير ميخائيل نيكولاي جوزيف ألكسندر الكسندر ماري إليزابيث إليزابث فيكتوريا كاثرين سارة جين إيما بيتر
    فيليب سيمون صموئيل دانيال ماثيو مارك لوك آرثر آرنولد ألفريد إرنست إدموند غوستاف هارولد هوارد جاك جيرارد ديوك والتر وولتر
    آدم إريك أندرو أنتوني بروس كينيث باتريك برايان جيفري جيري جيم كيفن لاري"""
)
_KUNYA: Final = _set("ابن أبو أبي عبد")
_PROCLITIC: Final = re.compile("^[وفبل]")
_ADJECTIVE_END: Final = re.compile("(?:ية|يه|ين|ون|ات|ها|هم|ه|ة)$")
_TANWEEN: Final = re.compile("[\u064b-\u064d]")
# Names of places that are far more often words.
_AMBIGUOUS: Final = _set("ترك مالي")
_NOT_BEHIND_TITLES: Final = _set("وزراء مجلس لجنة صاحب نفسه حالي سابق جديد")
_PARTICLES: Final = _set("دي دو فون بن ابن")
_DIRECTIONS: Final = _set("الشرقية الغربية الشمالية الجنوبية الوسطى")
_MAX_NAME_TOKENS: Final = 5
_MIN_CHARS_BEHIND_PROCLITIC: Final = 3
_MIN_CHARS: Final = 3


def arabic_names(sentences: Sequence[str]) -> Iterator[Mention]:
    """Places, persons and organisations of the sentences, with repeats."""
    places = {normal: name for normal, name in place_names("ar").items() if normal not in _AMBIGUOUS}
    longest = max((name.count(" ") for name in places), default=0) + 1
    for index, sentence in enumerate(sentences):
        found = list(tokens(sentence))
        position = 0
        while position < len(found):
            if found[position].script is not Script.CASELESS:
                position += 1
                continue
            width = _place_width(sentence, found, position, places, longest)
            if width:
                yield _place(sentence, found[position : position + width + 1], width, places, index)
            else:
                width, mention = _other(sentence, found, position, index)
                if mention is not None:
                    yield mention
            position += max(width, 1)


def _place_width(sentence: str, found: Sequence[Token], position: int, places: dict[str, str], longest: int) -> int:
    for width in range(min(longest, len(found) - position), 0, -1):
        tokens_here = found[position : position + width]
        if not _are_adjacent(sentence, tokens_here):
            continue
        normal = " ".join(normalise(token.text) for token in tokens_here)
        if normal in places or (_PROCLITIC.match(normal) and normal[1:] in places):
            return width
    return 0


def _place(sentence: str, found: Sequence[Token], width: int, places: dict[str, str], index: int) -> Mention:
    """The place of the first `width` tokens, and of the token behind them where it is a direction (أوروبا الشرقية)."""
    normal = " ".join(normalise(token.text) for token in found[:width])
    name = places.get(normal) or places[normal[1:]]
    if (
        len(found) > width
        and normalise(found[width].text) in _DIRECTIONS
        and _are_adjacent(sentence, found[width - 1 :])
    ):
        name = f"{name} {found[width].text}"
    return Mention(name, "location", index, found[0].start)


def _other(sentence: str, found: Sequence[Token], position: int, index: int) -> tuple[int, Mention | None]:
    """A person or a headed name at `position`, with how many tokens it took."""
    word, cut = _bare(found[position].text)
    if word in _TITLES or word in _BARE_PLACES:
        following = _following(sentence, found, position, 2 if word in _TITLES else 1)
        kind = "person" if word in _TITLES else "location"
        is_described = word in _TITLES and following and normalise(found[position + 1].text).startswith("ال")
        if following and not is_described:
            start = position + 1
            return 1 + following, _mention(sentence, found[start : start + following], 0, kind, index)
    elif word in _HEADS:
        following = _following(sentence, found, position, 1)
        if following:
            return 1 + following, _mention(sentence, found[position : position + 2], cut, _HEADS[word], index)
    elif word in _FIRST_NAMES or word in _KUNYA:
        following = _following(sentence, found, position, _MAX_NAME_TOKENS - 1)
        if following:
            return 1 + following, _mention(sentence, found[position : position + 1 + following], cut, "person", index)
    return 1, None


def _bare(text: str) -> tuple[str, int]:
    """The normal form of a word without a one-letter particle, where that makes it a known one; and letters cut off."""
    normal = normalise(text)
    known = _TITLES | _BARE_PLACES | _HEADS.keys() | _FIRST_NAMES | _KUNYA
    is_long = len(normal) > _MIN_CHARS_BEHIND_PROCLITIC
    if is_long and normal not in known and _PROCLITIC.match(normal) and normal[1:] in known:
        return normal[1:], 1
    return normal, 0


def _following(sentence: str, found: Sequence[Token], position: int, limit: int) -> int:
    """How many of the next tokens, up to `limit`, may belong to a name that began at `position`."""
    count = 0
    while count < limit and position + count + 1 < len(found):
        token = found[position + count + 1]
        if not _are_adjacent(sentence, found[position + count : position + count + 2]) or not _may_be_name(token):
            break
        count += 1
    while count and normalise(found[position + count].text) in _PARTICLES:
        count -= 1
    return count


def _may_be_name(token: Token) -> bool:
    normal = normalise(token.text)
    if normal in _PARTICLES:
        return True
    return (
        token.script is Script.CASELESS
        and len(normal) >= _MIN_CHARS
        and normal not in _STOP
        and not (_PROCLITIC.match(normal) and normal[1:] in _STOP)
        and normal not in _NOT_BEHIND_TITLES
        and not (normal.startswith("و") and normal not in _FIRST_NAMES)
        and not _ADJECTIVE_END.search(normal)
        and not _TANWEEN.search(token.text)
    )


def _are_adjacent(sentence: str, found: Sequence[Token]) -> bool:
    return all(sentence[left.end : right.start] == " " for left, right in pairwise(found))


def _mention(sentence: str, found: Sequence[Token], cut: int, kind: str, index: int) -> Mention:
    return Mention(sentence[found[0].start + cut : found[-1].end], kind, index, found[0].start)
