"""The pytest plugin of noizu_mcp: the fixture `mcp_client`, and those around it.

pytest loads it in every session, and with it what `import noizu_mcp` loads. The test kit, the
client and the rest load with the first test that needs them.

Theory of operation. `mcp_client` is a plain fixture that picks, by the kind of the test, one of
three others: that of an async test on the loop of pytest-trio or anyio, that of pytest-asyncio,
which wants its own decorator, or that of a plain test. pytest-trio runs async fixtures later than
pytest sets them up, and hands on a placeholder until then. It hands the same placeholder to every
fixture that depends on one, so that `mcp_client` runs inside of trio where `mcp_server` is async;
then the loop is there already, and the client is opened on it at once.
"""

import inspect
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .check.contract import ListKind
    from .check.lint import LintReport, Severity
    from .client import SyncClient, Target
    from .testing import Network, Transcript
    from .testing.plugin import ConnectArguments, Variant

_MARK = (
    "mcp(versions=…, transports=…): the revisions of the protocol, and the transports (memory,"
    " stdio, http), that a test with the fixture mcp_client runs on; all of them by default"
)
_TRANSCRIPT: "pytest.StashKey[Transcript]" = pytest.StashKey()
_VARIANT: "pytest.StashKey[Variant]" = pytest.StashKey()
#: The file to which the connection of a test is recorded.
_RECORDING: pytest.StashKey[Path] = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the defaults of a project; see the mark `mcp`."""
    for name, what in (("versions", "revisions"), ("transports", "transports")):
        text = f"the {what} that tests with the fixture mcp_client run on; all by default"
        parser.addini(f"mcp_{name}", text, type="args", default=[])
    group = parser.getgroup("noizu_mcp")
    for option, text in (
        ("--mcp-record", "record the connections of tests with the fixture mcp_cassette again"),
        ("--mcp-update", "write the files of the fixture mcp_contract again"),
    ):
        group.addoption(option, action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the fixture for tests of pytest-asyncio, if that is there."""
    config.addinivalue_line("markers", _MARK)
    if config.pluginmanager.hasplugin("asyncio"):
        # It runs only what its own decorator has marked; it has been imported by now.
        decorate = sys.modules["pytest_asyncio"].fixture
        config.pluginmanager.register(_fixtures_on_asyncio(decorate), "noizu_mcp_asyncio")


def _fixtures_on_asyncio(decorate: Any) -> ModuleType:
    """Make a module with the clients of tests of pytest-asyncio: one for each kind of loop.

    Args:
        decorate: `pytest_asyncio.fixture`.
    """
    module = ModuleType("_noizu_mcp_asyncio")
    for scope in ("function", "class", "module", "package", "session"):
        # A function of its own for each: the decorator leaves marks on it.
        async def open_client(_mcp_connection: "ConnectArguments") -> AsyncIterator[object]:
            async for client in _open_client(_mcp_connection):
                yield client

        name = f"_mcp_asyncio_{scope}_client"
        vars(module)[name] = decorate(open_client, loop_scope=scope, name=name)
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `mcp_variant` once for each variant."""
    if "mcp_variant" not in metafunc.fixturenames:
        return
    from .testing.plugin import choose_variants

    marks = [mark.kwargs for mark in metafunc.definition.iter_markers("mcp")]
    configured = {
        name: metafunc.config.getini(f"mcp_{name}") for name in ("versions", "transports")
    }
    try:
        variants = choose_variants(marks, configured, metafunc.fixturenames)
    except ValueError as error:
        problem = str(error)
    else:
        metafunc.parametrize("mcp_variant", variants, ids=str, indirect=True)
        return
    pytest.fail(f"{metafunc.definition.nodeid}: {problem}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Show the messages of the connection where a test fails."""
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_FAILED] = True
    transcript = item.stash.get(_TRANSCRIPT, None)
    if report.failed and transcript is not None and transcript.entries:
        variant = item.stash.get(_VARIANT, None)
        where = "" if variant is None else f" ({variant.version}, {variant.transport})"
        report.sections.append((f"MCP messages{where}", transcript.render()))
    return report


