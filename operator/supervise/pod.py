"""What the pod spec tells the relay. Nothing here fails: what is missing is said and lived with."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from supervise.contract import (
    FILE_VARIABLE,
    HOST_VARIABLE,
    INTERVAL_VARIABLE,
    NAMESPACE_VARIABLE,
    POD_FILE,
    POD_INTERVAL,
    POD_VARIABLE,
    PORT_VARIABLE,
    STATUS_PATH,
    TOKEN_FOLDER,
    TOKEN_FOLDER_VARIABLE,
)

MAX_PORT = 65_535
LETTERS = set("abcdefghijklmnopqrstuvwxyz0123456789-.")


class Pod(NamedTuple):
    file: str
    interval: float
    host: str
    port: int
    path: str
    token_folder: str
    obstacle: str  # why nothing can be sent, if so
    problems: tuple[str, ...]  # what is amiss, though the relay can work


def this_pod(environment: Mapping[str, str]) -> Pod:
    needed = (POD_VARIABLE, NAMESPACE_VARIABLE, HOST_VARIABLE, PORT_VARIABLE)
    name, namespace, host, port = (environment.get(variable, "") for variable in needed)
    missing = [variable for variable in needed if not environment.get(variable)]
    obstacle = f"not set in the pod spec: {', '.join(missing)}" if missing else ""
    number = int(port) if port.isdecimal() else 0
    if port and not 0 < number <= MAX_PORT:
        obstacle = obstacle or f"{PORT_VARIABLE} must be a port, not {port}"
    for variable, word in ((POD_VARIABLE, name), (NAMESPACE_VARIABLE, namespace)):
        if not set(word) <= LETTERS:
            obstacle = obstacle or f"{variable} must be a name, not {word}"
    interval, wrong_interval = _interval(environment.get(INTERVAL_VARIABLE, ""))
    file = environment.get(FILE_VARIABLE, "")
    no_file = "" if file else f"{FILE_VARIABLE} is not set: using {POD_FILE}"
    return Pod(
        file or POD_FILE,
        interval,
        host,
        number,
        STATUS_PATH.format(namespace=namespace, pod=name),
        environment.get(TOKEN_FOLDER_VARIABLE) or TOKEN_FOLDER,
        obstacle,
        tuple(problem for problem in (no_file, wrong_interval) if problem),
    )


def _interval(word: str) -> tuple[float, str]:
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    if 0 < seconds < math.inf:
        return seconds, ""
    said = f"must be seconds, not {word}" if word else "is not set"
    return POD_INTERVAL, f"{INTERVAL_VARIABLE} {said}: using {POD_INTERVAL:g}"
