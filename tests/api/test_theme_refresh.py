"""From uploads to themes: a map that is asked for, answers, and takes in what comes later."""

from typing import Any

import httpx

from app.bootstrap import Worker
from app.domain.tenants.records import Role
from app.jobs import RefreshThemes
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

SUBJECTS = {
    "Seals": ("Kestrel Polymers", "Tideline Sensor", "Porto", "Brightseal", "compound", "cracks"),
    "Ice": ("Icebreaker Aurora", "Gulf of Bothnia", "Ada Moreau", "Oulu", "thickness", "winter"),
    "Music": ("Lindau Quartet", "Franz Schubert", "Vienna", "Konzerthaus", "violin", "encore"),
}


def written(subject: str) -> str:
    """Ten sections, each of which holds four of the subject's six concepts."""
    names = SUBJECTS[subject]
    picked = [[names[(section + place) % len(names)] for place in range(4)] for section in range(10)]
    return "\n\n".join(
        f"## Part {section}\n\n{a} was seen with {b} before {c} came. Nobody spoke of {d} then." for section, (a, b, c, d) in enumerate(picked)
    )  # fmt: skip


async def test_a_map_is_made_on_request_and_kept_up(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, worker: Worker, connect: Connect,
    stranger: httpx.AsyncClient,
) -> None:  # fmt: skip
    workspace_id = await tenancy.add_workspace()
    here = f"/v1/workspaces/{workspace_id}/themes"
    made = [
        await upload_text(client, workspace_id, written(subject), title=subject, media_type="text/markdown")
        for subject in SUBJECTS
    ]
    await index(tenancy, *made)
    reader = await connect(tenancy, Role.READER)
    assert (await reader.post(f"{here}/refresh")).json()["code"] == "role_required"
    assert (await stranger.post(f"{here}/refresh")).json()["code"] == "workspace_not_found"
    accepted = await client.post(f"{here}/refresh")
    assert (accepted.status_code, accepted.json()["links"]["themes"]) == (202, here)
    await attempt(worker.jobs, RefreshThemes(tenancy.tenant_id, workspace_id), runs=1)
    listed = (await client.get(here)).json()
    assert (listed["map"]["is_stale"], listed["notices"]) == (False, [])
    finest = len(listed["map"]["levels"]) - 1

    async def told(query: str) -> Any:
        body = {"query": query, "mode": "themes", "level": finest}
        answer = await client.post(f"/v1/workspaces/{workspace_id}/query", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    for subject, names in SUBJECTS.items():
        answer = await told(f"What is said of {names[0]} and {names[1]}?")
        assert answer["evidence"]["passages"][0]["title"] == subject
        assert {concept["label"] for concept in answer["themes"]["items"][0]["concepts"]} & set(names)
    concepts = (await client.get(f"/v1/workspaces/{workspace_id}/concepts")).json()["items"]
    assert concepts[0]["degree"] > 0
    assert 0 < sum(concept["pagerank"] for concept in concepts) <= 1.001
    assert {"Kestrel Polymers", "Franz Schubert"} <= {concept["label"] for concept in concepts}
    later = await upload_text(
        client, workspace_id, "The Lindau Quartet played Franz Schubert in Vienna.", title="Later"
    )
    await index(tenancy, later)
    answer = await told("What did the Lindau Quartet play?")
    assert [notice["code"] for notice in answer["notices"]] == ["themes_stale"]
    assert "Later" in [passage["title"] for passage in answer["evidence"]["passages"]]
    for document in (later, made[1]):
        await client.delete(document["links"]["self"])
    gone = await told("Where is the Icebreaker Aurora?")
    assert "Aurora" not in str(gone["themes"]) + gone["context"]
    assert gone["notices"] == []
