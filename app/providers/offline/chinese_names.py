"""Names in Chinese (and the Chinese characters and katakana of Japanese), by jieba's parts of speech and word ends."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import rjieba

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.text.concepts.caseless import cjk_words, is_katakana
from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Script, tokens

# Characters by which foreign names are written; a name is a run of them around the dot.
_SOUNDS: Final = (
    "阿埃艾爱安昂奥澳巴白柏班邦保堡鲍贝本比彼毕边宾波伯勃博布蔡采查柴昌茨达戴丹当道得德登邓迪狄蒂第丁顿东杜多厄恩尔法凡范方菲费芬冯佛弗夫福富盖甘冈高戈哥格葛根贡古"
    "瓜哈海汉豪赫黑亨洪胡华怀惠霍基吉加贾简杰金津喀卡凯坎康考柯科克肯孔库夸昆拉莱赖兰朗劳勒雷蕾黎李里理力历利立丽莉连廉良列烈林琳龙隆卢鲁路伦罗洛吕马玛麦迈曼芒毛茅梅门蒙孟"
    "米密缅敏明缪摩莫墨默姆木穆拿娜纳乃奈南内嫩能尼妮涅宁牛纽农努诺欧帕潘庞培佩彭蓬皮匹平泼坡珀普齐奇契恰千钱乔切钦琴琼丘曲让热仁日荣茹儒瑞若撒萨塞赛桑瑟森沙莎山尚绍"
    "舍什申生圣盛施诗史士司丝斯思松苏素所索塔泰坦唐汤陶忒特腾提梯田铁廷通图土托陀瓦外万汪王威维韦魏温文翁沃乌武西希锡悉席夏香小晓肖谢辛兴休修许雪逊亚扬杨耶叶伊依易因英永尤于约云赞早泽扎詹张章"
    "珍芝志治朱竺卓兹宗祖佐密勒汗那雅伽娅妮姬柳奎瑙琪蓓姗莹娃歇"
)
_FOREIGN: Final = re.compile(f"[{_SOUNDS}]{{1,6}}(?: ?[·•・] ?[A-Z{_SOUNDS}]{{1,7}}){{1,3}}")
_SOUND_PIECE: Final = re.compile(f"^[{_SOUNDS}]+$")
_WORDS_OF_ONE_SOUND: Final = frozenset("于万本金山早让所外素当行马安力及来对以可能会")
_WORD_ENDS: Final = frozenset("体性化器机学者员物质力度率法论家人派族")
_MIN_SOUNDS: Final = 3
_MAX_SOUNDS: Final = 8
_SURNAMES: Final = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵"
    "万覃武钱戴严莫孔向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单裴霍涂成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤"
)
_TITLES: Final = frozenset(
    re.findall(
        r"\w+",
        """
    主席 主教 伯爵 作家 先生 公爵 医生 博士 历史学家 哲学家 国王 女士 女王 导演 将军 工程师 律师 总理 总统 总裁 教授 教皇 数学家 校长 歌手 演员 爵士 牧师 物理学家 球员 画家 皇帝 科学家 经济学家 董事长 记者 诗人 部长 院士 首相
