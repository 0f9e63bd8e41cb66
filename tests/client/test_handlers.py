"""The check of a `ClientHandler` when its class is made, and what its methods may be."""

import abc
import threading
from functools import partialmethod, wraps
from inspect import currentframe
from unittest.mock import AsyncMock

import attrs
import pytest
import trio

from noizu_mcp import (
    Accept,
    ClientHandler,
    Decline,
    DefinitionError,
    Root,
    SamplingResult,
    connect,
)

from .test_answers import ANSWERS, FORM, SAMPLE, ask_live, asking

VERSIONS = ["2025-11-25", "2026-07-28"]
METHODS = {
    "handle_elicitation": "self, params",
    "handle_sampling": "self, params",
    "list_roots": "self",
    "handle_notification": "self, method, params",
}


def problems_of(**body):
    """Make a handler with this body; return its problems."""
    with pytest.raises(DefinitionError) as caught:
        type("Handler", (ClientHandler,), body)
    return [f"{problem.where}: {problem.text}" for problem in caught.value.problems]


async def two(self, params):
    return Decline()


async def one(self):
    return []


async def three(self, method, params):
    return None


# Names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("handle_elicit", "handle_elicitation"),
        ("handle_elicitations", "handle_elicitation"),
        ("handle_elicitaton", "handle_elicitation"),
        ("handel_elicitation", "handle_elicitation"),
        ("handleElicitation", "handle_elicitation"),
        ("on_elicitation", "handle_elicitation"),
        ("elicitation_callback", "handle_elicitation"),
        ("elicitation_handler", "handle_elicitation"),
        ("handle_elicitation_request", "handle_elicitation"),
        ("elicit", "handle_elicitation"),
        ("handle_sample", "handle_sampling"),
        ("handle_samplng", "handle_sampling"),
        ("handle_create_message", "handle_sampling"),
        ("sampling_callback", "handle_sampling"),
        ("sampling", "handle_sampling"),
        ("handle_notifications", "handle_notification"),
        ("on_notification", "handle_notification"),
        ("list_root", "list_roots"),
        ("lists_roots", "list_roots"),
        ("get_roots", "list_roots"),
        ("handle_roots", "list_roots"),
        ("handle_list_roots", "list_roots"),
        ("list_roots_callback", "list_roots"),
        ("listRoots", "list_roots"),
    ],
)
def test_misspelt_names(name, meant):
    """A method name close to one of the base is refused, since it would not be called."""
    text = f"is never called; did you mean {meant!r}? (begin a name of your own with _)"
    assert problems_of(**{name: two}) == [f"Handler.{name}: {text}"]


@pytest.mark.parametrize(
    "name",
    [
        *("handle_window", "handle_message", "on_close", "ask", "list_tools", "list_files"),
        *("get_sample", "_handle_elicit", "handle_selection", "close_handler", "handle"),
        *("handle_navigation", "hand_elicitation_over"),
    ],
)
def test_methods_of_its_own(name):
    """Other names, and names with an underscore, belong to the author."""
    handler = type("Handler", (ClientHandler,), {name: two})
    assert getattr(handler, name) is two


def test_helpers_of_a_correct_method():
    """If the right method exists, similar names are not misspellings."""

    class Helped(ClientHandler):
        async def handle_elicitation(self, params):
            return await self.handle_elicitation_request(params)

        async def handle_elicitation_request(self, params):
            return Decline()

    class Sampler(ClientHandler):
        def sample(self, prompt, model, temperature):
            """Take more than a question."""

        sampling = AsyncMock()

    assert Helped.handle_elicitation_request
    assert Sampler.sample


def test_options_are_checked():
    """Names and values of options are checked, as keywords and as attributes."""
    (problem,) = problems_of(sampling_tool=True)
    assert problem.startswith("Handler.sampling_tool: is not an option; did you mean 'sampling_to")
    assert problems_of(sampling_tools="yes") == [
        "Handler.sampling_tools: must be True or False, got 'yes'"
    ]
    for modes in ("url", (), ("form", "dance"), [5], [[]], None):
        assert problems_of(elicitation_modes=modes) == [
            f"Handler.elicitation_modes: must be a list of 'form', 'url' or both, got {modes!r}"
        ]

    class Keywords(ClientHandler, sampling_tools=True, elicitation_modes=["url"]):
        pass

    assert Keywords.sampling_tools is True
    assert Keywords.elicitation_modes == ["url"]
    with pytest.raises(DefinitionError, match=r"Handler.modes: unknown option"):

        class Handler(ClientHandler, modes=["url"]):
            pass


