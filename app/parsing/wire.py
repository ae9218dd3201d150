"""The result of a child process as a file: written by the child, read by the process that started it."""

import json
from pathlib import Path
from typing import Any, cast

from app.parsing.errors import ParseFailed, UnsupportedFormat
from app.text.document import Block, BlockKind, SourceText


def write_source(path: Path, source: SourceText) -> None:
    """Blocks go as offsets into the text; heading paths, which repeat, as positions in a list of them."""
    paths: dict[tuple[str, ...], int] = {}
    blocks = [
        [block.kind, block.page, block.char_start, block.char_end, paths.setdefault(block.heading_path, len(paths))]
        for block in source.blocks
    ]
    _write(
        path,
        {
            "text": source.text,
            "title": source.title,
            "page_count": source.page_count,
            "paths": list(paths),
            "blocks": blocks,
        },
    )


def write_failure(path: Path, failure: ParseFailed) -> None:
    _write(path, {"code": failure.reason, "detail": failure.detail, "facts": failure.facts})


def read_result(path: Path) -> SourceText:
    """The child's document; raises the failure it wrote in place of one, OSError or ValueError for no result."""
    result: dict[str, Any] = json.loads(path.read_bytes())
    if "code" in result:
        if result["code"] == UnsupportedFormat.code:
            raise UnsupportedFormat(result["detail"], **result["facts"])
        raise ParseFailed(result["code"], result["detail"], **result["facts"])
    text: str = result["text"]
    paths = [tuple(path) for path in result["paths"]]
    blocks = tuple(
        Block(cast(BlockKind, kind), text[start:end], page, start, end, paths[path_index])
        for kind, page, start, end, path_index in result["blocks"]
    )
    return SourceText(text, blocks, result["page_count"], result["title"])


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
