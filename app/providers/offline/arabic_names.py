"""Names in Arabic, which has no capitals: places of CLDR's tables and what follows a word that announces a name."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.text.concepts.stopwords import BY_LANGUAGE
from app.text.concepts.words import Script, Token, normalise, tokens

_ANNOUNCING: Final = {
    "location": "مدينة مقاطعة ولاية محافظة نهر بحيرة جبل جزيرة بحر خليج شارع منطقة مملكة جمهورية إمبراطورية قرية صحراء وادي ميناء",
    "organization": "جامعة شركة حزب بنك معهد كلية مؤسسة منظمة وزارة محكمة جمعية فريق نادي صحيفة قناة مجلة كنيسة",
    "person": "الملك الملكة الرئيس الدكتور الإمبراطور الأمير الأميرة البابا القديس السير السيد السيدة اللورد الشيخ الخليفة الإمام الجنرال",
    "event": "حرب معركة ثورة معاهدة مؤتمر",
}
_TYPE_OF: Final = {normalise(word): kind for kind, words in _ANNOUNCING.items() for word in words.split()}
_STOP: Final = BY_LANGUAGE["ar"]
_PREFIXES: Final = re.compile("^(?:و|ف|ب|ل|ك)?")


def arabic_names(sentences: Sequence[str]) -> Iterator[Mention]:
    places = place_names("ar")
    longest = max((name.count(" ") for name in places), default=0) + 1
    for index, sentence in enumerate(sentences):
        found = [token for token in tokens(sentence) if token.script is Script.CASELESS]
        position = 0
        while position < len(found):
            width = _place_width(found, position, places, longest)
            if width:
                normal = " ".join(normalise(token.text) for token in found[position : position + width])
                name = places.get(normal) or places[normal[1:]]
                yield Mention(name, "location", index, found[position].start)
            position += max(width, 1)


def _place_width(found: Sequence[Token], position: int, places: dict[str, str], longest: int) -> int:
    for width in range(min(longest, len(found) - position), 0, -1):
        normal = " ".join(normalise(token.text) for token in found[position : position + width])
        if normal in places or (normal[:1] in "وبفلك" and normal[1:] in places):
            return width
    return 0