""",
    )
)
_END_TYPES: Final = (
    (re.compile("(?:大学|学院|公司|集团|银行|委员会|协会|学会|法院|法庭|议会|国会|政府|教会|俱乐部|研究所|研究院|联盟|联合会|组织|共和党|民主党|工党|博物馆|图书馆|交响乐团|出版社|电视台|基金会)$"), "organization"),
    (re.compile("(?:[省市县区州郡镇村河江湖海岛港湾洋峡]|山脉|海峡|半岛|沙漠|高原|平原|机场|公园|大街|王国|帝国|共和国)$"), "location"),
    (re.compile("(?:战争|之战|战役|革命|起义|运动会|世界杯|奥运会|条约|协定|事件|大赛|锦标赛|超级碗)$"), "event"),
    (re.compile("(?:法案|宪法|宣言|法典|公约)$"), "content"),
)  # fmt: skip
_HEAD: Final = re.compile(
    "^(?:大学|学院|公司|集团|银行|委员会|协会|学会|法院|议会|政府|俱乐部|研究所|研究院|博物馆|图书馆|出版社|电视台|基金会|机场|公园|海峡|半岛|战争|战役|革命|起义|条约|法案|宪法)$"
)  # fmt: skip
_PERSON_TAGS: Final = frozenset({"nr", "nrt", "nrfg"})
_MIN_ORGANISATION_CHARS: Final = 4
_STARTING_TAGS: Final = frozenset({"ns", "nr", "nt", "nz", "nrt"})
_MIDDLE_TAGS: Final = frozenset({"n", "vn", "ns", "nz", "j", "b"})
_ENDINGS: Final = frozenset(
    [
        "人",
        "族",
        "语",
        "郡",
        "队",
        "派",
        "州",
        "县",
        "市",
        "镇",
        "省",
        "河",
        "湖",
        "山",
        "岛",
        "海",
        "湾",
        "路",
        "街",
        "桥",
        "奖",
        "教",
        "教会",
        "大道",
        "大街",
        "大桥",
        "大教堂",
        "定理",
        "原理",
        "效应",
    ]
)
_PEOPLE_ENDINGS: Final = frozenset({"人", "族", "语", "派", "教会"})
_TITLED: Final = re.compile("《([^《》]{2,30})》")
_MAX_JOINED: Final = 4
# What jieba's dictionary calls places or persons and is neither.
_NOT_NAMES: Final = frozenset(
    re.findall(
        r"\w+",
        """
    上帝 国王 王国 帝国 共和国 国家 城市 地区 政府 总统 公司 大学 学院 全国 本国 中央 东部 西部 南部 北部 中部 海洋 山脉 英里 贝壳 家族 顾问 大海 海岸 沿海 内海 山区 市区 州 省 县
    区 国会 议会 法院 山 海 湖 江 河 大洋 海湾 海域 海峡 半岛 岛屿 群岛 平原 高原 沙漠 盆地 山谷 山地 河谷 首都 省会 乡村 村庄 城镇 小镇 市镇 机场 公园 党 温度 高温 低温 高速
    高度 高等 安全 安排 金属 金融 石油 石灰 白色 黄色 黄金 马力 和平 和谐 平等 文明 明显 纪念 成功 成立 成本 任何 万 方面 方式 方法 向前 时报 时间 双方 广场 车站 大桥 教堂 皇宫
    皇家 王朝 王室 朝廷 宫廷 内地 外地 当地 本地 各地 殖民地 欧元 美元 英镑 江山 大街 街道 市场 大陆 次大陆 东方 西方 南方 北方 西南 东南 西北 东北 外国 关联 广义 福利 海洋生物
    联合政府 四合院 广播公司 商学院 福利金 联盟党 大会党 新教政府 世界 国际 地球 太阳 月球 人民 民族 社会 政治 经济 文化 大都 大都市 都市区 上市公司 大国 强国 入口 出口 绥靖 礼拜 非军事化 口岸 平方公里 公里 平方英里 冰川 沿海地区 都市人口 朝圣 治国 法度