@pytest.fixture
def mcp_variant(request: pytest.FixtureRequest) -> "Variant":
    """The revision and the transport of this run of a test: `version` and `transport`."""
    variant: Variant = request.param
    request.node.stash[_VARIANT] = variant
    return variant


@pytest.fixture
def mcp_server() -> Any:
    """The server under test: override it with a server, its class, or another target."""
    pytest.fail(
        "mcp_client needs a server: define a fixture mcp_server that returns a server, its class,"
        " or another target of noizu_mcp.connect",
        pytrace=False,
    )


@pytest.fixture
def mcp_options() -> Mapping[str, Any]:
    """The options of the connection: override it with a mapping, such as `{"handler": …}`."""
    return {}


@pytest.fixture
def mcp_transcript(request: pytest.FixtureRequest) -> "Transcript":
    """The messages of `mcp_client`, a `Transcript`; shown where the test fails."""
    from .testing import Transcript

    request.node.stash[_TRANSCRIPT] = transcript = Transcript()
    return transcript


@pytest.fixture
def mcp_network() -> "Network | None":
    """The faults of the network: override it with a `Network`; there are none by default."""
    return None


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Record the server of a test once, and play it back from then on.

    It gives a function for the fixture `mcp_server`: `return mcp_cassette(target)`. The first run
    records the connection to the target, in a file below `cassettes`, beside the file of the test;
    later runs play it back, without the target. A test that fails records nothing.
    """
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    path: Path = request.path.parent / "cassettes" / request.path.stem / f"{name}.jsonl"
    unfinished = path.with_suffix(".part")

    def choose(target: object) -> object:
        if path.exists() and not request.config.getoption("mcp_record"):
            from .testing import replay

            return replay(path)
        request.node.stash[_RECORDING] = unfinished
        return target

    yield choose
    if unfinished.exists():
        if request.node.stash.get(_FAILED, default=False):
            unfinished.unlink()
        else:
            unfinished.replace(path)


@pytest.fixture
def mcp_contract(
    request: pytest.FixtureRequest, mcp_server: "Target", mcp_options: Mapping[str, object]
) -> Callable[..., None]:
    """Check that `mcp_server` lists what its contract has: `mcp_contract("docs.json")`.

    Every change fails the test. The file is beside that of the test, `contract.json` by default,
    and `pytest --mcp-update` writes it; `kinds=["tools"]` keeps only some kinds of components in
    it. It is for plain tests.
    """

    def check(name: str = "contract.json", kinds: "Iterable[ListKind] | None" = None) -> None:
        from ._printable import printable
        from .check import contract

        path = request.path.parent / name
        if request.config.getoption("mcp_update"):
            contract.write(mcp_server, path, kinds or contract.KINDS, **mcp_options)
            return
        try:
            contract.check(mcp_server, path, exact=True, **mcp_options)
        except FileNotFoundError:
            problem = f"there is no {path}; pytest --mcp-update writes it"
        except contract.ContractError as error:
            problem = f"the server differs from {path}; pytest --mcp-update writes it again"
            problem += "".join(f"\n  {printable(str(change))}" for change in error.changes)
        else:
            return
        pytest.fail(problem, pytrace=False)

    return check


@pytest.fixture
def mcp_lint(mcp_server: Any, mcp_options: Mapping[str, Any]) -> "Callable[..., LintReport]":
    """Check the tools of `mcp_server` as models read them: `mcp_lint(fail_on="warning")`.

    It takes the arguments `apis` and `ignore` of `lint`, and returns the report, with the tokens of
    each tool. It is for plain tests.
    """

    def check(*, fail_on: "Severity" = "error", **chosen: Any) -> "LintReport":
        from ._printable import printable
        from .check.lint import lint

        report = lint(mcp_server, **chosen, **mcp_options)
        if found := report.at_least(fail_on):
            pytest.fail("\n".join(printable(str(each)) for each in found), pytrace=False)
        return report

    return check


@pytest.fixture
def _mcp_connection(
    request: pytest.FixtureRequest,
    *,
    mcp_server: "Target",
    mcp_variant: "Variant",
    mcp_options: Mapping[str, object],
    mcp_transcript: "Transcript",
    mcp_network: "Network | None",
) -> "Iterator[ConnectArguments]":
    from .testing.plugin import prepare, reason_to_skip

    reason = reason_to_skip(mcp_server, mcp_variant, has_network=mcp_network is not None)
    if reason is not None:
        pytest.skip(reason)
    cassette = request.node.stash.get(_RECORDING, None)
    with prepare(
        mcp_server,
        mcp_variant,
        mcp_options,
        taps=[mcp_transcript],
        network=mcp_network,
        cassette=cassette,
    ) as connection:
        yield connection


@pytest.fixture
def mcp_client(request: pytest.FixtureRequest, _mcp_connection: "ConnectArguments") -> Any:
    """A client of `mcp_server`, on each revision and transport in turn.

    An async test gets a `Client` for its loop, a plain one a `SyncClient`.
    """
    if "trio" in sys.modules and sys.modules["trio"].lowlevel.in_trio_task():
        return _open_client(_mcp_connection)
    return request.getfixturevalue(_fixture_for(request.node))


def _fixture_for(item: pytest.Function) -> str:
    """Choose the fixture with the client of a test, by the plugin that runs the test."""
    function: object = item.obj
    # Hypothesis wraps the function in a plain one.
    property_test = getattr(function, "hypothesis", None)
    function = getattr(property_test, "inner_test", function)
    from .testing.plugin import VIRTUAL_CLOCKS

    clocks = sorted(VIRTUAL_CLOCKS.intersection(item.fixturenames))
    if clocks and not item.get_closest_marker("trio"):
        pytest.fail(
            f"{item.nodeid}: {clocks[0]} is a clock of pytest-trio, and this test does not run on"
            " pytest-trio: its client waits in real time",
            pytrace=False,
        )
    if not inspect.iscoroutinefunction(function):
        return "_mcp_plain_client"
    runner = _runner_of(item)
    if runner == "trio" and property_test is not None:
        # A loop for each example, but async fixtures for the first one only.
        pytest.fail(
            f"{item.nodeid}: mcp_client does not work with Hypothesis on pytest-trio; write a plain"
            " test, or `async with connect(…)` in the test",
            pytrace=False,
        )
    if runner != "asyncio":
        return "_mcp_async_client"
    # The loop that the test runs on, which may be that of its class or file.
    mark = item.get_closest_marker("asyncio")
    scope = (mark.kwargs if mark else {}).get("loop_scope")
    return f"_mcp_asyncio_{scope or item.config.getini('asyncio_default_test_loop_scope')}_client"


def _runner_of(item: pytest.Function) -> str:
    """Return the plugin that runs an async test: `trio`, `asyncio` or `anyio`."""
    wanted = {
        "trio": item.get_closest_marker("trio") is not None,
        # In its automatic mode pytest-asyncio marks every async test.
        "asyncio": item.get_closest_marker("asyncio") is not None,
        "anyio": "anyio_backend" in item.fixturenames,
    }
    runners = [
        name
        for name, is_wanted in wanted.items()
        if is_wanted and item.config.pluginmanager.hasplugin(name)
    ]
    if len(runners) == 1:
        return runners[0]
    if runners:
        # One would run the test, and another one the fixtures: the client would wait for ever on a
        # loop that stands still.
        problem = (
            f"is taken by {' and '.join(runners)}, and one plugin must run a test with its"
            " fixtures: remove a mark, or asyncio_mode = auto, trio_mode or anyio_mode = auto"
        )
    else:
        problem = (
            "is async, and nothing runs it: mark it with trio, asyncio or anyio, of pytest-trio,"
            " pytest-asyncio or anyio"
        )
    pytest.fail(f"{item.nodeid} {problem}", pytrace=False)


async def _open_client(_mcp_connection: "ConnectArguments") -> AsyncIterator[object]:
    from .testing.plugin import open_client

    async with open_client(_mcp_connection) as client:
        yield client


_mcp_async_client = pytest.fixture(_open_client, name="_mcp_async_client")


@pytest.fixture
def _mcp_plain_client(_mcp_connection: "ConnectArguments") -> "Iterator[SyncClient]":
    from .client import SyncClient

    with SyncClient(_mcp_connection.target, **_mcp_connection.options) as client:
        yield client
