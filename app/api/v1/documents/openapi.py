"""Parts of the documentation of documents that FastAPI cannot read from the code."""

import json
from typing import Any

from pydantic import BaseModel

from app.api.v1.documents.bodies import BulkForm, ContentForm, ManifestLine, TextContent, TextDocument, UploadForm

# What is widely used for one JSON value a line.
MANIFEST = "application/x-ndjson"
_PARTS = {"titles": {"contentType": "application/json"}, "metadata": {"contentType": "application/json"}}


def _body(form: type[BaseModel], text: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """A body that is files in a form or one text as JSON."""
    schema = form.model_json_schema(ref_template="#/components/schemas/{model}")
    schema["properties"]["files"]["items"] = {"type": "string", "format": "binary"}
    return {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": schema, "encoding": _PARTS, "examples": {"files": example}},
            "application/json": {
                "schema": text.model_json_schema(ref_template="#/components/schemas/{model}"),
                "examples": {"text": {"value": text.model_config["json_schema_extra"]["examples"][0]}},  # type: ignore[index]
            },
        },
    }


UPLOAD_BODY = _body(
    UploadForm,
    TextDocument,
    {
        "summary": "Two files with metadata",
        "value": {"files": ["docs/a/readme.md", "docs/b/readme.md"], "metadata": '{"source": "wiki"}'},
    },
)
CONTENT_BODY = _body(ContentForm, TextContent, {"summary": "One file", "value": {"files": ["docs/a/readme.md"]}})


def _bulk_body() -> dict[str, Any]:
    form = BulkForm.model_json_schema(ref_template="#/components/schemas/{model}")
    form["properties"]["files"]["items"] = {"type": "string", "format": "binary"}
    line = ManifestLine.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    return {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": form,
                "encoding": {"metadata": _PARTS["metadata"]},
                "examples": {"files": {"summary": "Two files", "value": {"files": ["a.txt", "docs/b.pdf"]}}},
            },
            MANIFEST: {
                "schema": {"type": "string", "description": "One JSON object a line: a text document with `ref`."},
                "example": json.dumps(line) + "\n",
            },
        },
    }


BULK_BODY = _bulk_body()
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