""",
    )
)


def chinese_names(sentences: Sequence[str], language: str) -> Iterator[Mention]:
    """Persons, places, organisations and works named in the sentences, with repeats.

    A word that jieba calls a person's name is one only with a surname or foreign sounds, and with a title beside it or
    more than one occurrence: unknown words are mostly called so wrongly.
    """
    places = place_names(language)
    counts = Counter(word for sentence in sentences for word, tag in _tagged(sentence) if tag == "nr")
    for index, sentence in enumerate(sentences):
        if language == "ja":
            yield from _japanese(sentence, index, places)
            continue
        rest = sentence
        for match in (*_TITLED.finditer(sentence), *_FOREIGN.finditer(sentence)):
            is_title = match.re is _TITLED
            yield Mention(
                match[1 if is_title else 0].replace(" ", ""), "content" if is_title else "person", index, match.start()
            )
            rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
        yield from _words(rest, index, places, counts)


@cache
def _dictionary() -> rjieba.Jieba:
    return rjieba.Jieba()


def _tagged(sentence: str) -> list[tuple[str, str]]:
    return rjieba.tag(sentence)


def _words(sentence: str, index: int, places: dict[str, str], counts: Counter[str]) -> Iterator[Mention]:
    tagged = _tagged(sentence)
    offset = position = 0
    while position < len(tagged):
        sounds = _sound_width(tagged, position)
        width = max(_joined(tagged, position), sounds)
        word = "".join(part for part, _ in tagged[position : position + width])
        if width == sounds and width > 1:
            kind: str | None = "concept"
        else:
            kind = _by_end(word) if width > 1 else _kind(tagged, position, places, counts)
        if kind and len(word) > 1 and word not in STOP_WORDS and word not in _NOT_NAMES:
            ending = tagged[position + width][0] if position + width < len(tagged) else ""
            endings = _PEOPLE_ENDINGS if word in places else _ENDINGS
            if ending in endings and kind in ("location", "concept"):
                # The name goes on: 老挝 + 人, 尼尔森 + 大道.
                word, kind, width = word + ending, _by_end(word + ending) or "concept", width + 1
            yield Mention(word, kind, index, offset)
        offset += len(word)
        position += width


def _joined(tagged: Sequence[tuple[str, str]], position: int) -> int:
    """How many words from `position` form one name with a head: 上海 + 博物馆; 1 for all others."""
    word, tag = tagged[position]
    if tag not in _STARTING_TAGS or word in _NOT_NAMES:
        return 1
    for end in range(position + 1, min(position + _MAX_JOINED, len(tagged))):
        following, following_tag = tagged[end]
        if _HEAD.match(following):
            return end - position + 1
        if following_tag not in _MIDDLE_TAGS:
            break
    return 1


def _sound_width(tagged: Sequence[tuple[str, str]], position: int) -> int:
    """How many words from `position` are pieces of one foreign name that jieba took apart; 1 where none was."""
    end = position
    while end < len(tagged) and _is_sound_piece(*tagged[end]):
        is_place = tagged[end][1] == "ns" and _dictionary().has_word(tagged[end][0])
        if is_place and end > position and len(tagged[end - 1][0]) == 1:
            return 1  # 多 + 墨西哥: the sound before a known place is a word of its own
        end += 1
    length = sum(len(word) for word, _ in tagged[position:end])
    is_name = any(tag in _PERSON_TAGS or tag == "ns" for _, tag in tagged[position:end])
    return end - position if is_name and _MIN_SOUNDS <= length <= _MAX_SOUNDS else 1


def _is_sound_piece(word: str, tag: str) -> bool:
    if not _SOUND_PIECE.match(word) or word in _WORDS_OF_ONE_SOUND or word in _NOT_NAMES:
        return False
    return tag in _PERSON_TAGS or tag == "ns" or len(word) == 1 or not _dictionary().has_word(word)


def _kind(tagged: Sequence[tuple[str, str]], position: int, places: dict[str, str], counts: Counter[str]) -> str | None:
    word, tag = tagged[position]
    if word in places:
        return "location"
    if tag == "ns":
        return (_by_end(word) or "location") if _dictionary().has_word(word) else None
    if tag == "nt":
        return (_by_end(word) or "organization") if len(word) >= _MIN_ORGANISATION_CHARS else None
    if tag in _PERSON_TAGS:
        beside = {tagged[other][0] for other in (position - 1, position + 1) if 0 <= other < len(tagged)}
        # Words of the dictionary that are called names and repeated are mostly words: 蓝藻, 童工, 王子.
        is_repeated = counts[word] > 1 and (len(word) > 2 or not _dictionary().has_word(word))
        is_likely = is_repeated or bool(beside & _TITLES)
        if is_likely and word[0] in _SURNAMES and word[-1] not in _WORD_ENDS:
            return "person"
        return "concept" if len(word) >= _MIN_SOUNDS and _SOUND_PIECE.match(word) else None
    return "concept" if tag == "nz" and word.endswith("奖") else None


def _japanese(sentence: str, index: int, places: dict[str, str]) -> Iterator[Mention]:
    for token in tokens(sentence):
        if token.script is Script.CJK:
            for word in cjk_words(token.text):
                if (is_katakana(word) and len(word) > 2) or word in places:
                    kind = "location" if word in places else "concept"
                    yield Mention(word, kind, index, token.start + token.text.find(word))


def _by_end(word: str) -> str | None:
    return next((kind for pattern, kind in _END_TYPES if pattern.search(word)), None)
