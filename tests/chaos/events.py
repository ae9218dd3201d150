"""What was told must be what happened: events without gaps or repetitions, and each at every webhook that asked for it."""

from collections import defaultdict

import asyncpg

from app.domain.events.signing import signature
from tests.fakes.receiver import Receiver

# One of five is refused, and sent again.
ANSWERS = [204, 204, 503, 204, 204] * 400

COUNTED = """
SELECT c.workspace_id, c.last_id, count(e.id) AS told
  FROM event_counters c LEFT JOIN events e ON (e.tenant_id, e.workspace_id) = (c.tenant_id, c.workspace_id)
 GROUP BY c.workspace_id, c.last_id HAVING count(e.id) <> c.last_id OR max(e.id) <> c.last_id"""

LAST_TOLD = """
SELECT d.filename, s.status, e.type FROM document_statuses s
  JOIN documents d ON (d.tenant_id, d.id) = (s.tenant_id, s.document_id)
  LEFT JOIN LATERAL (SELECT * FROM events e WHERE (e.tenant_id, e.document_id) = (s.tenant_id, s.document_id)
                      ORDER BY e.id DESC LIMIT 1) e ON true
 WHERE e.type IS DISTINCT FROM 'document.' || s.status OR e.version_id IS DISTINCT FROM s.version_id"""

# A version comes to rest once, and once more each time it was asked for again. Both engines of one retry are one.
TOO_MANY = """
WITH reopened AS (
  SELECT version_id, at - lag(at) OVER (PARTITION BY version_id ORDER BY at) AS pause
    FROM index_transitions WHERE from_state IN ('ready', 'partial', 'failed', 'cancelled') AND to_state = 'queued'
), expected AS (
  SELECT s.version_id, 1 + (SELECT count(*) FROM reopened r WHERE r.version_id = s.version_id
                             AND (r.pause IS NULL OR r.pause > interval '100 ms')) AS rests
    FROM document_statuses s
)
SELECT d.filename, x.rests, array_agg(e.type ORDER BY e.id) AS told
  FROM expected x JOIN versions v ON v.id = x.version_id JOIN documents d ON d.id = v.document_id
  LEFT JOIN events e ON e.version_id = x.version_id
 GROUP BY d.filename, x.version_id, x.rests HAVING count(e.id) <> x.rests"""

DELETED = """
SELECT document_id, array_agg(type ORDER BY id) AS told FROM events e
 WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = e.document_id)
 GROUP BY document_id
HAVING count(*) FILTER (WHERE type = 'document.deleted') <> 1
    OR (array_agg(type ORDER BY id DESC))[1] <> 'document.deleted'"""

MESSAGES = """
SELECT 'evt_' || replace(w.workspace_id::text, '-', '') || '_' || e.id AS id, w.id AS webhook
  FROM events e JOIN webhooks w ON (w.tenant_id, w.workspace_id) = (e.tenant_id, e.workspace_id)"""

UNDELIVERED = "SELECT state, error_code, attempts FROM webhook_deliveries WHERE state <> 'delivered'"


async def wrongly_told(connection: asyncpg.Connection) -> list[str]:
    """Events that are missing, too many, or not the last word on their document."""
    rows = {
        "numbers of events have gaps": await connection.fetch(COUNTED),
        "the last event says otherwise": await connection.fetch(LAST_TOLD),
        "rests and events differ": await connection.fetch(TOO_MANY),
        "a deletion was not told once, and last": await connection.fetch(DELETED),
    }
    return [f"{what}: {dict(row)}" for what, found in rows.items() for row in found[:5]]


async def wrongly_delivered(connection: asyncpg.Connection, receiver: Receiver, secrets: dict[str, str]) -> list[str]:
    """What a receiver that knows a message again by its `webhook-id` has not had once, as it was meant. `secrets` by webhook."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    wrong = []
    for headers, body in receiver.received:
        message = headers["webhook-id"]
        bodies[message].add(body)
        signatures = {
            signature(secret, message, int(headers["webhook-timestamp"]), body) for secret in secrets.values()
        }
        if headers["webhook-signature"] not in signatures:
            wrong.append(f"the signature of {message} is wrong")
    expected = {row["id"] for row in await connection.fetch(MESSAGES)}
    wrong += [f"the event {message} did not reach the webhook" for message in sorted(expected - bodies.keys())]
    wrong += [f"the webhook got {message}, which is no event" for message in sorted(bodies.keys() - expected)]
    wrong += [f"the webhook got {message} with different bodies" for message, each in bodies.items() if len(each) > 1]
    wrong += [f"a delivery is {dict(row)}" for row in await connection.fetch(UNDELIVERED)]
    return wrong[:10]