# Methods


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("handle_elicitation", one),
        ("handle_elicitation", three),
        ("handle_elicitation", lambda self, *, params: None),
        ("handle_elicitation", staticmethod(lambda self, params: None)),
        ("handle_sampling", lambda: None),
        ("list_roots", two),
        ("handle_notification", two),
        ("handle_notification", lambda self, method, params, more: None),
    ],
)
def test_wrong_parameters(name, wrong):
    """They are found when the class is made; the error has the line to write."""
    text = f"must be `async def {name}({METHODS[name]})`, or `def` for a thread"
    assert problems_of(**{name: wrong}) == [f"Handler.{name}: {text}"]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("value", [5, "x", Decline, Decline(), property(one)])
def test_what_is_no_method(name, value):
    """Only methods and None are accepted."""
    text = f"must be `async def {name}({METHODS[name]})`, or `def` for a thread"
    assert problems_of(**{name: value}) == [f"Handler.{name}: {text}, or None to offer nothing"]


def test_generators_are_no_methods():
    """A method must not be a generator, since its answer would not be read."""

    async def asynchronous(self, params):
        yield

    def plain(self, params):
        yield

    for method in (asynchronous, plain):
        (text,) = problems_of(handle_sampling=method)
        assert text.endswith("and must not yield")


def test_parameters_that_fit():
    """Other names, defaults and `*args` are accepted, in functions of any origin."""

    class Mixin:
        async def list_roots(self, more=None):
            """List more."""

    class Handler(Mixin, ClientHandler):
        handle_elicitation = staticmethod(lambda question: Decline())
        handle_sampling = partialmethod(lambda self, model, params: None, "m")

        async def handle_notification(self, *args):
            """Take all."""

    assert Handler()


def test_all_problems_at_once_with_their_lines():
    """One error lists all problems of the class, in the order of the source."""
    first = currentframe().f_lineno + 4
    with pytest.raises(DefinitionError) as caught:

        class Broken(ClientHandler):
            sampling_tools = 1

            async def handle_elicit(self, params):
                """Never run."""

            def list_roots(self, more):
                """Take too much."""

            handle_sampling = "model"

    problems = caught.value.problems
    assert [problem.where.removeprefix("Broken.") for problem in problems] == [
        "sampling_tools",
        "handle_elicit",
        "list_roots",
        "handle_sampling",
    ]
    assert [problem.line - first for problem in problems] == [0, 2, 5, 8]
    assert {problem.file.rpartition("/")[2] for problem in problems} == {"test_handlers.py"}
    assert all(line.split(":")[0].endswith(".py") for line in str(caught.value).splitlines())


def test_a_mixin_is_checked_with_the_class():
    """A base that is not a handler is checked, too; its line is reported."""

    class Mixin:
        def handle_sampling(self):
            """Take nothing."""

    with pytest.raises(DefinitionError, match=r"test_handlers.py:\d+: Mixed.handle_sampling: must"):

        class Mixed(Mixin, ClientHandler):
            pass


def test_other_metaclasses_and_decorators():
    """A handler may be abstract, made by attrs, or both."""

    class Base(ClientHandler, abc.ABC):
        @abc.abstractmethod
        def handle_elicitation(self, params):
            """Ask."""

    @attrs.define
    class Handler(Base, sampling_tools=True):
        name: str = "x"

        def handle_elicitation(self, params):
            return Decline()

    assert Handler().sampling_tools
    with pytest.raises(DefinitionError, match=r"test_handlers.py:\d+: Bad.handle_elicit: is never"):

        @attrs.define
        class Bad(ClientHandler):
            def handle_elicit(self, params):
                """Never run."""


# What is offered


def capabilities_of(script):
    params = script.received[0]["params"]
    meta = params.get("_meta", {})
    return params.get("capabilities", meta.get("io.modelcontextprotocol/clientCapabilities"))


class All(ClientHandler):
    async def handle_elicitation(self, params):
        return Decline()

    async def handle_sampling(self, params):
        return SamplingResult(role="assistant", content="x", model="m")

    async def list_roots(self):
        return ["file:///a"]

    async def handle_notification(self, method, params):
        raise AssertionError


class Nothing(All):
    handle_elicitation = handle_sampling = list_roots = handle_notification = None


class NothingNow(All):
    def __init__(self):
        self.handle_elicitation = self.handle_sampling = self.list_roots = None
        self.handle_notification = None


