"""Creates .venv from requirements.lock and installs the project into it, editable; only the standard library is needed.

Re-running is quick: a stamp in the environment holds the hash of everything that decides its content.
"""

import hashlib
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".trellis-stamp"
LOCK = ROOT / "requirements.lock"
PIP_INSTALL = ("-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off")
MINIMUM = (3, 11)
REPORT_EVERY = 40


def say(message: str) -> None:
    print(f"[setup] {message}", flush=True)


def fingerprint() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in (LOCK, ROOT / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_pip(arguments: list[str], total: int = 0) -> None:
    """Runs pip and tells how far it is; its whole output is shown only when it fails."""
    process = subprocess.Popen(
        [str(PYTHON), *PIP_INSTALL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output: list[str] = []
    fetched = 0
    for line in process.stdout or ():
        output.append(line)
        if line.startswith("Collecting "):
            fetched += 1
            if fetched % REPORT_EVERY == 0:
                say(f"  {fetched} of about {total} packages fetched")
        elif line.startswith("Installing collected"):
            say("  unpacking")
    if process.wait() != 0:
        sys.stderr.write("".join(output[-60:]))
        sys.exit(f"[setup] pip failed with exit code {process.returncode}; its last lines are above.")


def create_environment() -> None:
    if PYTHON.exists() and subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    say(f"creating .venv with Python {sys.version.split()[0]}")
    if subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)]).returncode != 0:
        sys.exit(
            "[setup] Python could not create a virtual environment. On Debian and Ubuntu its module is a package of its "
            f"own: apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        )


def main() -> None:
    if sys.version_info[:2] < MINIMUM:
        sys.exit(
            f"[setup] Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed; name one with `make PYTHON=python3.12 …`."
        )
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    started = time.monotonic()
    create_environment()
    total = LOCK.read_text().count("==")
    say(f"installing {total} locked packages (the first time this fetches about 400 MB)")
    run_pip(["--require-hashes", "-r", str(LOCK)], total)
    say("installing the project itself, editable")
    run_pip(["--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    STAMP.write_text(wanted)
    say(f"ready in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
