"""Starts docker-compose.yml from the images that `make images` built, runs the demo's client against it, and stops it all.

Beside the demo it checks what only containers show: none runs as root or can write outside its volumes, and each ends by
itself when it is told to. With --restore the installation is backed up and restored into a new one.
"""

import argparse
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from deploy.build_images import BASE
from deploy.engine import NOT_PREPARED, Engine, NotPrepared, limits, say
from deploy.restore import Backup, Probe, in_postgres
from deploy.topology import Topology, TopologyFailed

ROOT = Path(__file__).resolve().parents[1]
PASSWORDS = ("ADMIN", "OWNER", "APP", "ENGINE", "REDIS")
ENDLESS = ("api", "worker-documents", "worker-graph", "beat")
KILLED = 137
SCRAPE_SECONDS = 90
# A walk over a graph and a distance of vectors, both in one statement of one server. It leaves nothing.
EXTENSIONS = """
SET client_min_messages = error;
BEGIN;
CREATE EXTENSION age;
LOAD 'age';
SET search_path = ag_catalog, public;
SELECT create_graph('probe');
SELECT * FROM cypher('probe', $$ CREATE (:A {name: 'a'})-[:TO]->(:A {name: 'b'}) $$) AS (made agtype);
SELECT 'answer', walked.name, '[1,0]'::vector <=> '[0,1]'::vector, vector.extversion, age.extversion
  FROM cypher('probe', $$ MATCH (:A {name: 'a'})-[:TO]->(found) RETURN found.name $$) AS walked (name agtype)
  JOIN pg_extension vector ON vector.extname = 'vector' JOIN pg_extension age ON age.extname = 'age';
ROLLBACK;
"""


def run(engine: Engine, profiles: frozenset[str], *, keep: bool, restore: bool) -> None:
    environment = new_environment() | (in_bucket() if "objects" in profiles else {})
    topology = Topology(engine, f"trellis-{os.getpid()}", environment, say, profiles)
    with tempfile.TemporaryDirectory(prefix="trellis-backup-") as folder:
        backup = Backup(Path(folder))
        try:
            key, probe = _first(topology, environment, keep=keep)
            if restore:
                probe.fill()
                backup.make(topology)
        finally:
            topology.down()
        if restore:
            _second(engine, backup, environment, key, probe)


def _first(topology: Topology, environment: Mapping[str, str], *, keep: bool) -> tuple[str, Probe]:
    started = time.monotonic()
    topology.up()
    say(f"everything of docker-compose.yml is healthy after {time.monotonic() - started:.0f} s")
    check_hardening(topology)
    check_extensions(topology)
    topology.run("migrate", ["trellis", "tenant", "create", "demo"])
    key = topology.run("migrate", ["trellis", "key", "create", "demo", "--role", "admin"]).split()[-1]
    _demo(address(environment), key)
    if "prometheus" in topology.services:
        check_metrics(environment)
    check_stopping(topology)
    if keep:
        say(f"the API is at {address(environment)}, its key is {key}; Enter stops everything")
        sys.stdin.readline()
    return key, Probe(address(environment), key)


def _second(engine: Engine, backup: Backup, old: Mapping[str, str], key: str, probe: Probe) -> None:
    """A new installation with passwords of its own and the old secret key, from the backup."""
    environment = new_environment() | {"TRELLIS_SECRET_KEY": old["TRELLIS_SECRET_KEY"]}
    topology = Topology(engine, f"trellis-restored-{os.getpid()}", environment, say)
    try:
        backup.restore(topology)
        topology.run("migrate", ["trellis", "sweep"])
        probe.compare(Probe(address(environment), key))
        say("what was backed up answers in a new installation")
    finally:
        topology.down()


def new_environment() -> dict[str, str]:
    """What an env file of a new installation would hold."""
    passwords = {f"TRELLIS_{name}_PASSWORD": secrets.token_hex(24) for name in PASSWORDS}
    return passwords | {
        "TRELLIS_SECRET_KEY": secrets.token_urlsafe(32), "TRELLIS_PORT": str(_free_port()),
        "TRELLIS_METRICS_TOKEN": secrets.token_hex(24), "TRELLIS_PROMETHEUS_PORT": str(_free_port()),
    }  # fmt: skip


def in_bucket() -> dict[str, str]:
    """What the env file of an installation says that keeps its originals in the service `objects`."""
    return {
        "TRELLIS_BLOB_URL": "s3://originals", "AWS_ENDPOINT_URL": "http://objects:9000", "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": secrets.token_hex(10), "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
    }  # fmt: skip


def address(environment: Mapping[str, str]) -> str:
    return f"http://127.0.0.1:{environment['TRELLIS_PORT']}"


