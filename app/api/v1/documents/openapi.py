"""Parts of the documentation of documents that FastAPI cannot read from the code."""

from typing import Any

from app.api.v1.documents.schemas import TextDocument, UploadForm

_multipart = UploadForm.model_json_schema(ref_template="#/components/schemas/{model}")
_multipart["properties"]["files"]["items"] = {"type": "string", "format": "binary"}

UPLOAD_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": _multipart,
            "encoding": {
                "titles": {"contentType": "application/json"},
                "metadata": {"contentType": "application/json"},
            },
            "examples": {
                "files": {
                    "summary": "Two files with metadata",
                    "value": {"files": ["docs/a/readme.md", "docs/b/readme.md"], "metadata": '{"source": "wiki"}'},
                }
            },
        },
        "application/json": {
            "schema": TextDocument.model_json_schema(ref_template="#/components/schemas/{model}"),
            "examples": {"text": {"value": TextDocument.model_config["json_schema_extra"]["examples"][0]}},  # type: ignore[index]
        },
    },
}
LOCATION: dict[str, Any] = {"Location": {"description": "Where to poll.", "schema": {"type": "string"}}}
RETRY_AFTER: dict[str, Any] = {
    "Retry-After": {"description": "Seconds, while the status is not final.", "schema": {"type": "integer"}}
}
CONTENT: dict[str, Any] = {
    "description": "The original",
    "content": {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}, "example": "%PDF-1.7 ..."}
    },
    "headers": {"Content-Disposition": {"description": "The file's name.", "schema": {"type": "string"}}},
}