class Inherited(ClientHandler):
    handle_elicitation = ClientHandler.handle_elicitation
    handle_sampling = ClientHandler.handle_sampling
    list_roots = ClientHandler.list_roots


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cls", [Nothing, NothingNow, Inherited])
async def test_none_offers_nothing(scripted, cls, version, caplog):
    """None in the class or in an instance offers nothing; a question is then refused."""
    rounds = asking({"inputRequests": {"k": {"method": "roots/list"}}})
    async with scripted(rounds, handler=cls(), version=version) as (client, script):
        assert capabilities_of(script) == {}
        await script.say(method="notifications/message", params={})
        if version == "2025-11-25":
            for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
                answer = await ask_live(script, method, FORM)
                assert answer["error"]["code"] == -32601
                script.received.remove(answer)
        else:
            with pytest.raises(Exception, match="Method not found: roots/list"):
                await client.call_tool("t")
    assert caplog.text == ""


@pytest.mark.parametrize("version", VERSIONS)
async def test_methods_of_an_instance_are_offered(scripted, version):
    """A method that is set on an instance counts as an override."""
    handler = ClientHandler()
    handler.handle_elicitation = AsyncMock(return_value=Decline())
    async with scripted(handler=handler, version=version) as (_, script):
        assert capabilities_of(script) == {"elicitation": {"form": {}, "url": {}}}


# Threads


class Plain(ClientHandler):
    """Answers from threads."""

    def __init__(self, answer):
        self.answer = answer
        self.threads = set()
        self.heard = []
        self.told = threading.Event()

    def _say(self):
        self.threads.add(threading.current_thread())
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def handle_elicitation(self, params):
        return self._say()

    def handle_sampling(self, params):
        return self._say()

    def list_roots(self):
        return self._say()

    def handle_notification(self, method, params):
        self.heard.append((method, params, threading.current_thread()))
        self.told.set()


@pytest.mark.parametrize(("method", "params", "answer", "expected"), ANSWERS)
async def test_sync_methods_run_in_threads(scripted, method, params, answer, expected):
    """They answer like async ones, in both eras."""
    handler = Plain(answer)
    async with scripted(handler=handler, version="2025-11-25") as (_, script):
        assert (await ask_live(script, method, params))["result"] == expected
    rounds = asking({"inputRequests": {"k": {"method": method, "params": params}}})
    async with scripted(rounds, handler=handler, version="2026-07-28") as (client, script):
        await client.call_tool("t")
        assert script.received[-1]["params"]["inputResponses"] == {"k": expected}
    assert threading.current_thread() not in handler.threads


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), SystemExit(1)])
async def test_a_thread_that_fails_ends_its_question_only(scripted, error, caplog):
    """An exception in a thread is logged, and answered with -32603."""
    async with scripted(handler=Plain(error), version="2025-11-25") as (client, script):
        answer = await ask_live(script, "roots/list", {})
        assert answer["error"] == {"code": -32603, "message": "Handler failed"}
        script.answers["ping"] = {}
        await client.ping()
    assert "the handler of roots/list failed" in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
async def test_sync_notifications_come_in_order(scripted, version):
    """They run one at a time, in threads."""
    handler = Plain(None)
    async with scripted(handler=handler, version=version) as (_, script):
        for number in range(20):
            await script.say(method="notifications/message", params={"data": number})
        with trio.fail_after(60):
            while len(handler.heard) < 20:
                await trio.to_thread.run_sync(handler.told.wait, 1)
                handler.told.clear()
    assert [params["data"] for _, params, _ in handler.heard] == list(range(20))
    assert threading.current_thread() not in {thread for _, _, thread in handler.heard}


async def test_a_slow_thread_delays_nothing_else(scripted):
    """Pings, other answers and notifications go on, and the end does not wait for it."""
    go_on, begun = threading.Event(), threading.Event()

    class Slow(Plain):
        def handle_sampling(self, params):
            begun.set()
            go_on.wait(10)

    handler = Slow(["file:///a"])
    try:
        with trio.fail_after(60):
            async with scripted(handler=handler, version="2025-11-25") as (_, script):
                await script.say(id="slow", method="sampling/createMessage", params=SAMPLE)
                await trio.to_thread.run_sync(begun.wait, 5)
                assert (await ask_live(script, "roots/list", {}))["result"]["roots"]
                await script.say(method="notifications/message", params={})
                await trio.to_thread.run_sync(handler.told.wait, 5)
    finally:
        go_on.set()


async def test_a_decorator_that_hides_an_async_method(scripted):
    """The result of a plain function is awaited if it is awaitable."""

    def noted(method):
        @wraps(method)
        def wrapper(*args):
            return method(*args)

        return wrapper

    class Wrapped(ClientHandler):
        @noted
        async def handle_elicitation(self, params):
            await trio.lowlevel.checkpoint()
            return Accept({"a": 1})

    async with scripted(handler=Wrapped(), version="2025-11-25") as (_, script):
        answer = await ask_live(script, "elicitation/create", FORM)
        assert answer["result"] == {"action": "accept", "content": {"a": 1}}


