"""An API proxy for tests: stands between the operator and a real API server, and makes trouble.

It talks TLS with the credentials of a kubeconfig to the server, and plain HTTP on loopback to the
operator. It runs in a thread with an event loop of its own, so that synchronous tests can use it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from tests.cluster.processes import start_time
from tests.support.api_call import Call
from tests.support.kubeconfig import read_kubeconfig, write_plain_kubeconfig
from tests.support.proxy_server import (
    WAIT_SECONDS,
    Action,
    Happening,
    ProxyServer,
    Refusal,
    Write,
)
from tests.support.proxy_troubles import Delay, Loss, Unrest

T = TypeVar("T")


class ApiProxy:
    """`with ApiProxy(kubeconfig) as proxy:` and the operator is given `proxy.kubeconfig`."""

    url: str
    kubeconfig: Path

    def __init__(self, kubeconfig: Path | str) -> None:
        self._upstream = Path(kubeconfig)
        self._server = ProxyServer()
        self._loop: asyncio.AbstractEventLoop
        self._closing: ExitStack

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            access = read_kubeconfig(self._upstream, folder)
            self._loop = stack.enter_context(_loop_in_thread())
            port = self._run(self._server.start(access))
            stack.callback(lambda: self._run(self._server.stop()))
            self.url = f"http://127.0.0.1:{port}"
            self.kubeconfig = write_plain_kubeconfig(folder / "config", self.url)
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
        if self._server.errors:
            raise ExceptionGroup("hooks of the proxy failed", self._server.errors)

    @property
    def writes(self) -> tuple[Write, ...]:
        """What was written through the proxy, in the order the server saw it."""
        return tuple(self._server.writes)

    def calls(self, verb: str = "", plural: str = "", user_agent: str = "") -> int:
        """How many requests there were; what is empty is not asked for."""
        return sum(
            count
            for (of_verb, of_plural, of_agent), count in self._server.counts.copy().items()
            if verb in ("", of_verb) and plural in ("", of_plural) and user_agent in of_agent
        )

    def open_watches(self, plural: str = "") -> int:
        return sum(plural in ("", found) for found in list(self._server.pumps.values()))

    def wait_for(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until a condition over this proxy's figures holds."""
        with self._server.changed:
            if not self._server.changed.wait_for(condition, seconds):
                raise TimeoutError(f"the proxy did not see it within {seconds:g} s")

    def refuse(
        self,
        rule: Callable[[Call], bool],
        status: int,
        message: str,
        times: int | None = 1,
        *,
        retry_after: int | None = None,
    ) -> Refusal:
        """Answer the next calls of a rule with a refusal; the server does not see them."""
        refusal = Refusal(rule, status, message, times, retry_after)
        self._do(lambda: self._server.refusals.append(refusal))
        return refusal

    def lose_answers(self, rule: Callable[[Call], bool], times: int | None = 1) -> Loss:
        """Let the server do what the next calls of a rule ask, and break the line then."""
        loss = Loss(rule, times)
        self._do(lambda: self._server.losses.append(loss))
        return loss

    def delay(self, rule: Callable[[Call], bool], seconds: float) -> Delay:
        """Let the calls of a rule wait before the server sees them."""
        delay = Delay(rule, seconds)
        self._do(lambda: self._server.delays.append(delay))
        return delay

    def be_unwell(
        self, rate: float, seed: int, rule: Callable[[Call], bool] = lambda _call: True
    ) -> Unrest:
        """Let this share of all requests fail from now on; a rate of 0 ends it."""
        unrest = Unrest(rate, seed, rule)

        def begin() -> None:
            self._server.unrest = unrest

        self._do(begin)
        return unrest

    def show_past(self, plural: str, revision: str) -> None:
        """LISTs show that revision, and watches nothing: an API server that fell behind."""
        self._do(lambda: self._server.past.update({plural: revision}))
        self.hold_watch(plural)

    def show_present(self, plural: str) -> None:
        """The server catches up: watches tell all that happened since, in order."""
        self._do(lambda: self._server.past.pop(plural))
        self.release_watch(plural)

    def shuffle_lists(self, plural: str, seed: int) -> None:
        """Answer LISTs with their items in another order."""
        self._do(lambda: self._server.orders.update({plural: seed}))

    def hold_object(self, plural: str, name: str) -> None:
        """Keep back what watches tell of one object."""
        self._do(lambda: self._server.kept.setdefault((plural, name), {}))

    def kept_back(self, plural: str, name: str) -> bool:
        """Whether anything was kept back of it."""
        return bool(self._server.kept.get((plural, name)))

    def release_last(self, plural: str, name: str) -> None:
        """Deliver only the newest of what was kept back."""
        self._run(self._server.release_last(plural, name))

    def cut_watches(self, plural: str = "") -> int:
        """Break the connections of open watches; returns how many there were."""
        return self._do(lambda: self._server.cut(plural))

    def gone_next_watch(self, plural: str) -> Happening:
        """Tell the next watch from a revision that it is forgotten: its client must list anew."""
        happening = Happening(f"watch of {plural} told that its revision is gone")
        self._do(lambda: self._server.gone.setdefault(plural, []).append(happening))
        return happening

    def hold_watch(self, plural: str) -> None:
        """Keep events back, bookmarks too, of watches open now or later; connections stay."""
        self._do(lambda: self._server.gate(plural).clear())

    def release_watch(self, plural: str) -> None:
        """Deliver what was kept back, in order."""
        self._do(lambda: self._server.gate(plural).set())

    def before_write(self, number: int, action: Action) -> None:
        """Do something when that write has arrived and the server has not seen it."""
        self._do(lambda: self._server.before.setdefault(number, []).append(action))

    def after_write(self, number: int, action: Action) -> None:
        """Do something when the server has answered that write and the client does not know."""
        self._do(lambda: self._server.after.setdefault(number, []).append(action))

    def on_write(self, when: Literal["before", "after"], action: Callable[[Write], None]) -> None:
        """Do something at every write from now on."""
        self._do(lambda: self._server.onlookers[when].append(action))

    def drop_clients(self) -> None:
        """Break all connections; what they asked and the server has not seen is forgotten."""
        self._run(self._server.drop_clients())

    def kill_at(
        self, number: int, when: Literal["before", "after"], pid_of: Callable[[], int]
    ) -> Happening:
        """SIGKILL a client before a write reaches the server, or before it knows the answer."""
        happening = Happening(f"SIGKILL {when} write {number}")

        def kill() -> None:
            _kill_and_wait(pid_of())
            self.drop_clients()
            happening.mark()

        (self.before_write if when == "before" else self.after_write)(number, kill)
        return happening

    def _do(self, action: Callable[[], T]) -> T:
        async def act() -> T:
            return action()

        return self._run(act())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="api-proxy")
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        asyncio.run_coroutine_threadsafe(_drain(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _drain() -> None:
    """End what is left on the loop: a connection under way must not outlive it unclosed."""
    loop: Any = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    while open_ones := [one for one in loop._transports.values() if not one.is_closing()]:
        for transport in open_ones:
            transport.abort()
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)  # closing itself takes a few turns of the loop


def _kill_and_wait(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_SECONDS
    while start_time(pid) is not None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} outlives SIGKILL")
        time.sleep(0.001)
