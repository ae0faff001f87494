"""`supervise beat`: one whole beat, in one step."""

import json
import subprocess
import threading
from pathlib import Path

import pytest

from supervise import beatfile
from tests.unit.supervise.harness import BEAT, ENVIRONMENT, SUPERVISE, running, shell


def beat(
    folder: Path, *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUPERVISE, "beat", *words],
        cwd=folder,
        env={**ENVIRONMENT, **(environment or {})},
        capture_output=True,
        check=False,
        text=True,
    )


def test_a_beat_goes_to_the_usual_file(tmp_path: Path) -> None:
    assert beat(tmp_path).returncode == 0
    content = json.loads((tmp_path / "logs" / "heartbeat.json").read_text())
    assert list(content) == ["unix_ts"]


def test_the_environment_says_where(tmp_path: Path) -> None:
    there = {"SUPERVISION_HEARTBEAT_FILE": str(tmp_path / "there.json")}
    assert beat(tmp_path, environment=there).returncode == 0
    assert (tmp_path / "there.json").exists()


def test_metrics_and_busy_seconds_are_kept(tmp_path: Path) -> None:
    metrics = ["--metrics", "trades=3", "pnl=-1.5", "--metrics", "mode=live", "odd=nan"]
    words = ["--heartbeat-file", BEAT, *metrics, "--busy-seconds", "90"]
    assert beat(tmp_path, *words).returncode == 0
    content = json.loads((tmp_path / BEAT).read_text())
    assert content["metrics"] == {"trades": 3, "pnl": -1.5, "mode": "live", "odd": "nan"}
    assert content["busy_seconds"] == 90
    sighting = beatfile.read(tmp_path / BEAT)
    assert sighting.beat
    assert sighting.beat.busy_seconds == 90


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--metrics", "trades"], 2, "must be KEY=VALUE, not trades"),
        (["--metrics", f"text={'x' * 5000}"], 2, "metrics take 5012 bytes, at most 4096 are kept"),
        (["--busy-seconds", "-1"], 2, "must be zero or more seconds, not -1"),
        (["--heartbeat-file", "/proc/no/beat"], 1, "cannot write /proc/no/beat"),
        (["--heartbeat-file", "."], 2, "the heartbeat file needs a name, not ."),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, words: list[str], code: int, complaint: str
) -> None:
    done = beat(tmp_path, *words)
    assert done.returncode == code
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_never_sees_half_a_beat(tmp_path: Path) -> None:
    path = tmp_path / BEAT
    beatfile.write(path)
    done = threading.Event()

    def write_on() -> None:
        number = 0
        while not done.is_set():
            number += 1
            beatfile.write(path, {"text": "x" * (number % 4000)})

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        sightings = [beatfile.read(path) for _ in range(2000)]
    finally:
        done.set()
        writer.join()
    assert {sighting.problem for sighting in sightings} == {""}
    assert len({sighting.beat for sighting in sightings}) > 1
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_replaced_not_rewritten(tmp_path: Path) -> None:
    beatfile.write(tmp_path / BEAT)
    with (tmp_path / BEAT).open() as opened:
        beatfile.write(tmp_path / BEAT, {"new": 1})
        assert "new" not in opened.read()


def test_a_shell_agent_beats_for_its_supervisor(tmp_path: Path) -> None:
    program = f"for i in 1 2 3 4 5 6; do {' '.join(SUPERVISE)} beat; sleep 0.2; done"
    with running(tmp_path, shell(program), timeout=1) as run:
        assert run.code() == 0
        assert not run.events("problem")
