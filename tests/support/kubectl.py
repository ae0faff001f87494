"""kubectl as tests use it: in one namespace, with answers as values."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.cluster.local import Cluster


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class KubectlError(AssertionError):
    pass


@dataclass(frozen=True, slots=True)
class Kubectl:
    cluster: Cluster
    namespace: str

    def ask(self, *arguments: str, stdin: Any = None) -> Answer:
        """Run kubectl; a refusal is an answer too."""
        command = [
            self.cluster.kubectl,
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--namespace={self.namespace}",
            *arguments,
        ]
        text = stdin if isinstance(stdin, str | None) else json.dumps(stdin)
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=60
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: Any = None) -> Answer:
        """Run kubectl; a refusal fails the test."""
        answer = self.ask(*arguments, stdin=stdin)
        if answer.code:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {answer.err.strip()}")
        return answer

    def create(self, item: dict[str, Any]) -> dict[str, Any]:
        return self("create", "-f", "-", "-o", "json", stdin=item).json

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self("get", kind, name, "-o", "json").json

    def wait(self, what: str, condition: str) -> None:
        """Also of what is not there yet: kubectl would give up on that at once."""
        command = ("wait", what, f"--for={condition}", "--timeout=30s")
        answer = self.ask(*command)
        if answer.code and "(NotFound)" in answer.err:
            self("wait", what, "--for=create", "--timeout=30s")
            self(*command)
        elif answer.code:
            raise KubectlError(
                f"kubectl {' '.join(command)}: {answer.err.strip()}\n{self._scene(what)}"
            )

    def _scene(self, what: str) -> str:
        """What there is instead of what was waited for."""
        looks = (what, "-o", "yaml"), ("supervisors,supervisorteams,pods",), ("events",)
        return "\n".join(self.ask("get", *look).out for look in looks)

    def wait_status(self, name: str, **fields: str) -> dict[str, Any]:
        """Wait until a Supervisor's status has these words, and return the object."""
        for field, word in fields.items():
            self.wait(f"sup/{name}", f"jsonpath={{.status.{field}}}={word}")
        return self.get("sup", name)

    def patch(self, name: str, spec: dict[str, Any]) -> None:
        self("patch", "sup", name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def events(self, name: str) -> list[str]:
        """Reasons of the Events of one object, oldest first."""
        chosen = f"--field-selector=involvedObject.name={name}"
        items = self("get", "events", chosen, "-o", "json").json["items"]
        return [item["reason"] for item in sorted(items, key=lambda item: str(item["eventTime"]))]

    def names(self, kind: str) -> list[str]:
        lines = self("get", kind, "-o", "name").out.split()
        return sorted(line.partition("/")[2] for line in lines)
