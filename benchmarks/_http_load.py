"""Load over HTTP/1.1: kept connections, one request in flight on each, hardly any client."""

import select
import socket
from contextlib import closing
from functools import partial
from typing import Any

from ._harness import Column, Sample, Settings
from ._http import CHUNK, ENDED, HttpServer
from ._process import Run, check_answers, clocked
from ._requests import Template, is_complete, template

#: Connections, where more than one is measured.
MANY = 16


def columns(unit: str) -> tuple[Column, ...]:
    """Return the columns of such a table; `unit` is what one request is timed in."""
    return (
        Column("one_us", unit, ranged=True),
        Column("one_cpu_us", f"CPU {unit}"),
        Column("one_client_us", "client CPU µs", compared=False),
        Column("many_us", f"{MANY} connections: {unit}", ranged=True),
        Column("many_cpu_us", f"CPU {unit}"),
        Column("many_client_us", "client CPU µs", compared=False),
    )


class HttpLoad:
    """Requests of one kind.

    Args:
        server: Who answers.
        request: The request, without its id.
        window: How many connections there are.
        expected: What stands in every answer.
        whole: Whether every answer is looked at. Otherwise, where answers are too large to be
            kept, the last one is, and all must have its length.
    """

    def __init__(
        self,
        server: HttpServer,
        request: Template,
        window: int,
        expected: bytes,
        *,
        whole: bool = True,
    ) -> None:
        self.window = window
        self._server = server
        self._request = request
        self._expected = expected
        self._whole = whole
        self._connections = [server.connect() for _ in range(window)]
        for connection in self._connections:
            connection.setblocking(False)

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    def run(self, count: int) -> Run:
        """Send as many requests and wait for their answers."""
        ids = self._server.ids(count)
        requests = [self._request.fill(each) for each in ids]
        exchange = partial(self._exchange, requests)
        run, (answers, length) = clocked(self._server.cpu, count, exchange)
        self._check(answers, length, ids)
        return run

    def _exchange(self, requests: list[bytes]) -> tuple[list[bytes], int]:
        """Answer by answer, send one more; returns the answers (or the last ones), their length."""
        coming = iter(requests)
        answers: list[bytes] = []
        answered = length = 0
        parts: dict[int, bytes] = {}
        sockets: dict[int, socket.socket] = {}
        with select.epoll() as epoll:
            for connection, request in zip(self._connections, coming, strict=False):
                sockets[connection.fileno()] = connection
                epoll.register(connection, select.EPOLLIN)
                connection.send(request)
            while answered < len(requests):
                for number, _ in epoll.poll():
                    data = sockets[number].recv(CHUNK)
                    if not data:
                        raise RuntimeError(f"{ENDED}: {self._server.last_words()}")
                    data = parts.pop(number, b"") + data
                    if not is_complete(data):
                        parts[number] = data
                        continue
                    answered += 1
                    length += len(data)
                    answers.append(data)
                    following = next(coming, None)
                    if following is not None:
                        sockets[number].send(following)
                    if not self._whole:
                        del answers[:-1]
        return answers, length

    def _check(self, answers: list[bytes], length: int, ids: range) -> None:
        for answer in answers:
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"unexpected answer: {answer[:200]!r}")
        if self._whole:
            check_answers(answers, self._expected, ids)
        elif self._expected not in answers[-1] or length != len(answers[-1]) * len(ids):
            raise RuntimeError(f"unexpected answer: {answers[-1][:200]!r}")


def measure(
    server: HttpServer,
    era: str,
    method: str,
    params: dict[str, Any],
    expected: bytes,
    settings: Settings,
    *,
    whole: bool = True,
) -> Sample:
    """Measure a server with one connection, then with many.

    Args:
        server: The server, before its first request.
        era: The revision.
        method: The method of the requests.
        params: Their params.
        expected: What stands in every answer.
        settings: How long.
        whole: Whether every answer is looked at.

    Returns:
        A figure for each of the columns.
    """
    session, _ = server.open(era)
    request = template(server.port, era, method, params, session)
    figures: Sample = {}
    for name, window in (("one", 1), ("many", MANY)):
        with closing(HttpLoad(server, request, window, expected, whole=whole)) as load:
            run = server.pace(load, settings.warm_up, settings.seconds)
        figures[f"{name}_us"] = run.wall_us
        figures[f"{name}_cpu_us"] = run.cpu_us
        figures[f"{name}_client_us"] = run.client_us
    return figures
