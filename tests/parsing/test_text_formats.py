"""Text, Markdown, HTML, CSV and JSON: what of them becomes which block."""

import json
from pathlib import Path

import pytest

from app.text.passages import split_passages
from app.text.tokens import count_tokens
from tests.parsing.samples import body, parse, shown


async def test_plain_text_becomes_paragraphs_and_keeps_wrapped_lines_together(tmp_path: Path) -> None:
    source = await parse(
        tmp_path, "a.txt", "A line that\ngoes on here.\r\n\r\n\r\nSecond.\r\n \nThird.\n- one\n- two\n- three"
    )
    assert shown(source) == [
        ("paragraph", "A line that\ngoes on here."),
        ("paragraph", "Second."),
        ("list", "Third.\n- one\n- two\n- three"),
    ]


async def test_lines_that_are_paragraphs_become_blocks_of_their_own(tmp_path: Path) -> None:
    long = "这一行没有被编辑器折断，因此行尾就是段落的结尾，应当分开处理。" * 5
    source = await parse(tmp_path, "a.txt", f"{long}\n　　第二段。\n{long}")
    assert [block.text for block in source.blocks] == [long, "第二段。".rjust(6, "　"), long]


async def test_gbk_text_of_twenty_characters_is_read(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.txt", "阿里巴巴由马云在杭州创立，总部位于杭州市".encode("gbk"))
    assert source.text == "阿里巴巴由马云在杭州创立，总部位于杭州市"


async def test_a_declared_charset_is_used(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a", "±1 µm".encode("latin-1"), "text/plain; charset=iso-8859-1")
    assert source.text == "±1 µm"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.json"])
async def test_nul_and_control_characters_are_removed_and_the_rest_is_kept(tmp_path: Path, name: str) -> None:
    text = '"Ad\x00a\x01 met \x07Bob\x1f.\x7f\u0085Soft\u00adly\ufeff."'
    content = text if name != "a.json" else json.dumps(text)
    source = await parse(tmp_path, name, f"good before\n\n{content}\n\ngood after" if name != "a.json" else content)
    assert not any(ord(character) < 32 and character != "\n" for character in source.text)
    assert "Ada met Bob." in source.text
    assert "Softly." in source.text


async def test_decomposed_letters_are_composed(tmp_path: Path) -> None:
    assert (await parse(tmp_path, "a.txt", "Mu\u0308ller")).text == "Müller"


MARKDOWN = """---
title: "Pump manual"
tags: [a, b]
---
# Pump *P1*

Press **start**, see [the guide](http://a.example/x) and `code`.
Next line.

## Care

- clean
- oil
  1. first
  2. second

| part | price |
|------|-------|
| seal | 3 |

```sh
pump --on
```

<div>Inside <b>HTML</b></div>
"""


async def test_markdown_loses_its_marks_and_keeps_its_structure(tmp_path: Path) -> None:
    source = await parse(tmp_path, "manual.md", MARKDOWN)
    assert source.title == "Pump manual"
    assert shown(source) == [
        ("list", 'title: "Pump manual"\ntags: [a, b]'),
        ("heading", "Pump P1"),
        ("paragraph", "Press start, see the guide and code.\nNext line."),
        ("heading", "Care"),
        ("list", "- clean\n- oil\n  1. first\n  2. second"),
        ("table", "part | price\nseal | 3"),
        ("code", "pump --on"),
        ("paragraph", "Inside HTML"),
    ]
    assert source.blocks[-1].heading_path == ("Pump P1", "Care")


async def test_a_markdown_heading_closes_those_of_its_level(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.md", "# A\n\n### B\n\nb\n\n## C\n\nc\n\n# D\n\nd")
    assert [block.heading_path for block in body(source)] == [("A", "B"), ("A", "C"), ("D",)]


async def test_lists_fifteen_levels_deep_are_kept(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.md", "\n".join("  " * level + f"- level{level}" for level in range(15)))
    assert all(f"level{level}" in source.text for level in range(15))


PAGE = """<!DOCTYPE html><html><head><title>Shop</title><style>p {color: red}</style></head><body>
<nav><a href="/">menu entry</a></nav><script>var tracked = 1;</script>
<h1>Our <em>shop</em></h1>
<p>Open <b>dai</b>ly.<br>Even on
Sunday.</p>loose words
<ul><li>apples<ul><li>red</li></ul></li><li><p>pears</p></li></ul>
<table><thead><tr><th>fruit</th><th>price</th></tr></thead><tr><td>apple</td><td><p>1</p><p>EUR</p></td></tr></table>
<pre>line 1
  line 2</pre><p hidden>secret</p><div style="display: none">secret</div>
<h2>Contact</h2><img alt="a map"><div>Call <div>now</div></div>
<table><tr><td><h3>Placed</h3>by a table</td><td>text</td></tr></table>
</body></html>"""


async def test_html_keeps_what_a_reader_sees(tmp_path: Path) -> None:
    source = await parse(tmp_path, "shop.html", PAGE)
    assert source.title == "Shop"
    assert shown(source) == [
        ("heading", "Our shop"),
        ("paragraph", "Open daily.\nEven on Sunday."),
        ("paragraph", "loose words"),
        ("list", "- apples\n  - red\n- pears"),
        ("table", "fruit | price\napple | 1 EUR"),
        ("code", "line 1\n  line 2"),
        ("heading", "Contact"),
        ("paragraph", "a map"),
        ("paragraph", "Call"),
        ("paragraph", "now"),
        ("heading", "Placed"),
        ("paragraph", "by a table"),
        ("paragraph", "text"),
    ]


async def test_html_in_gbk_is_read_by_its_meta_tag(tmp_path: Path) -> None:
    page = '<html><head><meta charset="gb2312"></head><body><p>价</p></body></html>'
    assert (await parse(tmp_path, "a.htm", page.encode("gbk"))).text == "价"


async def test_html_with_an_xml_declaration_is_read(tmp_path: Path) -> None:
    page = '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>Füße</p></body></html>'
    assert (await parse(tmp_path, "a.xhtml", page)).text == "Füße"


async def test_csv_repeats_its_header_and_each_block_is_one_passage(tmp_path: Path) -> None:
    rows = [f"Person {number};{number};Town {number % 7}" for number in range(200)]
    source = await parse(tmp_path, "people.csv", "name;age;town\n" + "\n".join(rows))
    assert len(source.blocks) > 5
    assert all(block.text.startswith("name | age | town\nPerson") for block in source.blocks)
    assert [passage.text for passage in split_passages(source)] == [block.text for block in source.blocks]
    assert all(count_tokens(block.text) <= 400 for block in source.blocks)
    assert sum(block.text.count("\n") for block in source.blocks) == 200


async def test_csv_with_a_wide_header_names_each_value(tmp_path: Path) -> None:
    names = [f"measurement number {number}" for number in range(40)]
    values = [f"value {number}" if number % 2 else "" for number in range(40)]
    source = await parse(tmp_path, "wide.csv", ",".join(names) + "\n" + ",".join(values))
    assert source.text.split("\n")[0] == "measurement number 1: value 1"
    assert "measurement number 2:" not in source.text


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
async def test_csv_delimiters_are_recognised(tmp_path: Path, delimiter: str) -> None:
    text = f'a{delimiter}b\n"x, y; z"{delimiter}"two\nlines"\n'
    assert (await parse(tmp_path, "a.csv", text)).text == "a | b\nx, y; z | two lines"


async def test_json_becomes_path_and_value_lines_with_a_block_a_record(tmp_path: Path) -> None:
    value = {
        "shop": "A",
        "price": 1.10,
        "meta": {"tags": ["x", "y"]},
        "items": [{"n": "apple", "ok": True}, {"n": "p\nq"}],
    }
    source = await parse(tmp_path, "a.json", json.dumps(value).replace("1.1", "1.10"))
    assert [block.text for block in source.blocks] == [
        "shop: A\nprice: 1.10",
        "meta.tags[0]: x\nmeta.tags[1]: y",
        "items[0].n: apple\nitems[0].ok: true",
        "items[1].n: p q",
    ]


async def test_json_lines_become_a_block_a_line(tmp_path: Path) -> None:
    source = await parse(tmp_path, "a.jsonl", '{"name": "Ada", "born": 1815}\n{"name": "李雷"}\n')
    assert [block.text for block in source.blocks] == ["name: Ada\nborn: 1815", "name: 李雷"]


@pytest.mark.parametrize(("content", "place"), [('{"a": 1,}', "line 1, column 9"), ('{"a": 1}\n{"b": }', "line 1")])
async def test_broken_json_is_told_with_its_place(tmp_path: Path, content: str, place: str) -> None:
    with pytest.raises(Exception, match=place) as failure:
        await parse(tmp_path, "a.json", content)
    assert getattr(failure.value, "reason", None) == "broken_document"
