"""Random calls of several clients on several handles, some cancelled, against a model."""

from collections import Counter

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import Context, Handle, Server, ToolError, Toolkit, connect, mcp
from noizu_mcp.server import HandleBacking
from noizu_mcp.types import Principal

from .handling import READS, Failing

VERSIONS = ("2025-11-25", "2026-07-28")
OWNERS = (None, Principal(subject="ada"), Principal(subject="bob"))


class Account(Handle, ttl=10_000.0):
    """An account with a log of what was done to it."""

    log: list[str] = []


class Bank(Toolkit):
    """Tools that wait in between, so that calls could disturb each other."""

    def __init__(self):
        self.inside = Counter()

    @mcp
    async def open(self) -> Account:
        return Account()

    async def _write(self, account, mark):
        """Append a mark; no other call may be between the read and the write."""
        self.inside[account.id] += 1
        assert self.inside[account.id] == 1
        try:
            log = list(account.log)
            await trio.sleep(0.01)
            account.log = [*log, mark]
        finally:
            self.inside[account.id] -= 1

    @mcp
    async def add(self, account: Account, mark: str) -> Account:
        await self._write(account, mark)
        return account

    @mcp
    async def add_and_fail(self, account: Account, mark: str) -> str:
        await self._write(account, mark)
        raise ToolError("failed")

    @mcp
    async def add_within(self, ctx: Context, account: Account, mark: str) -> Account:
        await ctx.call_tool("add", {"account": account.id, "mark": mark})
        return account

    @mcp(annotations=READS)
    async def read(self, account: Account, mark: str) -> Account:
        log = list(account.log)
        await trio.sleep(0.01)
        assert account.log == log
        account.log.append(mark)
        return account

    @mcp
    async def transfer(self, account: Account, target: Account, mark: str) -> str:
        await self._write(account, mark)
        if target is not account:
            await self._write(target, mark)
        return "done"

    @mcp
    async def close(self, account: Account, mark: str) -> str:
        await trio.sleep(0.01)
        await account.delete()
        return mark


class Node(Server, name="bank", version="1"):
    """A node of the bank."""

    def __init__(self, backend, kit):
        self.tools.add(kit)
        self.backing = HandleBacking(backend, self.options.limits)

    def local_handles(self):
        return self.backing


@st.composite
def calls(draw):
    """Draw calls: the client, the tool, the handles, the start, and when it is cancelled."""
    tools = ["add", "add", "add_and_fail", "add_within", "read", "transfer", "close"]
    return [
        {
            "client": draw(st.integers(0, 3)),
            "tool": draw(st.sampled_from(tools)),
            "handles": (draw(st.integers(0, 2)), draw(st.integers(0, 2))),
            "start": draw(st.integers(0, 8)) / 100,
            "cancelled": draw(st.none() | st.integers(0, 8).map(lambda n: n / 200)),
        }
        for _ in range(draw(st.integers(1, 12)))
    ]


async def play(drawn, owners):
    """Make all calls; check what each says, and what is stored in the end."""
    kit = Bank()
    marks = [f"m{number}" for number in range(len(drawn))]
    outcomes = {}
    async with Failing().open("bank") as backend:
        nodes = [Node(backend, kit), Node(backend, kit)]
        async with trio.open_nursery() as clients:
            opened = [
                await clients.start(keep, nodes[number % 2], OWNERS[owners[number]], number)
                for number in range(4)
            ]
            homes = [number % 4 for number in range(3)]
            ids = [(await opened[home].call_tool("open")).structured["id"] for home in homes]

            async def make(mark, each):
                await trio.sleep(each["start"])
                first, second = each["handles"]
                arguments = {"account": ids[first], "mark": mark}
                if each["tool"] == "transfer":
                    arguments["target"] = ids[second]
                after = each["cancelled"]
                with trio.CancelScope() as scope:
                    if after is not None:
                        scope.deadline = trio.current_time() + after
                    outcomes[mark] = await opened[each["client"]].call_tool(each["tool"], arguments)

            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for mark, each in zip(marks, drawn, strict=True):
                        nursery.start_soon(make, mark, each)
            final = [
                await opened[home].call_tool("read", {"account": id_, "mark": ""})
                for home, id_ in zip(homes, ids, strict=True)
            ]
            clients.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert not [key for key in backend._records if key.startswith("lock:")]
    judge(drawn, owners, marks, outcomes, homes, final)


def judge(drawn, owners, marks, outcomes, homes, final):
    """Compare what the calls have said with what is stored."""
    for number, found in enumerate(final):
        log = None if found.is_error else [each for each in found.structured["log"] if each]
        for mark, each in zip(marks, drawn, strict=True):
            first, second = each["handles"]
            both = each["tool"] == "transfer"
            if number != first and not (both and number == second):
                assert log is None or mark not in log
                continue
            own = owners[each["client"]]
            mine = own == owners[homes[first]] and (not both or own == owners[homes[second]])
            done = outcomes.get(mark)
            writes = each["tool"] in ("add", "add_within", "transfer")
            if done is not None and not mine:
                assert done.is_error
            if not writes or not mine:
                assert log is None or mark not in log
            elif done is not None and not done.is_error and log is not None:
                assert log.count(mark) == 1
            elif log is not None:
                assert log.count(mark) <= 1
            if done is not None and done.is_error and log is not None:
                assert mark not in log
            if each["tool"] == "close" and mine and done is not None:
                assert log is None


async def keep(node, owner, number, task_status=trio.TASK_STATUS_IGNORED):
    """Keep a client connected."""
    async with connect(node, principal=owner, version=VERSIONS[number % 2]) as client:
        task_status.started(client)
        await trio.sleep_forever()


@settings(max_examples=100)
@given(calls(), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_calls_do_not_disturb_each_other(drawn, owners):
    """What a call says has happened once; what failed or was refused has not; nothing is left."""
    trio.run(play, drawn, owners, clock=trio.testing.MockClock(autojump_threshold=0))
