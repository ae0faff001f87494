#!/usr/bin/env python3
"""A sample agent that needs nothing but Python: it works, and beats into its heartbeat file.

agent.py beat            beat for ever
agent.py freeze-after N  beat for N seconds, then hang: no beat any more, deaf even to SIGTERM
agent.py crash-after N   beat for N seconds, then fail
agent.py finish-after N  beat for N seconds, then be done
agent.py busy N          beat, and every other moment announce N seconds of work without a beat
"""

import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

FILE = Path(os.environ.get("SUPERVISION_HEARTBEAT_FILE") or "logs/heartbeat.json")
PAUSE = float(os.environ.get("SUPERVISION_INTERVAL_SECONDS") or 30) / 2


def beat(turn: int, busy_seconds: float = 0) -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    draft = FILE.with_suffix(".draft")
    draft.write_text(
        json.dumps(
            {
                "unix_ts": time.time_ns() / 1e9,
                "metrics": {"turn": turn},
                "busy_seconds": busy_seconds,
            }
        )
    )
    draft.replace(FILE)  # in one step: nobody ever reads half a beat


def work(seconds: float, busy: float = 0) -> None:
    end = time.monotonic() + seconds
    turn = 0
    while (left := end - time.monotonic()) > 0:
        turn += 1
        beat(turn)
        time.sleep(min(PAUSE, left))
        if busy:
            beat(turn, busy)
            time.sleep(busy)


def hang() -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def stop(_signum: int, _frame: object) -> NoReturn:
    sys.exit(0)


def main(mode: str, seconds: float) -> None:
    # The first process of a container is ended by SIGTERM only if it says how.
    signal.signal(signal.SIGTERM, stop)
    work(seconds if mode.endswith("-after") else math.inf, seconds if mode == "busy" else 0)
    if mode == "freeze-after":
        hang()
    if mode == "crash-after":
        sys.exit(f"agent: crashing after {seconds:g} s, as asked")


if __name__ == "__main__":
    words = sys.argv[1:] or ["beat"]
    modes = ("beat", "freeze-after", "crash-after", "finish-after", "busy")
    if words[0] not in modes or len(words) != (1 if words[0] == "beat" else 2):
        sys.exit(str(__doc__))
    main(words[0], float(words[1]) if words[1:] else 0)
