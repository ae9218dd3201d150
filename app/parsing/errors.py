"""Why a document could not be turned into text: stable codes, each raised with a sentence a person can act on.

ParseFailed (Invalid): empty_document, blank_document, encrypted_document, no_text_layer, broken_document,
undecodable_text, document_too_long, parse_timeout, parse_memory
└── UnsupportedFormat: unsupported_media_type
"""

from typing import Any

from app.errors import Invalid, UnsupportedMediaType


class ParseFailed(Invalid):
    """The document can never be indexed as it is."""

    code = "parse_failed"
    title = "The document could not be read"

    def __init__(self, code: str, detail: str, **facts: Any) -> None:
        super().__init__(detail, code=code, **facts)


class UnsupportedFormat(ParseFailed, UnsupportedMediaType):
    """Not one of the accepted formats, or not what its name says."""

    code = "unsupported_media_type"
    title = "Unsupported media type"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(self.code, detail, **facts)
