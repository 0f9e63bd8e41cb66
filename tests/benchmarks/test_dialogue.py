"""The measuring client: its replies to questions, and its checks of answers."""

import json
from pathlib import Path

import pytest

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PARAMS = {"name": "ask", "arguments": {"text": "hello bench"}}


class Scripted:
    """Replaces a server: it answers each line with the next one of a script."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.sent = b""

    def send(self, data: bytes) -> None:
        self.sent += data

    def receive(self) -> bytes:
        return self.answers.pop(0)

    def cpu(self) -> float:
        return 0.0

    def ids(self, count: int) -> range:
        return range(100, 100 + count)


@pytest.fixture
def asking(monkeypatch):
    """Return the module of the benchmark."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    from benchmarks import bench_ask

    return bench_ask


@pytest.fixture
def talk(asking):
    """Run calls with a script; return the sent messages, decoded."""

    def run(era, *answers, window=1, count=1):
        server = Scripted(*answers)
        load = asking.Dialogue(
            server, era, "tools/call", PARAMS, window, b"3 of", capabilities=asking.CAPABILITIES
        )
        load.run(count)
        assert server.answers == []
        return [json.loads(line) for line in server.sent.splitlines()]

    return run


def test_a_live_question_is_answered_on_its_id(talk):
    """On 2025-11-25 the answer is a response to the server's request, also if that is split."""
    question = b'{"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": {}}\n'
    call, answer = talk(
        LEGACY, question[:40], question[40:], b'{"id":100,"result":{"text":"3 of"}}\n'
    )

    assert call["params"] == PARAMS
    assert answer == {
        "jsonrpc": "2.0",
        "id": "q-1",
        "result": {"action": "accept", "content": {"count": 3}},
    }


def test_a_result_that_asks_is_retried(talk, asking):
    """On 2026-07-28 the call is sent again with unchanged key and state, under a new id."""
    question = (
        b'{"id":100,"result":{"resultType":"input_required","inputRequests":'
        b'{"a:b":{"method":"elicitation/create"}},"requestState":"x_Y-1="}}\n'
    )
    again = asking.RETRY + 100
    call, retry = talk(MODERN, question, b'{"id":%d,"result":{"text":"3 of"}}\n' % again)

    assert retry["id"] == again
    assert retry["params"] == {
        **call["params"],
        "inputResponses": {"a:b": asking.ACCEPTED},
        "requestState": "x_Y-1=",
    }
    (declared,) = (v for k, v in retry["params"]["_meta"].items() if k.endswith("Capabilities"))
    assert declared == asking.CAPABILITIES


def test_as_many_calls_are_in_flight_as_asked_for(talk):
    """Two calls are sent at first, and one more for each result."""
    result = b'{"id":%d,"result":{"text":"3 of"}}\n'
    sent = talk(LEGACY, result % 101, result % 100 + result % 102, window=2, count=3)

    assert [each["id"] for each in sent] == [100, 101, 102]


@pytest.mark.parametrize(
    ("era", "line"),
    [
        (LEGACY, b'{"method":"elicitation/create"}\n'),
        (LEGACY, b'{"id":100,"result":{"text":"declined"}}\n'),
        (LEGACY, b'{"id":7,"result":{"text":"3 of"}}\n'),
        (MODERN, b'{"id":100,"result":{"resultType":"input_required"}}\n'),
        (MODERN, b'{"id":100,"result":{"text":"3 of"}}\n'),
    ],
)
def test_what_is_no_conversation_is_an_error(talk, era, line):
    """A question without id or key, a wrong text, and a call without a question are errors."""
    with pytest.raises(RuntimeError):
        talk(era, line)


def test_every_resource_must_be_delivered_of(monkeypatch):
    """A burst counts only if each of 1,000 resources was reported once and the call answered."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    from benchmarks import bench_notify

    notices = [
        json.dumps({"method": bench_notify.UPDATED, "params": {"uri": uri}}).encode()
        for uri in bench_notify.URIS
    ]
    answer = b'{"id":1,"result":{}}'
    bench_notify._check([*notices, answer])
    with pytest.raises(RuntimeError, match="999 of 1000"):
        bench_notify._check([*notices[1:], notices[-1], answer])
    with pytest.raises(RuntimeError, match="not answered"):
        bench_notify._check(notices)
