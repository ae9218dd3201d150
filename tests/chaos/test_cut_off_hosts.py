"""A host is cut off from all others, with work under way, and comes back: it still believes that the work is its own."""

from collections.abc import Iterator

import pytest
from yarl import URL

from app.devstack.app_processes import AppProcesses
from tests.chaos.host import Host, second_host
from tests.chaos.stack import ChaosStack
from tests.chaos.stages import PLACE, documents, held_by_model, nothing_is_left
from tests.chaos.user import User

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


@pytest.fixture
def host(stack: ChaosStack) -> Iterator[Host]:
    ports = [stack.servers.postgres.port, stack.servers.redis.port, URL(stack.stub.base_url).port or 0]
    with second_host(ports) as host:
        yield host


@pytest.fixture
def there(stack: ChaosStack, host: Host) -> Iterator[AppProcesses]:
    """Processes of that host; none runs yet."""
    processes = AppProcesses(stack.folder / "host2", stack.processes.environment, through=host.through)
    yield processes
    for child in processes.children:
        child.process.kill()
        child.process.wait()


async def test_work_of_a_host_that_is_cut_off_goes_on_elsewhere(
    stack: ChaosStack, user: User, host: Host, there: AppProcesses
) -> None:
    await user.make_workspaces([PLACE])
    far = there.start_worker("far")
    async with held_by_model(stack, "extract") as reached:
        await user.upload(documents(4))
        await reached()
        host.unplug()
        near = stack.start_worker()
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    host.plug_in()
    await nothing_is_left(stack)
    # It has seen that its claims are gone, and works again.
    stack.kill(near)
    await user.upload(documents(6)[4:])
    assert {item["status"] for item in (await user.settled(PLACE)).values()} == {"ready"}
    assert not far.ended()
    await nothing_is_left(stack)
    assert "attempt_superseded" in far.log.read_text()
