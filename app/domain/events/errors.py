"""Why something cannot be done with a webhook."""

from app.errors import Conflict, Invalid, NotFound


class WebhookNotFound(NotFound):
    """There is no such webhook in this workspace."""

    code = "webhook_not_found"
    title = "Webhook not found"


class WebhookUrlRefused(Invalid):
    """Only public addresses are called, over https, without credentials in the URL."""

    code = "webhook_url_refused"
    title = "This address is not called"


class WebhookDisabled(Conflict):
    """The webhook is disabled; enable it first."""

    code = "webhook_disabled"
    title = "The webhook is disabled"


class TooManyWebhooks(Conflict):
    """The workspace has as many webhooks as it may have."""

    code = "too_many_webhooks"
    title = "Too many webhooks"


class EventIdUnknown(Invalid):
    """Larger than any id that this workspace's events have had; `last_event_id` is the last one."""

    code = "event_id_unknown"
    title = "No event has had this id yet"
