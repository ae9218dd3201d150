"""Text in the encodings that people's files have, short ones above all."""

import random

import pytest

from app.parsing.encoding import decode_text
from app.parsing.errors import ParseFailed

CHINESE = [
    "今天天气很好，我们一起去公园散步吧。",
    "阿里巴巴由马云在杭州创立，总部位于杭州市",
    "合同编号：2024-001 金额：五万元",
    "姓名,年龄\n张伟,35",
    "用户手册 version 2.0",
    "产品质量检验报告单据",
    "项目预算",
    "你好",
]
RUSSIAN = ["Привет, как дела сегодня?", "Договор купли-продажи № 15", "ООО «Ромашка» и партнёры", "Москва"]
WESTERN = [
    "Müller führt die Größe aus",
    "Le café est fermé à l’été",
    "El niño comió piñas",
    "100 € pro Stück",
    "Straße",
]
JAPANESE = ["今日は天気がいいですね。散歩に行こう", "東京都は日本の首都である", "株式会社", "カタカナ", "契約書第一条"]


@pytest.mark.parametrize(
    ("codec", "texts"),
    [
        ("utf-8", CHINESE + RUSSIAN + WESTERN + JAPANESE),
        ("utf-8-sig", CHINESE + RUSSIAN),
        ("utf-16", CHINESE + RUSSIAN + ["plain words"]),
        ("utf-16-le", [*CHINESE[:2], *RUSSIAN, "plain words", "اللغة العربية جميلة"]),
        ("utf-16-be", [*CHINESE[:2], *RUSSIAN, "plain words", "นี่คือภาษาไทย"]),
        ("utf-32", CHINESE),
        ("gbk", CHINESE),
        ("gb18030", [*CHINESE, "㐀㐁是生僻字，也要能读出来"]),
        ("cp1251", RUSSIAN),
        ("cp1252", WESTERN),
        ("cp932", JAPANESE),
        ("euc_jp", JAPANESE[:2]),
        ("iso2022_jp", JAPANESE),
        ("big5", ["今天天氣很好我們去公園", "台北市信義區的高樓大廈"]),
        ("cp949", ["오늘 날씨가 좋네요", "대한민국의 수도는 서울이다"]),
        ("koi8_r", RUSSIAN[:1]),
        ("cp1253", ["Καλημέρα σας, τι κάνετε"]),
        ("cp1255", ["ירושלים היא עיר הבירה של מדינת ישראל"]),
        ("cp1256", ["مرحبا كيف حالك اليوم"]),
        ("cp874", ["สวัสดีครับ วันนี้อากาศดี"]),
    ],
)
def test_short_texts_are_read_in_their_encoding(codec: str, texts: list[str]) -> None:
    assert [decode_text(text.encode(codec)) for text in texts] == texts


def test_long_texts_are_sampled_and_then_decoded_whole() -> None:
    text = "客户名单与合同金额。\n" * 20_000 + "最后一行"
    assert decode_text(text.encode("gbk")) == text


def test_a_declared_charset_decides_only_where_the_bytes_allow_it() -> None:
    assert decode_text("±1 µm".encode("latin-1"), "iso-8859-1") == "±1 µm"
    assert decode_text("你好世界".encode(), "gbk") == "你好世界"
    assert decode_text("Straße".encode("cp1252"), "no-such-charset") == "Straße"


def test_a_utf8_file_cut_off_in_a_character_keeps_the_rest() -> None:
    assert decode_text(("中文" * 100).encode()[:-1]) == "中文" * 99 + "中\ufffd"


def test_stray_bytes_in_an_ascii_log_cost_only_themselves() -> None:
    assert decode_text(b"line of a log\n" * 50 + b"\x81\x8d\n" + b"another\n" * 50).count("line of a log") == 50


@pytest.mark.parametrize("size", [200, 5_000, 200_000])
def test_binary_data_is_told_to_be_undecodable(size: int) -> None:
    with pytest.raises(ParseFailed) as failure:
        decode_text(random.Random(size).randbytes(size))
    assert failure.value.reason == "undecodable_text"
    assert "UTF-8" in failure.value.detail


def test_nul_bytes_in_text_do_not_make_it_binary() -> None:
    assert decode_text(b"a\x00b hello\x00") == "a\x00b hello\x00"
