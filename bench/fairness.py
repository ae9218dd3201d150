"""How long one tenant's single document takes while another has thousands queued, beside the same on an idle installation.

    python -m bench.fairness [--backlog 10000] [--documents 5]

Starts a whole installation with offline models. It prints seconds from the upload's answer to `ready`.
"""

import argparse
import statistics
import time

import httpx

from bench.installation import installation, make_workspace

FILES_A_REQUEST = 100
TEXT = "Report {number} of {owner}. The seals of press 4 were replaced by Helena Petrowa in Port Lindau. " * 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backlog", type=int, default=10_000, help="documents that the busy tenant uploads")
    parser.add_argument("--documents", type=int, default=5, help="single uploads that are timed, one after another")
    arguments = parser.parse_args()
    with installation("fairness") as running:
        busy_key, quiet_key = running.keys
        with running.client(busy_key) as busy, running.client(quiet_key) as quiet:
            measure(busy, quiet, arguments.backlog, arguments.documents)


def measure(busy: httpx.Client, quiet: httpx.Client, backlog: int, documents: int) -> None:
    own, theirs = make_workspace(quiet), make_workspace(busy)
    seconds_to_ready(quiet, own, "warm-up")  # models are loaded by the first
    idle = [seconds_to_ready(quiet, own, f"idle {number}") for number in range(documents)]
    print(f"idle:    {_shown(idle)}")
    for start in range(0, backlog, FILES_A_REQUEST):
        files = [
            ("files", (f"{number}.txt", TEXT.format(number=number, owner="busy").encode(), "text/plain"))
            for number in range(start, min(backlog, start + FILES_A_REQUEST))
        ]
        busy.post(f"/workspaces/{theirs}/documents", files=files).raise_for_status()
    print(f"backlog: {backlog} uploaded by another tenant")
    loaded = [seconds_to_ready(quiet, own, f"loaded {number}") for number in range(documents)]
    left = busy.get(f"/workspaces/{theirs}/documents", params={"status": "processing", "limit": 1}).json()["items"]
    print(f"loaded:  {_shown(loaded)}")
    print(f"ratio:   {statistics.median(loaded) / statistics.median(idle):.1f} (median)")
    print(
        f"backlog: {'still there at the end, so all were measured beside it' if left else 'was done before the end: ask for more'}"
    )


def seconds_to_ready(client: httpx.Client, workspace: str, name: str) -> float:
    """From the upload's answer to the final status."""
    body = {"title": name, "text": TEXT.format(number=name, owner="quiet")}
    answer = client.post(f"/workspaces/{workspace}/documents", json=body).raise_for_status().json()
    path = answer["documents"][0]["links"]["self"].removeprefix("/v1")
    started = time.perf_counter()
    while True:
        document = client.get(path, params={"wait": 30}).raise_for_status().json()
        if document["status"] != "processing":
            break
    if document["status"] != "ready":
        raise SystemExit(f"{name} ended as {document['status']}")
    return time.perf_counter() - started


def _shown(seconds: list[float]) -> str:
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s of {len(seconds)} documents"


if __name__ == "__main__":
    main()
