"""Why something cannot be done with a document or an upload."""

from uuid import UUID

from app.errors import Conflict, NotFound, TooLarge


class DocumentNotFound(NotFound):
    """There is no such document in this workspace."""

    code = "document_not_found"
    title = "Document not found"

    @classmethod
    def of(cls, document_id: UUID) -> "DocumentNotFound":
        return cls(f"There is no document {document_id} in this workspace.", document_id=document_id)


class PassageNotFound(NotFound):
    """There is no such passage in this workspace; its document may have been deleted."""

    code = "passage_not_found"
    title = "Passage not found"


class DocumentDeleting(Conflict):
    """The document is being deleted."""

    code = "document_deleting"
    title = "The document is being deleted"


class NothingToRetry(Conflict):
    """Only failed, partial or cancelled indexes can be retried, once what a timeout left has been removed."""

    code = "nothing_to_retry"
    title = "Nothing of this document can be retried now"


class NothingToCancel(Conflict):
    """Nothing of the document is waiting or being worked on."""

    code = "nothing_to_cancel"
    title = "Nothing of this document can be called off"


class FileTooLarge(TooLarge):
    """One of the files is larger than this installation accepts; `limit_bytes` says how large it may be."""

    code = "file_too_large"
    title = "The file is too large"


class TooManyFiles(TooLarge):
    """The request holds more files than this installation accepts at once; `limit_files` says how many."""

    code = "too_many_files"
    title = "Too many files in one request"
