"""Builds the images of docker-compose.yml with podman, without a registry: on a base that debootstrap makes of Debian 13.

Where packages come from is this machine's own configuration (apt's sources, pip's settings, its certificates). It is
handed to the steps that fetch as secrets, and the images are searched for it afterwards. `--base NAME` builds on an image
of a registry instead.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deploy.engine import NOT_PREPARED, Engine, NotPrepared, demand, say
from deploy.prepare_age import KEYRING, SUITE, mirror

ROOT = Path(__file__).resolve().parents[1]
BASE = "localhost/trellis-base:13"
# As in Debian's own slim images.
LEFT_OUT = ("doc", "man", "locale", "info", "lintian", "bug")
BASE_DAYS = 7
LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class Image:
    name: str
    dockerfile: str
    context: str = "."
    profile: str | None = None


IMAGES = (
    Image("localhost/trellis-redis:8", "deploy/redis/Dockerfile", "deploy/redis"),
    Image("localhost/trellis-postgres:17", "deploy/postgres/Dockerfile", "deploy/postgres"),
    Image("localhost/trellis:0.1.0", "deploy/Dockerfile"),
    Image("localhost/trellis-prometheus:2", "deploy/prometheus/Dockerfile", "deploy/prometheus", "prometheus"),
    Image("localhost/trellis-objects:1", "deploy/objects/Dockerfile", "deploy/objects", "objects"),
)


def build(engine: Engine, base: str | None, profiles: frozenset[str], *, fresh: bool) -> None:
    """All images that these profiles need; prints how long each took and how large it is."""
    if base is None:
        make_base(engine, fresh=fresh)
    with _fetching_configuration() as (options, private):
        for image in IMAGES:
            if image.profile is not None and image.profile not in profiles:
                continue
            started, before = time.monotonic(), _id(engine, image.name)
            engine.show(
                *("build", "--quiet", "--isolation", "chroot", "--format", "docker", "--layers"),
                *("--build-arg", f"BASE={base or BASE}", *options),
                *("--tag", image.name, "--file", str(ROOT / image.dockerfile), str(ROOT / image.context)),
            )
            refuse_traces(engine, image.name, private)
            if before not in (None, _id(engine, image.name)):
                # Or each change of the code would leave an image behind. What it was built of stays, for the next time.
                engine.call("rmi", str(before), check=False)
            say(f"{image.name}: {_megabytes(engine, image.name)} MB after {time.monotonic() - started:.0f} s")


def make_base(engine: Engine, *, fresh: bool) -> None:
    """Debian 13 at its smallest, as one image of one layer; made anew when it is a week old, for its updates."""
    if engine.has_image(BASE) and not fresh:
        created = engine.call("image", "inspect", "--format", "{{.Created.Unix}}", BASE).stdout
        if time.time() - int(created) < BASE_DAYS * 86_400:
            return
    if os.geteuid() != 0:
        raise NotPrepared("only root can make a base image; name another with --base")
    if not KEYRING.exists():
        raise NotPrepared("the keys of Debian's archive are not installed (package debian-archive-keyring)")
    started = time.monotonic()
    say(f"making {BASE} of Debian {SUITE}")
    folder = Path(tempfile.mkdtemp(prefix="trellis-base-"))
    try:
        root = folder / "root"
        demand(["debootstrap", "--variant=minbase", SUITE, str(root), mirror()], "debootstrap")
        _slim(root)
        demand(["tar", "-C", str(root), "--exclude=./dev/*", "-cf", str(folder / "base.tar"), "."], "tar")
        engine.call("import", "--change", 'CMD ["bash"]', str(folder / "base.tar"), BASE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"{BASE}: {_megabytes(engine, BASE)} MB after {time.monotonic() - started:.0f} s")


def refuse_traces(engine: Engine, name: str, private: list[str]) -> None:
    """Raise if one of the patterns `private` is in an image, its history or its configuration, or leftovers of fetching are."""
    told = engine.call("inspect", "--type", "image", name).stdout + engine.call("history", "--no-trunc", name).stdout
    found = [pattern for pattern in private if re.search(pattern, told)]
    mounted = Path(engine.call("image", "mount", name).stdout.strip())
    try:
        places = [mounted / place for place in ("etc/apt", "etc/pip.conf", "etc/ssl/build.pem", "var", "opt", "root")]
        present = [str(place) for place in places if place.exists()]
        for pattern in private:
            answer = subprocess.run(["grep", "-rlIP", "-e", pattern, *present], capture_output=True, text=True)
            found += [str(Path(line).relative_to(mounted)) for line in answer.stdout.splitlines()]
        left = [
            path for place in ("etc/pip.conf", "etc/ssl/build.pem", "etc/apt/sources.list.d/build.list")
            for path in [mounted / place] if path.exists() and path.stat().st_size
        ]  # fmt: skip
    finally:
        engine.call("image", "unmount", name)
    if found or left:
        raise RuntimeError(f"{name} shows where its packages came from: {[*found, *left]}")


def _slim(root: Path) -> None:
    """Take away what a container needs not, and all that tells of this machine."""
    for name in LEFT_OUT:
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
        (root / "usr/share" / name).mkdir()
    excluded = "".join(f"path-exclude=/usr/share/{name}/*\n" for name in LEFT_OUT)
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(excluded)
    for name in ("var/cache/apt", "var/lib/apt/lists", "var/log"):
        for path in (root / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (root / "etc/apt/sources.list").write_text("")
    for name in ("etc/resolv.conf", "etc/hostname"):
        (root / name).unlink(missing_ok=True)


def traces_of(url: str) -> Iterator[str]:
    """Patterns of a text that tells that packages came from `url`, none for a host that stands in packages' own texts.

    Not of the host alone: one that is called `proxy` is a word.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.password:
        yield re.escape(f"{parts.username}:{parts.password}")
    if host and host not in LOCAL_HOSTS and not host.endswith(".debian.org"):
        yield rf"//([^/@ ]*@)?{re.escape(host)}(?![\w.-])"
        if parts.port is not None:
            yield rf"(?<![\w.-]){re.escape(host)}:{parts.port}(?!\d)"


