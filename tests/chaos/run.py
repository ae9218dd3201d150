"""One run: the documents once undisturbed, once under faults; then both must be the same, and nothing may be left over."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.checks import broken_histories, open_ends, stray_files, unowned_rows
from tests.chaos.corpus import Text, make_corpus
from tests.chaos.events import ANSWERS, wrongly_delivered, wrongly_told
from tests.chaos.faults import Harmer
from tests.chaos.schedule import Ask, Harm, Step, Upload, Wish, make_schedule, survivors
from tests.chaos.snapshot import Snapshot, differences, take_snapshot
from tests.chaos.stack import ChaosStack
from tests.chaos.user import User
from tests.fakes.receiver import Receiver, open_receiver

# Longer than anything that has to run out by itself before work goes on: leases, pauses after failures, requests.
STALL_SECONDS = 120
RETRIES = 4
TROUBLE = ("attached to a different loop", "Event loop is closed", "another operation is in progress", "stray_error")

PROGRESS = """
SELECT (SELECT count(*) FROM index_states WHERE state IN ('queued', 'running') OR cleanliness <> 'clean')
     + (SELECT count(*) FROM documents WHERE deleting_at IS NOT NULL)
     + (SELECT count(*) FROM workspace_leases WHERE owner IS NOT NULL)
     + (SELECT count(*) FROM webhook_deliveries WHERE state = 'pending')
     + (SELECT count(*) FROM versions old JOIN versions v ON v.document_id = old.document_id AND v.ordinal > old.ordinal
         -- The old content answers until the new one is ready, and that may have failed for now.
         WHERE NOT EXISTS (SELECT 1 FROM index_states s WHERE s.version_id = v.id
                                 AND s.state IN ('partial', 'failed', 'cancelled')))
       AS open,
       (SELECT sum(attempts) FROM index_states) AS attempts,
       (SELECT count(*) FROM chunks WHERE state <> 'pending') AS chunks,
       (SELECT count(*) FROM live_versions) AS live,
       (SELECT sum(epoch) FROM workspace_leases) AS epochs"""

UNFINISHED = """
SELECT jsonb_build_object('file', d.filename, 'version', v.ordinal, 'of', max(v.ordinal) OVER (PARTITION BY d.id),
                          'deleting', d.deleting_at) || to_jsonb(s) AS what
  FROM index_states s JOIN versions v ON v.id = s.version_id JOIN documents d ON d.id = v.document_id
 WHERE s.state <> 'ready' OR s.cleanliness <> 'clean' OR d.deleting_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM versions other WHERE other.document_id = d.id AND other.id <> v.id)
UNION ALL SELECT to_jsonb(l) FROM workspace_leases l WHERE owner IS NOT NULL
UNION ALL SELECT to_jsonb(w) - 'body' FROM webhook_deliveries w WHERE state = 'pending'"""


class Failed(AssertionError):
    """The run has shown a fault of the product; the message says what differs."""


@dataclass(frozen=True)
class Size:
    """How much is done in a run."""

    documents: int
    workspaces: int
    workers: int
    faults: int


Say = Callable[[str], None]


async def run_chaos(stack: ChaosStack, seed: int, size: Size, say: Say) -> None:
    """Raises Failed, with all that is wrong."""
    schedule = make_schedule(seed, make_corpus(seed, documents=size.documents, workspaces=size.workspaces), size.faults)
    for _ in range(size.workers):
        stack.start_worker()
    stack.processes.start_api()
    stack.processes.start_beat()
    await asyncio.to_thread(stack.processes.wait_until_ready)
    say("undisturbed run")
    expected = await _undisturbed(stack, schedule)
    stack.stub.reset()
    say("under faults")
    user = await User.create(stack, "disturbed")
    try:
        async with open_receiver() as receiver:
            receiver.answers = list(ANSWERS)
            harmer = Harmer(stack, say)
            await user.make_workspaces(_workspaces(schedule))
            secrets = await user.watch(receiver.url)
            await _disturb(user, harmer, schedule)
            say("all is well again; waiting for every document to be final")
            states = await _settle(user, say)
            say(f"final states: {dict(states)}")
            await _retry_until_ready(user, say)
            await _compare(stack, user, harmer, schedule, expected, say)
            await _compare_told(stack, receiver, secrets, say)
    finally:
        await user.close()


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: rows, and answers to questions."""

    rows: Snapshot
    answers: dict[str, Any]


async def _undisturbed(stack: ChaosStack, schedule: list[Step]) -> Outcome:
    user = await User.create(stack, "undisturbed")
    try:
        texts = survivors(schedule)
        await user.make_workspaces(_workspaces(schedule))
        await user.upload(texts)
        states = await _settle(user, lambda _: None)
        if set(states) != {"ready"}:
            raise Failed(f"the undisturbed run ended {dict(states)}")
        return await _outcome(stack, user, schedule)
    finally:
        await user.close()


async def _outcome(stack: ChaosStack, user: User, schedule: list[Step]) -> Outcome:
    answers: dict[str, Any] = {}
    for text in survivors(schedule)[::5]:
        question = text.content.split("\n\n")[1].split(".")[0]
        # Not the graph's modes: their order among equals follows the order of merging, of which rows keep nothing else.
        for mode in ("baseline", "lazy", "lazy-fast"):
            found = await user.query(text.workspace, question, mode)
            answers[f"{text.workspace} {text.filename} {mode}"] = _sources(found)
    async with stack.connection() as connection:
        return Outcome(await take_snapshot(connection, user.tenant), answers)


