"""Looks for known vulnerabilities in the locked packages; where the advisory service has no answers it says so."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
TIMEOUT_SECONDS = 300


def audit(requirements: str) -> tuple[list[dict[str, Any]], str]:
    """What pip-audit says of each package, and its error output; no packages if it got no answer at all."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        command = ["-m", "pip_audit", "--disable-pip", "--require-hashes", "-r", file.name, "--format", "json"]
        try:
            answer = subprocess.run(
                [sys.executable, *command, "--progress-spinner", "off"],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return [], f"no answer in {TIMEOUT_SECONDS} s"
    packages: list[dict[str, Any]] = json.loads(answer.stdout)["dependencies"] if answer.stdout.strip() else []
    return packages, answer.stderr.strip()


def main() -> None:
    lock = LOCK.read_text()
    # One package tells whether the service answers here at all; a mirror without advisories knows none of them.
    probe, errors = audit(re.split(r"\n(?=\S)", lock)[0])
    if not probe or "skip_reason" in probe[0]:
        reason = probe[0]["skip_reason"] if probe else errors.splitlines()[-1] if errors else "it gave no answer"
        print(f"[audit] NOT DONE: the advisory service cannot be used from here: {reason}")
        return
    packages, errors = audit(lock)
    if not packages:
        sys.exit(f"[audit] pip-audit failed:\n{errors[-2000:]}")
    found = [(package, flaw) for package in packages for flaw in package.get("vulns", [])]
    for package, flaw in found:
        print(f"[audit] {package['name']} {package['version']}: {flaw['id']}, mended in {flaw['fix_versions']}")
    skipped = sum("skip_reason" in package for package in packages)
    print(f"[audit] {len(packages)} packages looked up, {skipped} unknown to the service, {len(found)} flaws known")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
