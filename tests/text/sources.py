"""Builds documents for the tests of the text road, with offsets that are right by construction."""

from app.text.document import Block, BlockKind, SourceText

Part = tuple[BlockKind, str, tuple[str, ...]]


def source_of(*parts: Part, pages: list[int] | None = None, gaps: list[str] | None = None) -> SourceText:
    """A document of blocks given as (kind, text, heading path), a blank line apart unless `gaps` says else."""
    text = ""
    blocks = []
    for index, (kind, content, path) in enumerate(parts):
        if index:
            text += gaps[index - 1] if gaps else "\n\n"
        page = pages[index] if pages else None
        blocks.append(Block(kind, content, page, len(text), len(text) + len(content), path))
        text += content
    return SourceText(text, tuple(blocks), max(pages) if pages else None, None)


def paragraphs(*texts: str, path: tuple[str, ...] = ()) -> SourceText:
    return source_of(*(("paragraph", text, path) for text in texts))