@contextmanager
def _fetching_configuration() -> Iterator[tuple[list[str], list[str]]]:
    """Options of a build that hand in this machine's sources of packages, and patterns of what must not show in an image."""
    folder = Path(tempfile.mkdtemp(prefix="trellis-fetch-"))
    try:
        address = mirror()
        sources = [f"deb [signed-by={KEYRING}] {address} {suite} main" for suite in (SUITE, f"{SUITE}-updates")]
        (folder / "apt-sources").write_text("\n".join(sources) + "\n")
        settings, certificates = _pip_settings()
        if certificates is not None:
            shutil.copyfile(certificates, folder / "certificates")
            settings["cert"] = "/etc/ssl/build.pem"
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        (folder / "pip-config").write_text(f"[global]\n{lines}")
        options = [part for path in folder.iterdir() for part in ("--secret", f"id={path.name},src={path}")]
        urls = [value for value in (address, *settings.values()) if "://" in value]
        yield options, sorted({pattern for url in urls for pattern in traces_of(url)})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pip_settings() -> tuple[dict[str, str], Path | None]:
    """What pip was told here about where packages come from, and the file of certificates that it trusts."""
    answer = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    given = dict(re.findall(r"(?m)^\S*?\.([\w-]+)='(.*)'$", answer.stdout))
    wanted = {name: given[name] for name in ("index-url", "trusted-host", "proxy") if name in given}
    certificates = given.get("cert") or os.environ.get("SSL_CERT_FILE")
    return wanted, Path(certificates) if certificates and Path(certificates).exists() else None


def _id(engine: Engine, name: str) -> str | None:
    answer = engine.call("image", "inspect", "--format", "{{.Id}}", name, check=False)
    return answer.stdout.strip() or None


def _megabytes(engine: Engine, name: str) -> int:
    return round(int(engine.call("image", "inspect", "--format", "{{.Size}}", name).stdout) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base", help="an image to build on, such as debian:13-slim; left out, one is made here")
    parser.add_argument(
        "--profile", action="append", default=[], help="also what this profile needs, such as prometheus"
    )
    parser.add_argument("--fresh", action="store_true", help="make the base anew")
    arguments = parser.parse_args()
    try:
        engine = Engine()
        try:
            build(engine, arguments.base, frozenset(arguments.profile), fresh=arguments.fresh)
        finally:
            engine.close()
    except NotPrepared as reason:
        say(f"not prepared: {reason}")
        sys.exit(NOT_PREPARED)


if __name__ == "__main__":
    main()
