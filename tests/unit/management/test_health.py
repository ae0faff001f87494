"""The health answer of each state: one golden file per row of the state table, told by the plan."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from supervisor_api.keeping import keep_supervisor
from supervisor_operator.api.v1alpha1.meta import ConditionStatus
from supervisor_operator.core.health.advice import ADVICE
from supervisor_operator.core.health.assess import PATIENCE, assess
from supervisor_operator.core.health.level import level_of
from supervisor_operator.core.health.report import HealthReport, Level
from supervisor_operator.core.health.subject import Beat, Subject
from supervisor_operator.core.states import State
from supervisor_operator.core.words import ConditionType
from tests.support.health_stories import MORE, STORIES, Told, all_stories, told

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "UPDATE_GOLDEN"


def report(story: Told, beat: Beat | None = None) -> HealthReport:
    return assess(Subject.of(story.item), story.now, beat)


def dump(found: HealthReport) -> str:
    content = found.model_dump(by_alias=True, mode="json", exclude_none=True)
    return json.dumps(content, indent=1) + "\n"


def test_every_state_has_a_story_and_every_story_a_golden_file() -> None:
    assert set(STORIES) == set(State)
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(all_stories())


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_each_story_ends_in_its_state(state: State) -> None:
    subject, row = Subject.of(told(STORIES[state]()).item), state.value
    status = subject.status
    assert (status.phase, status.health) == (row.phase or status.phase, row.health)
    assert subject.ready is not None
    assert (subject.ready.status, subject.reason) == (row.ready, row.reason or subject.reason)
    assert subject.reconciling == (row.reconciling or "")
    assert subject.is_true(ConditionType.STALLED) == row.stalled


@pytest.mark.parametrize("name", list(all_stories()))
def test_the_answer_is_the_golden_one(name: str) -> None:
    path = GOLDEN / f"{name}.json"
    found = dump(report(told(all_stories()[name]())))
    if os.environ.get(UPDATE):
        path.write_text(found)
    assert found == path.read_text(), f"if it is better now: {UPDATE}=1 make unit"


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_the_level_says_who_must_act(state: State) -> None:
    found, row = report(told(STORIES[state]())), state.value
    assert (found.level is Level.HEALTHY) == (row.ready is ConditionStatus.TRUE)
    if found.level is Level.UNHEALTHY:
        assert row.stalled
        assert found.commands, "whoever must act is told how"
    if row.stalled:
        assert found.level in {Level.UNHEALTHY, Level.DEGRADED}
    assert found.cause
    assert found.next_step.endswith(".")
    assert found.next_step[0].isupper()


def test_every_reason_of_the_table_has_advice_of_its_own() -> None:
    reasons = {state.value.reason for state in State} - {None}
    assert reasons <= set(ADVICE)


def test_commands_are_about_this_object_in_its_namespace() -> None:
    for name in STORIES:
        found = report(told(STORIES[name]()))
        for command in found.commands:
            assert command.startswith("kubectl "), command
            cluster_wide = ("describe node", "get validatingadmissionpolicy", "apply -k")
            assert "-n default" in command or any(word in command for word in cluster_wide)


def test_a_silence_that_nobody_judged_says_that_the_operator_is_away() -> None:
    story = told(STORIES[State.RUNNING]())
    allowed = Subject.of(story.item).allowed_silence
    just = Beat(story.now - allowed - PATIENCE)
    assert report(story, just).level is Level.HEALTHY
    found = report(story, Beat(story.now - allowed - PATIENCE - timedelta(seconds=1)))
    assert (found.level, found.reason) == (Level.UNKNOWN, "SilenceUnjudged")
    assert "supervision-system" in found.commands[0]


def test_the_live_beat_counts_rather_than_the_column() -> None:
    story = told(STORIES[State.RUNNING]())
    found = report(story, Beat(story.now - timedelta(seconds=65), "no file"))
    beat = found.heartbeat
    assert (beat.age_seconds, beat.missed, beat.allowed, beat.problem) == (65, 2, 3, "no file")


def test_a_spec_newer_than_the_status_is_unknown() -> None:
    story = told(STORIES[State.RUNNING]())
    story.item["metadata"]["generation"] += 1
    assert (report(story).level, report(story).reason) == (Level.UNKNOWN, "StatusOutdated")


def test_what_cannot_be_read_is_still_answered() -> None:
    story = told(STORIES[State.RUNNING]())
    story.item["spec"] = {"restart": {"maxRestarts": "many"}}
    assert report(story).level is Level.HEALTHY, "by what the operator wrote"
    story.item["status"] = {"conditions": "none"}
    assert report(story).level is Level.UNKNOWN


def test_whose_mode_it_is_decides_whom_to_resume() -> None:
    own = report(told(STORIES[State.PAUSED]()))
    teams = report(told(MORE["team-paused"]()))
    assert '"operatingMode":"Running"' in own.commands[0]
    assert teams.commands == ["kubectl -n default get supteam crew"]


def test_level_needs_no_clock() -> None:
    for name, story in all_stories().items():
        found = told(story())
        assert level_of(Subject.of(found.item)) is report(found).level, name


@pytest.mark.parametrize("name", list(all_stories()))
def test_the_snapshot_has_the_same_words(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    brief = json.loads(keep_supervisor(told(all_stories()[name]()).item).brief)
    for word in ("level", "reason", "cause", "nextStep"):
        assert brief[word] == golden[word]
    assert brief["since"]
    assert not (brief["level"] == Level.HEALTHY and brief["lastBeat"]), "it would never be still"
