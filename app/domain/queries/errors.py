"""Why a question is not answered as it was asked."""

from uuid import UUID

from app.errors import Conflict, Invalid, NotFound


class KeywordsNotUsed(Invalid):
    """The mode has no step that a model's keywords would steer."""

    code = "keywords_not_used"
    title = "The mode takes no keywords of a model"


class BudgetsNotUsed(Invalid):
    """Budgets steer the lazy modes; the mode of this query has no use for them."""

    code = "budgets_not_used"
    title = "The mode takes no budgets"


class ThemeOptionsNotUsed(Invalid):
    """Levels and relevance are of themes; the mode of this query has no use for them."""

    code = "theme_options_not_used"
    title = "The mode takes no options of themes"


class RerankNotUsed(Invalid):
    """Passages of themes stand for their theme, and are not ordered by themselves."""

    code = "rerank_not_used"
    title = "The mode takes no reranker"


class QueryRequired(Invalid):
    """Only `themes` answers when nothing is asked: it then tells what the corpus is about."""

    code = "query_required"
    title = "The question is missing"


class ChatModelMissing(Conflict):
    """What is asked for takes a chat model, which is chosen when a workspace is created."""

    code = "chat_model_missing"
    title = "The workspace has no chat model"


class QueryNotFound(NotFound):
    """There is no such query in the log of this workspace: it was not logged, it is too long ago, or it is not yours."""

    code = "query_not_found"
    title = "Query not found"

    @classmethod
    def of(cls, query_id: UUID) -> "QueryNotFound":
        return cls(f"There is no query {query_id} in the log of this workspace.", query_id=query_id)


class NotInEvidence(Invalid):
    """A verdict is about a passage that was not in the answer, or whose document is gone."""

    code = "not_in_evidence"
    title = "The passage is not part of the answer"