def check_hardening(topology: Topology) -> None:
    """Every container runs as an ordinary account, and even root could not write into its image."""
    for name in topology.services:
        if name == "migrate":
            continue
        _, user = topology.execute(name, ["id", "-u"])
        if user.strip() == "0":
            raise TopologyFailed(f"{name} runs as root")
        for place in ("/", "/usr/local/bin", "/etc"):
            code, told = topology.execute(name, ["touch", f"{place}/written"], user="0")
            if code == 0 or "Read-only" not in told:
                raise TopologyFailed(f"{name} can write to {place}: {told}")
    say("no container runs as root, and none can write outside its volumes")


def check_extensions(topology: Topology) -> None:
    """The image of Postgres answers with vectors and with walks over a graph, whichever an installation will use."""
    command = in_postgres(topology, "psql -h 127.0.0.1 -U postgres -d trellis -qtA -v ON_ERROR_STOP=1")
    answer = topology.engine.call(*command, "-c", EXTENSIONS, check=False)
    found = next((line.split("|") for line in answer.stdout.splitlines() if line.startswith("answer|")), [])
    if found[1:3] != ['"b"', "1"]:
        raise TopologyFailed(
            f"Postgres does not answer with pgvector and AGE: {(answer.stdout + answer.stderr)[-500:]}"
        )
    say(f"Postgres answers with pgvector {found[3]} and AGE {found[4]}")


def check_stopping(topology: Topology) -> None:
    """Whoever is told to stop does so by itself, in its time, and starts again."""
    for name in ENDLESS:
        code, took = topology.stop(name)
        if code == KILLED:
            raise TopologyFailed(f"{name} did not stop in its time and was killed after {took:.0f} s")
        say(f"{name} stopped by itself in {took:.1f} s (exit code {code})")
    for name in ENDLESS:
        topology.start(name)
    say("all of them run again")


def check_metrics(environment: Mapping[str, str]) -> None:
    """Prometheus reads the API and both pools of workers."""
    prometheus = f"http://127.0.0.1:{environment['TRELLIS_PROMETHEUS_PORT']}/api/v1"
    deadline = time.monotonic() + SCRAPE_SECONDS
    while True:
        found = httpx.get(f"{prometheus}/query", params={"query": "up"}).json()["data"]["result"]
        up = sorted(item["metric"]["job"] for item in found if item["value"][1] == "1")
        if up == ["trellis-api", "trellis-worker", "trellis-worker"]:
            break
        if time.monotonic() > deadline:
            raise TopologyFailed(f"Prometheus reads only {up}: {found}")
        time.sleep(1)
    rules = httpx.get(f"{prometheus}/rules").json()["data"]["groups"]
    say(f"Prometheus reads the API and both pools; it has {sum(len(group['rules']) for group in rules)} rules")


def require_containers(engine: Engine) -> None:
    """Raise NotPrepared where this machine can run no container with a network of its own."""
    if not engine.has_image(BASE):
        raise NotPrepared("the images are not here: run `make images` first")
    network = f"trellis-probe-{os.getpid()}"
    made = engine.call("network", "create", network, check=False)
    answer = engine.call("run", "--rm", "--network", network, *limits(), BASE, "true", check=False)
    engine.call("network", "rm", "-f", network, check=False)
    if made.returncode != 0 or answer.returncode != 0:
        raise NotPrepared(f"this machine runs no containers: {(made.stderr + answer.stderr)[-500:].strip()}")


def _demo(url: str, key: str) -> None:
    command = [str(ROOT / ".venv/bin/trellis"), "demo", "--url", url]
    code = subprocess.run(command, env=os.environ | {"TRELLIS_API_KEY": key}).returncode
    if code != 0:
        raise TopologyFailed(f"the demo's client failed with exit code {code}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--profile", action="append", default=[], help="also start what this profile names")
    parser.add_argument("--keep", action="store_true", help="wait for Enter before everything is stopped")
    parser.add_argument("--restore", action="store_true", help="also back up, and restore into a new installation")
    arguments = parser.parse_args()
    if arguments.restore and "objects" in arguments.profile:
        parser.error("--restore copies the volume of originals; a bucket is backed up by its own means")
    try:
        engine = Engine()
        try:
            require_containers(engine)
            run(engine, frozenset(arguments.profile), keep=arguments.keep, restore=arguments.restore)
        finally:
            engine.close()
    except NotPrepared as reason:
        say(f"not prepared: {reason}")
        sys.exit(NOT_PREPARED)
    except TopologyFailed as failure:
        sys.exit(f"[images] {failure}")


if __name__ == "__main__":
    main()
