"""What may be sent about documents."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.fields import Body, Filename, Metadata, Ref, Title


class TextDocument(Body):
    """A document given as text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"title": "Shift report", "text": "Press 4 was stopped at 14:10 ...", "metadata": {"shift": 2}}
            ]
        }
    )

    title: Title
    text: str = Field(description="The whole text, in the format that `media_type` says.")
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    filename: Filename | None = Field(default=None, description="Shown in citations; made from the title if left out.")
    metadata: Metadata = Field(default_factory=dict)


class ManifestLine(TextDocument):
    """A line of a manifest: a document given as text, with a name of yours for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"ref": "crm-4711", "title": "Shift report", "text": "Press 4 was stopped ..."}]
        }
    )

    ref: Ref | None = Field(default=None, description="Comes back in the result of this line.")


class TextContent(Body):
    """A new content for a document, given as text. What is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Press 4 was stopped at 14:30 ..."}]})

    text: str = Field(description="The whole text, in the format that `media_type` says.")
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    title: Title | None = None
    filename: Filename | None = Field(default=None, description="Left out: the old name, with an ending that fits.")
    metadata: Metadata | None = None


class UploadForm(BaseModel):
    """Files as multipart/form-data. All are taken in, or none."""

    files: list[bytes] = Field(
        min_length=1, description="One part a file. Its name may hold folders, which tell files of one name apart."
    )
    titles: list[Title] | None = Field(default=None, description="JSON: a title for each file; else the file's name.")
    metadata: Metadata | None = Field(default=None, description="JSON: the metadata of every file of this request.")


class BulkForm(BaseModel):
    """Files as multipart/form-data, each taken in by itself."""

    metadata: Metadata | None = Field(
        default=None, description="JSON: the metadata of every file. It stands before the files."
    )
    files: list[bytes] = Field(min_length=1, description="One part a file, with its name.")


class ContentForm(BaseModel):
    """A new content as multipart/form-data: one file."""

    files: list[bytes] = Field(min_length=1, max_length=1, description="The file; its name becomes the document's.")
    titles: list[Title] | None = Field(default=None, description="JSON: a list of one title; else the title stays.")
    metadata: Metadata | None = Field(default=None, description="JSON: replaces the metadata; else it stays.")


class DocumentUpdate(Body):
    """What to change; `metadata` replaces all there was."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"department": "quality", "year": 2026}}]})

    title: Title | None = None
    metadata: Metadata | None = None
