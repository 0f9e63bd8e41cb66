"""The health port of a supervisor: which workers are ready, and the metrics of all of them."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from ...workers import METRICS, READY
from ._process import WorkerProcess

_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_METRICS: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_NO_METRICS: Final = b"metrics need prometheus_client: pip install 'noizu-mcp[prometheus]'\n"


class Health:
    """An ASGI application that answers `/healthz`, `/readyz` and `/metrics`.

    Args:
        workers: Returns the workers, in order of their places.

    Attributes:
        is_ending: True once the end has begun.
    """

    def __init__(self, workers: Callable[[], Iterable[WorkerProcess]]) -> None:
        self.is_ending = False
        self._workers = workers

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        """Answer one request."""
        status, kind, body = await self._answer(scope["path"])
        headers = [kind, (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, path: str) -> tuple[int, tuple[bytes, bytes], bytes]:
        if path == "/healthz":
            return 200, _TEXT, b"ok\n"
        if path == "/readyz":
            status, lines = await self._describe()
            return status, _TEXT, "".join(f"{line}\n" for line in lines).encode()
        if path == "/metrics":
            merged = merge(await self._ask_all(METRICS))
            return (200, _METRICS, merged) if merged else (404, _TEXT, _NO_METRICS)
        return 404, _TEXT, b""

    async def _describe(self) -> tuple[int, list[str]]:
        """Describe the workers, and what each of them reports beside `ok`."""
        details = await self._ask_all(READY)
        is_ready = bool(details) and not self.is_ending
        lines = ["ok" if is_ready else "stopping" if self.is_ending else "starting"]
        for each in self._workers():
            lines.append(str(each))
            reported = details.get(each.number, b"").decode().splitlines()[1:]
            lines += [f"worker {each.number}: {line}" for line in reported]
        return 200 if is_ready else 503, lines

    async def _ask_all(self, word: bytes) -> dict[int, bytes]:
        """Ask all workers that are ready; return their answers by their numbers."""
        texts: dict[int, bytes] = {}

        async def ask(worker: WorkerProcess) -> None:
            texts[worker.number] = await worker.ask(word)

        async with trio.open_nursery() as nursery:
            for each in self._workers():
                if each.is_ready:
                    nursery.start_soon(ask, each)
        return texts


def merge(texts: dict[int, bytes]) -> bytes:
    """Merge metrics of several workers, each with a label `worker`.

    Args:
        texts: The metrics in Prometheus' text format, by the numbers of the workers.
    """
    # The samples of one metric stand together, below its description, of which there is one
    # (Prometheus, "Exposition formats", "Text format details").
    metrics: dict[bytes, tuple[dict[bytes, bytes], list[bytes]]] = {}
    for number in sorted(texts):
        for line in texts[number].splitlines(keepends=True):
            kind, _, rest = line.partition(b" ")[2].partition(b" ")
            if line.startswith(b"# HELP "):
                about, samples = metrics.setdefault(rest.partition(b" ")[0], ({}, []))
            if line.startswith(b"#"):
                about.setdefault(kind, line)
            else:
                samples.append(_labelled(line, number))
    return b"".join(
        line for about, samples in metrics.values() for line in [*about.values(), *samples]
    )


def _labelled(sample: bytes, number: int) -> bytes:
    name, brace, labels = sample.partition(b"{")
    if brace:
        return b'%b{worker="%d",%b' % (name, number, labels)
    name, _, value = sample.partition(b" ")
    return b'%b{worker="%d"} %b' % (name, number, value)
