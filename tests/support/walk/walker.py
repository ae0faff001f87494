"""Walks leaf fields on living objects, many at once: each walker goes on when it has arrived.

Arrived is: equal to a fresh object that was made with that spec, in all but what may differ.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from supervisor_operator.crdgen.schema import Schema
from tests.support.builders import an_object
from tests.support.kubectl import Kubectl
from tests.support.tokens import Admin
from tests.support.walk.leaves import misfits, with_leaf, without_leaf
from tests.support.walk.snapshot import (
    CUSTOM,
    View,
    condition,
    differences,
    is_looked_at,
    is_settled,
    look,
    snapshot,
)
from tests.support.walk.table import BASE, Steps, Trouble

Json = dict[str, Any]
PLURALS = {"Supervisor": "supervisors", "SupervisorTeam": "supervisorteams"}
JSON_PATCH = "application/json-patch+json"
ME = "{me}"
SPARES = ("x", "y", "z")
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.7
BEAT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Leg:
    """One edit, and where it leads: like a fresh object, to a trouble, or to a refusal."""

    what: str
    spec: Json
    like: Json | None = None
    trouble: Trouble | None = None
    runs: int = 0
    names: str = ""
    """The field that a refusal must name."""


@dataclass(slots=True)
class Walker:
    kind: str
    leaves: tuple[str, ...]
    name: str
    legs: list[Leg]
    anew: bool
    at: int = 0
    run: int = 1
    why: str = ""
    failed: bool = False

    @property
    def done(self) -> bool:
        return self.failed or self.at >= len(self.legs)

    @property
    def leg(self) -> Leg:
        return self.legs[min(self.at, len(self.legs) - 1)]

    @property
    def failure(self) -> str:
        who = f"{self.kind} {', '.join(self.leaves[:3])}"
        return f"{who}: {self.leg.what}: {self.why}" if self.failed else ""

    def fail(self, why: str) -> None:
        self.failed, self.why = True, why


class WalkError(AssertionError):
    pass


def plan_legs(schemas: Mapping[str, Schema], table: Mapping[str, Steps]) -> list[Leg]:
    """Of one field, or of several that are set, changed and removed together."""
    steps = next(iter(table.values()))
    base = BASE | steps.base
    first = _with_all(base, {leaf: one.first for leaf, one in table.items()})
    second = _with_all(base, {leaf: one.second for leaf, one in table.items()})
    wrong = [
        Leg(f"{leaf} wrong", with_leaf(base, leaf, value), names=leaf)
        for leaf in table
        for value in misfits(schemas[leaf])
    ]
    if steps.refused:
        values = [(leaf, value) for leaf, one in table.items() for value in (one.first, one.second)]
        wrong += [
            Leg(f"{leaf} set", with_leaf(base, leaf, value), names=leaf) for leaf, value in values
        ]
        return [Leg("as it is", base, base), *wrong]
    end = second if steps.stays else base
    needed = {leaf: gone for leaf in table if (gone := without_leaf(base, leaf)) != base}
    return [
        Leg("as it is", base, base),
        Leg("set", first, first, runs=steps.runs[0]),
        Leg("changed", second, second, runs=steps.runs[1]),
        *(Leg(f"{leaf} removed", gone, names=leaf) for leaf, gone in needed.items()),
        Leg("removed", base, end, runs=steps.runs[2]),
        *wrong,
        *_troubles(base, end, table),
    ]


def _with_all(spec: Json, values: Mapping[str, Any]) -> Json:
    for leaf, value in values.items():
        spec = with_leaf(spec, leaf, value)
    return spec


def _troubles(base: Json, end: Json, table: Mapping[str, Steps]) -> Iterator[Leg]:
    for leaf, steps in table.items():
        for trouble in steps.troubles:
            bad = with_leaf(base, leaf, trouble.value)
            what = f"{leaf} {trouble.reason}"
            yield Leg(what, bad, trouble=trouble, runs=trouble.runs[0])
            yield Leg(f"back from {what}", base, end, runs=trouble.runs[1])


class Ground:
    """A namespace with an operator, and everything that is walked in it."""

    def __init__(self, kubectl: Kubectl, admin: Admin) -> None:
        self._namespace = kubectl.namespace
        self._admin = admin
        self._fresh: dict[str, str] = {}
        self._walkers: list[Walker] = []
        self._beaten = time.monotonic()
        self._sequence = 0
        self._seen: dict[str, tuple[tuple[str, ...], Json]] = {}

    @property
    def walkers(self) -> tuple[Walker, ...]:
        return tuple(self._walkers)

    @property
    def fresh(self) -> int:
        return len(self._fresh)

    def add(self, kind: str, schemas: Mapping[str, Schema], table: Mapping[str, Steps]) -> None:
        legs = plan_legs(schemas, table)
        name = f"walk{len(self._walkers):03}"
        self.create(kind, name, legs[0].spec)
        anew = next(iter(table.values())).anew
        self._walkers.append(Walker(kind, tuple(table), name, legs, anew))
        for leg in legs:
            if leg.like is not None and _key(kind, leg.like) not in self._fresh:
                like = self._fresh[_key(kind, leg.like)] = f"norm{len(self._fresh):03}"
                self.create(kind, like, leg.like)

    def create(self, kind: str, name: str, spec: Json) -> None:
        if f'"{ME}-' in json.dumps(spec):
            for spare in SPARES:
                self._ask("POST", "supervisors", an_object("Supervisor", f"{name}-{spare}", BASE))
        self._ask("POST", PLURALS[kind], an_object(kind, name, _for(name, spec)))

    def walk(self) -> None:
        """Until every walker is through, or nobody gets any further."""
        made, since = self.made, time.monotonic()
        while walking := [walker for walker in self._walkers if not walker.done]:
            view = self.look()
            for walker in walking:
                while not walker.done and self._arrives(view, walker):
                    self._go_on(walker)
                    view.supervisors.pop(walker.name, None)
                    view.teams.pop(walker.name, None)
            if made != self.made:
                made, since = self.made, time.monotonic()
            if time.monotonic() - since > PATIENCE_SECONDS:
                for walker in walking:
                    walker.fail(walker.why)
            print(f"{made} of {self.edits} edits", file=sys.stderr, flush=True)
            time.sleep(LOOK_SECONDS)

    @property
    def edits(self) -> int:
        return sum(len(walker.legs) for walker in self._walkers)

    @property
    def made(self) -> int:
        return sum(walker.at for walker in self._walkers)

    def look(self) -> View:
        view = look(self._admin, self._namespace)
        self._beat(view)
        return view

    def stays(self, view: View) -> Iterator[str]:
        """What of the walked differs from the fresh after all."""
        for walker in self._walkers:
            item, leg = view.item(walker.kind, walker.name), walker.legs[-1]
            last = next((one for one in reversed(walker.legs) if one.like is not None), leg)
            if item and not walker.failure and last.like is not None:
                yield from (
                    f"{walker.kind} {', '.join(walker.leaves[:3])} in the end: {found}"
                    for found in self._differences(view, walker, item, last.like)
                )

    def _arrives(self, view: View, walker: Walker) -> bool:
        """Whether the leg is over; a refusal is so at once."""
        leg, item = walker.leg, view.item(walker.kind, walker.name)
        if leg.like is None and leg.trouble is None:
            return True
        why = ["it was not looked at"]
        if item and is_looked_at(item):
            why = list(self._lacks(view, walker, leg, item))
        walker.why = "; ".join(why)
        return not why

    def _lacks(self, view: View, walker: Walker, leg: Leg, item: Json) -> Iterator[str]:
        if leg.trouble:
            yield from _not_said(view, leg.trouble, item)
        elif leg.like is not None:
            yield from self._differences(view, walker, item, leg.like)
        for agent in view.agents(item):
            run = agent.get("status", {}).get("run")
            wanted = 1 if walker.anew else walker.run
            if run != wanted:
                yield f"{agent['metadata']['name']} is in run {run}, wanted {wanted}"

    def _differences(self, view: View, walker: Walker, item: Json, like: Json) -> Iterator[str]:
        fresh = view.item(walker.kind, self._fresh[_key(walker.kind, like)])
        if fresh is None or not is_settled(view, fresh):
            yield f"the fresh one is not settled: {json.dumps(fresh and fresh.get('status'))}"
        else:
            yield from differences(self._snapshot(view, fresh), self._snapshot(view, item))

    def _snapshot(self, view: View, item: Json) -> Json:
        """Made anew only where something has changed."""
        name, versions = item["metadata"]["name"], view.versions(item)
        if name not in self._seen or self._seen[name][0] != versions:
            self._seen[name] = (versions, snapshot(view, item))
        return self._seen[name][1]

    def _go_on(self, walker: Walker) -> None:
        """Make the edits that follow; those that shall be refused are over at once."""
        walker.at += 1
        if walker.done:
            return
        leg = walker.leg
        change = [{"op": "replace", "path": "/spec", "value": _for(walker.name, leg.spec)}]
        path = f"{CUSTOM}/namespaces/{self._namespace}/{PLURALS[walker.kind]}/{walker.name}"
        reply = self._admin.ask("PATCH", path, change, JSON_PATCH)
        walker.run += leg.runs
        is_refusal = leg.like is None and leg.trouble is None
        if is_refusal != (reply.status == HTTPStatus.UNPROCESSABLE_ENTITY):
            walker.fail(f"answered {reply.status} {reply.message}")
        elif _last(leg.names) not in reply.message:
            walker.fail(f"the refusal does not name it: {reply.message}")

    def _beat(self, view: View) -> None:
        """Every pod beats once when it has begun, and now and then."""
        is_due = time.monotonic() - self._beaten > BEAT_SECONDS
        if is_due:
            self._beaten = time.monotonic()
        for beats in view.heartbeats.values():
            for beat in beats:
                if is_due or "status" not in beat:
                    self._sequence += 1
                    path = f"heartbeats/{beat['metadata']['name']}/status"
                    status = {"sequence": self._sequence, "beatAgeMillis": 0}
                    self._ask("PATCH", path, {"status": status}, gone=True)

    def _ask(self, method: str, path: str, body: Json, *, gone: bool = False) -> None:
        reply = self._admin.ask(method, f"{CUSTOM}/namespaces/{self._namespace}/{path}", body)
        if reply.status >= HTTPStatus.BAD_REQUEST and not (
            gone and reply.status == HTTPStatus.NOT_FOUND
        ):
            raise WalkError(f"{method} {path}: {reply.message}")


def _not_said(view: View, trouble: Trouble, item: Json) -> Iterator[str]:
    tellers: Iterable[Json] = view.agents(item) if trouble.of_member else [item]
    for teller in tellers:
        said = condition(teller, trouble.condition)
        if not is_looked_at(teller) or said.get("reason") != trouble.reason:
            yield f"says {json.dumps(teller.get('status', {}).get('conditions'))}"
        elif not said.get("message"):
            yield f"{trouble.reason} without a word of why"


def _for(name: str, spec: Json) -> Json:
    found: Json = json.loads(json.dumps(spec).replace(ME, name))
    return found


def _key(kind: str, spec: Json) -> str:
    return json.dumps([kind, spec], sort_keys=True)


def _last(leaf: str) -> str:
    return leaf.rpartition(".")[2].removesuffix("[]")