@pytest.mark.parametrize("is_async", [True, False])
async def test_overrides_may_call_the_method_of_the_base(scripted, is_async):
    """`super()` works for notifications, awaited or not."""
    heard = trio.Event()

    class Async(ClientHandler):
        async def handle_notification(self, method, params):
            await super().handle_notification(method, params)
            heard.set()

    class Sync(ClientHandler):
        def handle_notification(self, method, params):
            super().handle_notification(method, params)
            trio.from_thread.run_sync(heard.set)

    handler = Async() if is_async else Sync()
    async with scripted(handler=handler) as (_, script):
        await script.say(method="notifications/message", params={})
        with trio.fail_after(60):
            await heard.wait()


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("handle_elicitation", "elicitation/create"),
        ("handle_sampling", "sampling/createMessage"),
        ("list_roots", "roots/list"),
    ],
)
async def test_the_methods_of_the_base_refuse(scripted, name, method, is_async):
    """A question that is passed to `super()` is answered with "method not found"."""

    async def asynchronous(self, *params):
        return await getattr(super(cls, self), name)(*params)

    def plain(self, *params):
        return getattr(super(cls, self), name)(*params)

    cls = type("Handler", (ClientHandler,), {name: asynchronous if is_async else plain})
    async with scripted(handler=cls(), version="2025-11-25") as (_, script):
        error = (await ask_live(script, method, {}))["error"]
        assert error == {"code": -32601, "message": f"Method not found: {method}"}


# Roots

MIXED = [{"uri": "file:///a", "name": "A"}, Root("file:///b"), "file:///c"]
WRITTEN = [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}, {"uri": "file:///c"}]
NO_ROOTS = [
    ("file:///a", TypeError, "roots must be a list of roots, got 'file:///a'"),
    ({"uri": "file:///a"}, TypeError, "roots must be a list of roots, got"),
    (5, TypeError, "roots must be a list of roots, got 5"),
    ([5], TypeError, r"roots\[0\] must be a Root, a file:// URI or a mapping with a uri: 5"),
    (["file:///a", {"name": "x"}], TypeError, r"roots\[1\]"),
    ([{"uri": 5}], TypeError, r"roots\[0\].uri"),
    (["/work"], ValueError, r"roots\[0\] must have a file:// URI.*'/work'"),
    ([{"uri": "https://example.com"}], ValueError, "must have a file:// URI"),
    ([Root("s3://bucket")], ValueError, "must have a file:// URI"),
]


async def roots_of(client, script):
    """Return the roots that the server of a script gets."""
    if client.protocol_version == "2025-11-25":
        script.received.clear()
        return (await ask_live(script, "roots/list", {}))["result"]["roots"]
    script.answers |= asking({"inputRequests": {"k": {"method": "roots/list"}}})
    await client.call_tool("t")
    return script.received[-1]["params"]["inputResponses"]["k"]["roots"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_roots_in_every_form(scripted, version):
    """Roots, URIs and mappings are accepted, initially and later."""
    async with scripted(roots=MIXED[:1], version=version) as (client, script):
        assert await roots_of(client, script) == WRITTEN[:1]
        await client.set_roots(MIXED)
        assert await roots_of(client, script) == WRITTEN


@pytest.mark.parametrize(("roots", "error", "text"), NO_ROOTS)
async def test_malformed_roots(scripted, roots, error, text):
    """Invalid roots are refused at once, not when a tool asks."""
    with pytest.raises(error, match=text):
        async with connect("http://127.0.0.1:9/mcp", roots=roots):
            raise AssertionError
    async with scripted(roots=["file:///a"], version="2025-11-25") as (client, script):
        with pytest.raises(error, match=text):
            await client.set_roots(roots)
        assert await roots_of(client, script) == [{"uri": "file:///a"}]


async def test_roots_have_one_place(scripted):
    """A handler that lists roots excludes `roots=` and `set_roots`."""
    with pytest.raises(TypeError, match="give roots= or a handler that overrides list_roots"):
        async with connect("http://127.0.0.1:9/mcp", roots=[], handler=All()):
            raise AssertionError
    for handler in (All(), None):
        async with scripted(handler=handler, version="2025-11-25") as (client, script):
            with pytest.raises(RuntimeError, match="roots/list_changed"):
                await client.set_roots(["file:///a"])
            await client.notify("notifications/roots/list_changed")
            await script.until("notifications/roots/list_changed")
    async with scripted(handler=Nothing(), roots=["file:///a"], version="2025-11-25") as both:
        assert await roots_of(*both) == [{"uri": "file:///a"}]