def _sources(answer: dict[str, Any]) -> list[str]:
    return sorted(
        f"{item['filename']} {item['char_start']}-{item['char_end']}" for item in answer["evidence"]["passages"]
    )


async def _disturb(user: User, harmer: Harmer, schedule: list[Step]) -> None:
    try:
        for step in schedule:
            match step:
                case Upload(texts):
                    harmer.note(f"upload {', '.join(text.filename for text in texts)}")
                    await user.upload(texts)
                case Ask(wish, text):
                    harmer.note(f"{wish} {text.workspace}/{text.filename}")
                    await _fulfil(user, harmer, wish, text)
                case Harm():
                    await harmer.do(step)
    finally:
        await harmer.heal()


async def _fulfil(user: User, harmer: Harmer, wish: Wish, text: Text) -> None:
    match wish:
        case "replace":
            await user.replace(text)
        case "delete":
            await user.delete(text)
        case "retry":
            await user.retry_text(text)
        case "cancel":
            # What the model is about to say of it goes unheard, and is asked for again by the retry at the end.
            await harmer.count_losses()
            await user.cancel(text)


async def _settle(user: User, say: Say) -> Counter[str]:
    """Wait until nothing is open any more; how many documents ended in which state. Raises Failed at a standstill."""
    stack, last, moved_at, told_at = user.stack, None, time.monotonic(), time.monotonic()
    while True:
        (row,) = await stack.fetch(PROGRESS)
        if not row["open"]:
            return Counter(item["status"] for item in await user.all_documents())
        now = time.monotonic()
        if tuple(row) != last:
            last, moved_at = tuple(row), now
        if now - told_at > 15:
            told_at = now
            say(f"open: {row['open']}, attempts: {row['attempts']}, chunks done: {row['chunks']}")
        if now - moved_at > STALL_SECONDS:
            rows = "\n".join(row["what"] for row in await stack.fetch(UNFINISHED))
            raise Failed(f"nothing has moved for {STALL_SECONDS} s:\n{rows}")
        stack.processes.check()
        await asyncio.sleep(0.5)


async def _retry_until_ready(user: User, say: Say) -> None:
    """What failed under faults must be mended by asking for it."""
    for _ in range(RETRIES):
        broken = [item for item in await user.all_documents() if item["status"] != "ready"]
        if not broken:
            return
        for item in broken:
            engines = {name: (state["state"], state["error"]) for name, state in item["engines"].items()}
            say(f"retry {item['filename']}: {engines}")
            await user.retry(item)
        await _settle(user, say)
    left = [(item["filename"], item["status"], item["engines"]) for item in await user.all_documents()]
    raise Failed(f"documents are not ready after {RETRIES} retries: {[each for each in left if each[1] != 'ready']}")


async def _compare(
    stack: ChaosStack, user: User, harmer: Harmer, schedule: list[Step], expected: Outcome, say: Say
) -> None:
    found = await _outcome(stack, user, schedule)
    wrong = differences(expected.rows, found.rows)
    wrong += [
        f"{name} is answered otherwise: {expected.answers[name]} before, {answer} now"
        for name, answer in found.answers.items()
        if answer != expected.answers[name]
    ]
    async with stack.connection() as connection:
        wrong += await unowned_rows(connection)
        wrong += await open_ends(connection)
        wrong += await broken_histories(connection)
    wrong += await stray_files(stack)
    wrong += _paid_twice(stack, harmer, say)
    lines = (stack.log() + stack.log("api")).splitlines()
    wrong += [f"a log says: {line[:1500]}" for line in lines if any(words in line for words in TROUBLE)][:5]
    say(f"rows compared: {sum(rows.total() for rows in found.rows.values())} in {len(found.rows)} tables")
    if wrong:
        raise Failed("\n".join(wrong))


async def _compare_told(stack: ChaosStack, receiver: Receiver, secrets: dict[str, str], say: Say) -> None:
    messages = {headers["webhook-id"] for headers, _ in receiver.received}
    say(f"webhooks were called {len(receiver.received)} times for {len(messages)} events")
    async with stack.connection() as connection:
        wrong = [*await wrongly_told(connection), *await wrongly_delivered(connection, receiver, secrets)]
    if wrong:
        raise Failed("\n".join(wrong))


def _paid_twice(stack: ChaosStack, harmer: Harmer, say: Say) -> list[str]:
    stats = stack.stub.stats()
    say(
        f"extractions: {stats['distinct_extractions']} different, {stats['repeated_extractions']} repeated,"
        f" {harmer.may_be_lost} were in flight at {harmer.interruptions} kills, stops and cancellations"
    )
    if stats["repeated_extractions"] <= harmer.may_be_lost:
        return []
    return [f"{stats['repeated_extractions']} extractions were paid twice, {harmer.may_be_lost} at most may have been"]


def _workspaces(schedule: list[Step]) -> list[str]:
    return sorted({text.workspace for step in schedule if isinstance(step, Upload) for text in step.texts})
