"""Alert rules and dashboard ask for metrics and labels that exist, and the guide has a line for each alert."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from app.db.pools import APP, ENGINE
from app.domain.ingestion.figures import ENGINES, OPEN_STATES, SUBJECTS
from app.jobs import QUEUES
from app.metrics import declared
from app.parsing.errors import __doc__ as parse_codes
from app.retrieval.contract import MODES
from tests.architecture.sources import ROOT
from tests.docs.pages import page
from workers.schedule import SWEEP

FOLDER = ROOT / "deploy" / "observability"
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
# Prometheus itself adds these.
SCRAPED = {"job", "instance", "le"}
SELECTOR = re.compile(r"\b(trellis_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|group_left|without)\s*\(([^)]*)\)")
# Values that a label can have, where they are few and known.
VALUES = {
    "service": {"postgres", "redis"}, "state": set(OPEN_STATES), "engine": set(ENGINES), "subject": set(SUBJECTS),
    "queue": set(QUEUES), "mode": set(MODES), "pool": {APP, ENGINE}, "task": {SWEEP}, "status": {"2xx", "3xx", "4xx", "5xx"},
    "outcome": {"done", "skipped", "failed", "handed_back", "answered", "abandoned", "delivered"},
    "job": {"trellis-api", "trellis-worker"}, "code": set(re.findall(r"[a-z_]+", str(parse_codes))),
    "kind": {"queued_.*", "expired_.*"},
}  # fmt: skip


def known() -> dict[str, set[str]]:
    """Labels of every series, by its name."""
    found: dict[str, set[str]] = {"up": set()}
    for name, kind, labels in declared():
        for suffix in ("_bucket", "_count", "_sum") if kind == "histogram" else ("",):
            found[name + suffix] = set(labels)
    return found


SERIES = known()


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= {label for group in GROUPING.findall(target["expr"]) for label in re.findall(r"\w+", group)}


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_what_is_asked_for_exists(name: str, expression: str) -> None:
    selectors = SELECTOR.findall(expression)
    assert selectors, f"{name} asks for nothing of ours"
    offered = SCRAPED.copy()
    for series, matchers in selectors:
        assert series in SERIES, series
        offered |= SERIES[series]
        for label, _, value in MATCHER.findall(matchers):
            assert label in SERIES[series] | SCRAPED, (series, label)
            assert set(value.split("|")) <= VALUES[label], (label, value)
    for group in GROUPING.findall(expression):
        assert set(re.findall(r"\w+", group)) <= offered, group


def test_what_tells_of_a_process_that_is_gone_does_not_go_with_it() -> None:
    """Once no target is left there is no series, and a comparison of nothing with 0 never fires."""
    for rule in RULES:
        for series, matchers in SELECTOR.findall(re.sub(r"absent\([^)]*\)", "", rule["expr"])):
            if series in ("up", "trellis_reachable"):
                for label, _, values in MATCHER.findall(matchers):
                    for value in values.split("|"):
                        assert f'absent({series}{{{label}="{value}"}})' in rule["expr"], rule["alert"]


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ()))
    assert [name for name, _, _ in declared() if not re.search(rf"\b{name}(_bucket|_count|_sum)?\b", shown)] == []


def test_panels_do_not_cover_each_other() -> None:
    taken = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_alert_is_explained_and_says_how_urgent_it_is() -> None:
    names = [rule["alert"] for rule in RULES]
    assert sorted(set(re.findall(r"`(Trellis\w+)`", page("operations.md")))) == sorted(names)
    assert {rule["labels"]["severity"] for rule in RULES} == {"page", "ticket"}
    assert all(rule["for"] and rule["annotations"]["summary"] for rule in RULES)


def test_no_label_can_name_a_tenant() -> None:
    told = {label for _, _, labels in declared() for label in labels}
    assert not [label for label in told if re.search("tenant|workspace|document|version|user|_id", label)]


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (Debian's package `prometheus`) is not installed"
)
def test_prometheus_takes_the_rules() -> None:
    answer = subprocess.run(["promtool", "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
