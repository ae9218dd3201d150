"""Names in Chinese (and the Chinese characters and katakana of Japanese), by jieba's parts of speech and word ends."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import rjieba

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.text.concepts.caseless import cjk_words, is_katakana
from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Script, tokens

_TAG_TYPES: Final = {
    "nr": "person",
    "nrt": "person",
    "nrfg": "person",
    "ns": "location",
    "nt": "organization",
    "nz": "concept",
}
_END_TYPES: Final = (
    (re.compile("(?:大学|学院|公司|集团|银行|委员会|协会|学会|法院|法庭|议会|国会|政府|军队|党|教会|俱乐部|研究所|部|局|社|院|联盟|组织|球队|队)$"), "organization"),
    (re.compile("(?:[省市县区州郡镇村河江湖海山岛港湾洋峡]|海峡|半岛|沙漠|高原|平原|山脉|机场|公园|大街|路|城|国|王国|帝国|共和国)$"), "location"),
    (re.compile("(?:战争|之战|战役|革命|起义|运动会|世界杯|奥运会|会议|条约|协定|事件|大赛|锦标赛|超级碗)$"), "event"),
    (re.compile("(?:法案|宪法|宣言|法典|圣经|公约)$"), "content"),
)  # fmt: skip
_JOINABLE_TAGS: Final = frozenset({"n", "vn", "nz", "ns", "nt", "j", "nr", "b", "f", "a", "l"})
_TITLED: Final = re.compile("《([^《》]{2,30})》")
_FOREIGN: Final = re.compile("[\u4e00-\u9fff]{1,8}(?:[·•・][\u4e00-\u9fff]{1,8}){1,3}")
_NOT_NAMES: Final = frozenset(
    {
        "上帝",
        "国王",
        "王国",
        "帝国",
        "共和国",
        "国家",
        "城市",
        "地区",
        "政府",
        "总统",
        "公司",
        "大学",
        "学院",
        "全国",
        "本国",
        "中央",
        "东部",
        "西部",
        "南部",
        "北部",
        "中部",
    }
)


def chinese_names(sentences: Sequence[str], language: str) -> Iterator[Mention]:
    """Persons, places, organisations and other names of the sentences, with repeats."""
    places = place_names(language)
    for index, sentence in enumerate(sentences):
        taken: list[tuple[int, int]] = []
        for match in (*_TITLED.finditer(sentence), *_FOREIGN.finditer(sentence)):
            group = 1 if match.re is _TITLED else 0
            taken.append(match.span())
            yield Mention(match[group], "content" if group else "person", index, match.start())
        for token in tokens(sentence):
            if token.script is Script.CJK and not any(left <= token.start < right for left, right in taken):
                yield from _of_run(token.text, token.start, index, places, is_japanese=language == "ja")


def _of_run(run: str, offset: int, sentence: int, places: dict[str, str], *, is_japanese: bool) -> Iterator[Mention]:
    if is_japanese:
        for word in cjk_words(run):
            if (is_katakana(word) and len(word) > 2) or word in places:
                yield Mention(word, "location" if word in places else "concept", sentence, offset + run.find(word))
        return
    position = 0
    for word, tag in rjieba.tag(run):
        kind = "location" if word in places else _TAG_TYPES.get(tag)
        if kind and len(word) > 1 and word not in STOP_WORDS and word not in _NOT_NAMES:
            yield Mention(word, _by_end(word) or kind, sentence, offset + position)
        position += len(word)


def _by_end(word: str) -> str | None:
    return next((kind for pattern, kind in _END_TYPES if pattern.search(word)), None)
