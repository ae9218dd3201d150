"""Events reach webhooks: signed, again until they are taken, and never at an address that is nobody else's business."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import text

from app.bootstrap import Container, webhook_client
from app.db.base import WorkspaceId
from app.db.session import Database
from app.domain.events.addresses import is_public
from app.domain.events.delivery import WebhookSender, backoff_seconds
from app.domain.events.signing import signature
from app.domain.tenants.records import Role
from app.main import create_app
from app.settings import Settings
from tests.api.conftest import Connect
from tests.api.documents import set_state, upload_text
from tests.factories import Tenancy
from tests.fakes.receiver import Receiver, open_receiver

READY = {"state": "ready", "stage": "done"}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as receiver:
        yield receiver


@pytest.fixture
def local(settings: Settings) -> Settings:
    """Private addresses are allowed, and what is tried again is due at once."""
    changes = {"webhook_allow_private": True, "webhook_backoff_seconds": 1e-6, "webhook_max_attempts": 3}
    return settings.model_copy(update=changes)


@pytest.fixture
async def sender(database: Database, local: Settings) -> AsyncIterator[WebhookSender]:
    async with webhook_client() as client:
        yield WebhookSender(database, local, client)


@pytest.fixture
async def admin(
    container: Container, local: Settings, connect: Connect, tenancy: Tenancy
) -> AsyncIterator[httpx.AsyncClient]:
    """Talks to an API that allows private addresses."""
    headers = {"Authorization": (await connect(tenancy)).headers["authorization"]}
    app = create_app(replace(container, settings=local))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis", headers=headers) as client:
            yield client


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace()


@pytest.fixture
def url(workspace_id: WorkspaceId) -> str:
    return f"/v1/workspaces/{workspace_id}/webhooks"


@pytest.fixture
async def webhook(admin: httpx.AsyncClient, url: str, receiver: Receiver) -> Any:
    response = await admin.post(url, json={"url": f"{receiver.url}/hook"})
    assert response.status_code == 201, response.text
    return response.json()


async def ready(client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId) -> Any:
    document = await upload_text(client, workspace_id)
    await set_state(tenancy, document, "lazy", **READY)
    return document


async def deliveries(client: httpx.AsyncClient, webhook: Any) -> list[Any]:
    link = f"/v1/workspaces/{webhook['workspace_id']}/webhooks/{webhook['id']}/deliveries"
    found: list[Any] = (await client.get(link)).json()["items"]
    return found


async def test_an_event_is_sent_and_signed(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, webhook: Any,
    receiver: Receiver,
) -> None:  # fmt: skip
    document = await ready(admin, tenancy, workspace_id)
    await sender.run()
    [(headers, body)] = receiver.received
    told = json.loads(body)
    assert (told["type"], told["data"]["document_id"]) == ("document.ready", document["id"])
    assert set(told["data"]) == {"event_id", "workspace_id", "document_id", "version_id"}
    # The specification, step by step.
    key = base64.b64decode(webhook["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["host"] == receiver.url.removeprefix("http://")
    [delivery] = await deliveries(admin, webhook)
    assert (delivery["state"], delivery["attempts"], delivery["response_status"]) == ("delivered", 1, 204)
    await sender.run()


def test_a_signature_is_that_of_the_specification() -> None:
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    found = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_what_is_not_taken_is_sent_again_with_the_same_id(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, webhook: Any,
    receiver: Receiver,
) -> None:  # fmt: skip
    receiver.answers = [503, 302]
    await ready(admin, tenancy, workspace_id)
    await sender.run()
    [delivery] = await deliveries(admin, webhook)
    assert (delivery["state"], delivery["attempts"], delivery["response_status"], delivery["error_code"]) == (
        "pending", 1, 503, "refused",
    )  # fmt: skip
    await sender.run()
    await sender.run()
    assert len(receiver.received) == 3  # the redirect was not followed
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1
    assert len({body for _, body in receiver.received}) == 1
    [delivery] = await deliveries(admin, webhook)
    assert (delivery["state"], delivery["attempts"], delivery["error_code"]) == ("delivered", 3, None)


async def test_it_is_given_up_visibly_and_can_be_replayed(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, webhook: Any,
    receiver: Receiver,
) -> None:  # fmt: skip
    receiver.answers = [500, 500, 500]
    await ready(admin, tenancy, workspace_id)
    for _ in range(4):
        await sender.run()
    here = f"{url}/{webhook['id']}"
    found = (await admin.get(here)).json()
    assert (found["status"], found["disabled_reason"], len(receiver.received)) == ("disabled", "gave_up", 3)
    assert [each["state"] for each in await deliveries(admin, webhook)] == ["failed"]
    await ready(admin, tenancy, workspace_id)  # missed while it is disabled
    await sender.run()
    assert len(receiver.received) == 3
    refused = await admin.post(f"{here}/replay", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
    assert (await admin.patch(here, json={"status": "active"})).json()["disabled_reason"] is None
    assert (await admin.post(f"{here}/replay", json={})).json() == {"queued": 1}
    await sender.run()
    assert (await admin.post(f"{here}/replay", json={"after_event_id": 1})).json() == {"queued": 1}
    await sender.run()
    assert [each["state"] for each in await deliveries(admin, webhook)] == ["delivered", "delivered"]
    assert (await admin.post(f"{here}/replay", json={"after_event_id": 0})).json() == {"queued": 2}
    await sender.run()
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 2


async def test_a_receiver_that_is_gone_is_not_asked_again(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, url: str, webhook: Any,
    receiver: Receiver,
) -> None:  # fmt: skip
    receiver.answers = [410]
    await ready(admin, tenancy, workspace_id)
    await sender.run()
    assert (await admin.get(f"{url}/{webhook['id']}")).json()["disabled_reason"] == "gone"


async def test_a_sender_that_dies_leaves_its_delivery_due(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, webhook: Any,
    receiver: Receiver,
) -> None:  # fmt: skip
    await ready(admin, tenancy, workspace_id)
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        # As a claim leaves it, and as it is once the claim's time is over.
        await session.execute(
            text("UPDATE webhook_deliveries SET attempts = 1, next_attempt_at = now() + interval '1 h'")
        )
    await sender.run()
    assert receiver.received == []
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await session.execute(text("UPDATE webhook_deliveries SET next_attempt_at = now()"))
    await sender.run()
    assert [each["attempts"] for each in await deliveries(admin, webhook)] == [2]


async def test_nobody_answers(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, url: str
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    webhook = (await admin.post(url, json={"url": f"http://127.0.0.1:{port}/"})).json()
    await ready(admin, tenancy, workspace_id)
    await sender.run()
    assert [each["error_code"] for each in await deliveries(admin, webhook)] == ["unreachable"]


def certificate(folder: Path, name: str) -> ssl.SSLContext:
    """A server's context with a certificate for `name` that nobody but itself has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1)).add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True).sign(key, hashes.SHA256())
    )  # fmt: skip
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "pair.pem").write_bytes(private + made.public_bytes(encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair.pem")
    return context


@pytest.mark.parametrize(("name", "is_known", "expected"), [("localhost", True, None), ("localhost", False, "certificate_refused"), ("other.example", True, "certificate_refused")])  # fmt: skip
async def test_a_receiver_must_prove_its_name_by_a_certificate_of_a_known_authority(
    admin: httpx.AsyncClient, database: Database, local: Settings, tenancy: Tenancy, workspace_id: WorkspaceId, url: str,
    tmp_path: Path, name: str, is_known: bool, expected: str | None,
) -> None:  # fmt: skip
    """The connection goes to an address, and the certificate is checked for the name all the same."""
    async with open_receiver(certificate(tmp_path, name)) as receiver:
        webhook = (await admin.post(url, json={"url": receiver.url})).json()
        await ready(admin, tenancy, workspace_id)
        known = ssl.create_default_context(cafile=str(tmp_path / "pair.pem")) if is_known else None
        async with webhook_client(known) as client:
            await WebhookSender(database, local, client).run()
        [delivery] = await deliveries(admin, webhook)
        assert delivery["error_code"] == expected
        assert len(receiver.received) == (0 if expected else 1)


async def test_only_what_is_asked_for_is_sent(
    admin: httpx.AsyncClient, sender: WebhookSender, tenancy: Tenancy, workspace_id: WorkspaceId, url: str,
    receiver: Receiver,
) -> None:  # fmt: skip
    webhook = (await admin.post(url, json={"url": receiver.url, "events": ["document.failed"]})).json()
    document = await ready(admin, tenancy, workspace_id)
    await set_state(tenancy, document, "lazy", state="failed")
    await sender.run()
    assert len(receiver.received) == 1
    assert [each["type"] for each in await deliveries(admin, webhook)] == ["document.failed"]


async def test_a_private_address_is_not_called(
    admin: httpx.AsyncClient, database: Database, settings: Settings, tenancy: Tenancy, workspace_id: WorkspaceId,
    url: str, receiver: Receiver,
) -> None:  # fmt: skip
    """A name may stand for another address when it is called than when it was written down."""
    port = receiver.url.rpartition(":")[2]
    names = (receiver.url, f"https://localhost:{port}/", f"https://127.0.0.1:{port}/")
    hooks = [(await admin.post(url, json={"url": name})).json() for name in names]
    await ready(admin, tenancy, workspace_id)
    async with webhook_client() as client:
        await WebhookSender(database, settings, client).run()
    for webhook in hooks:
        assert [each["error_code"] for each in await deliveries(admin, webhook)] == ["webhook_url_refused"]
    assert receiver.received == []


@pytest.mark.parametrize(
    "refused",
    [
        "http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest", "https://10.0.0.8/",
        "https://[::ffff:10.0.0.8]/", "https://[64:ff9b::a00:8]/", "https://0.0.0.0/", "https://user:pw@example.com/",
        "https://example.com/#x", "ftp://example.com/", "example.com", "https:///x", "https://[fe80::1]/",
        "https://example.com:99999/", "https://example.com:0/", "https://exa mple.com/", "https://a..example.com/",
        f"https://{'a' * 64}.example.com/", "https://localhost/", "https://LOCALHOST./", "https://app.localhost:8443/x",
        "https://127.1/", "https://0x7f000001/", "https://0X7F.1/", "https://2130706433/", "https://0177.0.0.1/",
        "https://127.0.0.1./", "https://[::ffff:127.0.0.1]/", "https://::ffff:127.0.0.1/", "https://postgres/",
        "https://db.internal/", "https://printer.local/", "https://nas.home.arpa/",
    ],
)  # fmt: skip
async def test_an_address_that_is_nobody_elses_business_is_refused(
    client: httpx.AsyncClient, url: str, refused: str
) -> None:
    response = await client.post(url, json={"url": refused})
    assert (response.status_code, response.json()["code"]) == (422, "webhook_url_refused")


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"])
async def test_it_is_not_called_either_where_it_was_registered_before(
    admin: httpx.AsyncClient, database: Database, settings: Settings, owner_database: Database, tenancy: Tenancy,
    workspace_id: WorkspaceId, url: str, webhook: Any, receiver: Receiver, host: str,
) -> None:  # fmt: skip
    port = receiver.url.rpartition(":")[2]
    async with owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(
            text("UPDATE webhooks SET url = :url WHERE id = :id"),
            {"url": f"https://{host}:{port}/", "id": UUID(webhook["id"])},
        )
    await ready(admin, tenancy, workspace_id)
    async with webhook_client() as client:
        await WebhookSender(database, settings, client).run()
    assert [each["error_code"] for each in await deliveries(admin, webhook)] == ["webhook_url_refused"]
    assert receiver.received == []


@pytest.mark.parametrize("accepted", ["https://example.com./x", "https://a.b.example.com:8443/", "https://1.example.com/", "https://localhost.example.com/", "https://müller.example/"])  # fmt: skip
async def test_names_that_anybody_can_look_up_are_accepted(client: httpx.AsyncClient, url: str, accepted: str) -> None:
    assert (await client.post(url, json={"url": accepted})).status_code == 201


@pytest.mark.parametrize(("address", "expected"), [("93.184.216.34", True), ("2606:2800:220:1::1", True), ("100.64.0.1", False), ("224.0.0.1", False), ("2002:a00:8::1", False), ("fc00::1", False), ("64:ff9b::5db8:d822", True), ("168.63.129.16", False), ("::7f00:1", False), ("fec0::1", False)])  # fmt: skip
def test_which_addresses_are_public(address: str, expected: bool) -> None:
    assert is_public(ip_address(address)) is expected


def test_pauses_grow() -> None:
    assert [backoff_seconds(n, 10) for n in (1, 2, 3)] == [10, 40, 160]
    assert backoff_seconds(30, 10) == 12 * 3600


async def test_the_secret_is_shown_once_and_kept_encrypted(
    admin: httpx.AsyncClient, owner_database: Database, tenancy: Tenancy, url: str, webhook: Any
) -> None:
    shown = (await admin.get(f"{url}/{webhook['id']}")).text + (await admin.get(url)).text
    assert "whsec_" not in shown
    async with owner_database.tenant(tenancy.tenant_id) as session:
        kept = bytes(
            await session.scalar(text("SELECT key FROM webhooks WHERE id = :id"), {"id": UUID(webhook["id"])}) or b""
        )
    assert kept
    assert webhook["secret"].removeprefix("whsec_").encode() not in kept


async def test_webhooks_are_changed_listed_and_removed(admin: httpx.AsyncClient, url: str, webhook: Any) -> None:
    here = f"{url}/{webhook['id']}"
    changed = await admin.patch(here, json={"events": ["document.deleted", "document.deleted"], "status": "disabled"})
    assert (changed.json()["events"], changed.json()["disabled_reason"]) == (["document.deleted"], "asked")
    assert [each["id"] for each in (await admin.get(url)).json()["items"]] == [webhook["id"]]
    assert (await admin.patch(here, json={"url": "gopher://x"})).json()["code"] == "webhook_url_refused"
    wrong: list[dict[str, Any]] = [{"events": []}, {"events": ["document.seen"]}, {"status": "asleep"}, {"secret": "x"}]
    for body in wrong:
        assert (await admin.patch(here, json=body)).json()["code"] == "validation_error"
    assert (await admin.delete(here)).status_code == 200
    assert (await admin.get(here)).json()["code"] == "webhook_not_found"
    assert (await admin.get(f"{here}/deliveries")).status_code == 404


async def test_only_admins_of_the_tenant_see_webhooks(
    connect: Connect, stranger: httpx.AsyncClient, tenancy: Tenancy, url: str, webhook: Any
) -> None:
    editor = await connect(tenancy, Role.EDITOR)
    assert (await editor.get(url)).json()["code"] == "role_required"
    for path in (url, f"{url}/{webhook['id']}"):
        assert (await stranger.get(path)).status_code == 404


async def test_a_workspace_has_so_many_webhooks_at_most(admin: httpx.AsyncClient, url: str) -> None:
    made = [await admin.post(url, json={"url": f"http://127.0.0.1/{n}"}) for n in range(21)]
    assert [each.status_code for each in made] == [201] * 20 + [409]
    assert made[-1].json()["code"] == "too_many_webhooks"
