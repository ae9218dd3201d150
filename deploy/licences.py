"""Lists the licences of the installed packages and refuses those that would bind what is built on Trellis."""

import json
import re
import subprocess
import sys
from collections import Counter

# Strong copyleft, source-available and unknown licences. LGPL and MPL bind only the package itself.
REFUSED = re.compile(
    r"\bA?GPL|GNU (Affero )?General Public|SSPL|Server Side Public|BUSL|Business Source|Commons Clause|"
    r"non-?commercial|UNKNOWN|^\s*$",
    re.IGNORECASE,
)
# Packages that are allowed all the same, each with the reason.
ALLOWED: dict[str, str] = {}
LONGEST_NAME = 60


def installed() -> list[dict[str, str]]:
    command = [sys.executable, "-m", "piplicenses", "--from=mixed", "--format=json", "--ignore-packages", "trellis"]
    rows: list[dict[str, str]] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return rows


def short(licence: str) -> str:
    """Some packages put the whole text where its name belongs; its first words tell which it is."""
    return " ".join(licence.split())[:LONGEST_NAME]


def main() -> None:
    packages = installed()
    for licence, count in sorted(Counter(short(row["License"]) for row in packages).items()):
        print(f"[licences] {count:4} {licence}")
    refused = [row for row in packages if REFUSED.search(short(row["License"])) and row["Name"] not in ALLOWED]
    for row in refused:
        print(f"[licences] refused: {row['Name']} {row['Version']}: {short(row['License'])}")
    print(f"[licences] {len(packages)} packages, {len(refused)} refused, {len(ALLOWED)} allowed by name")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
