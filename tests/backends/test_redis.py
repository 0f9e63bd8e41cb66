"""The backend in Redis: the contract, its keys, its bounds, and what it says of a bad start."""

import re
import ssl
import sys
from contextlib import suppress
from functools import partial
from secrets import token_hex

import pytest
import trio
import trio.testing

from noizu_mcp.backends import BackendUnavailable, Conflict, Gap, Redis
from noizu_mcp.testing import check_backend

from ..kit.redis import RedisServer, free_port, needs_redis
from ..transports.http.certificate import make_certificate

PASSWORD = "a-secret-word"


@pytest.fixture
def make(redis):
    """Make backends that share nothing."""
    return lambda: Redis(redis.url, prefix=token_hex(8))


def test_the_contract(make):
    """The engine passes the suite."""
    check_backend(make, examples=8)


@pytest.mark.slow
def test_the_contract_with_many_steps(make):
    """The same with more random steps."""
    check_backend(make, examples=200)


@needs_redis
@pytest.mark.slow
def test_the_contract_over_tcp():
    """The engine passes the suite over TCP, with a password and another database."""
    with RedisServer("--requirepass", PASSWORD, tcp=True) as server:
        url = f"redis://default:{PASSWORD}@{server.place}/3"
        check_backend(lambda: Redis(url, prefix=token_hex(8)), examples=4)


@needs_redis
async def test_tls(tmp_path):
    """`rediss://` encrypts, and verifies the certificate."""
    certificate = make_certificate(tmp_path)
    port = free_port()
    options = ["--tls-port", str(port), "--tls-auth-clients", "no"]
    options += ["--tls-cert-file", str(certificate), "--tls-key-file", str(certificate)]
    options += ["--tls-ca-cert-file", str(certificate)]
    try:
        server = RedisServer(*options).__enter__()
    except AssertionError as error:
        pytest.skip(f"this redis-server has no TLS: {error}")
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        backend = Redis(f"rediss://127.0.0.1:{port}", ssl_context=trusted)
        async with backend.open("shop") as shared:
            await shared.put("key", b"x", ttl=60.0)
            assert (await shared.get("key")).value == b"x"
        stranger = Redis(f"rediss://127.0.0.1:{port}", connect_timeout=1.0)
        with pytest.raises(BackendUnavailable, match=rf"127\.0\.0\.1:{port}: .*certificate"):
            async with stranger.open("shop"):
                pass
    finally:
        server.__exit__()


async def test_servers_of_two_names_share_nothing(redis, prefix):
    """The name of the server is in every key."""
    backend = Redis(redis.url, prefix=prefix)
    async with backend.open("shop") as shop, backend.open("bank") as bank:
        await shop.put("key", b"shop", ttl=60.0, groups={"group": 1})
        await bank.put("key", b"bank", ttl=60.0, groups={"group": 1})
        await shop.append("log", b"shop", keep=9, ttl=60.0)

        assert (await shop.get("key")).value == b"shop"
        assert await bank.read({"log": await bank.end_of("log")}, wait=0.0) == []


async def fill(backend):
    """Have every operation make its keys."""
    start = await backend.end_of("log")
    await backend.put("key", b"value", ttl=60.0, groups={"group": 5})
    await backend.append("log", b"entry", keep=9, ttl=60.0)
    await backend.append("other", b"entry", keep=9, ttl=60.0)
    await backend.take("limit", limit=5, period=60.0)
    return start


def keys(server, prefix):
    """List the keys of a prefix."""
    return re.findall(rf"{prefix}:[^\r]*".encode(), server.ask("KEYS", f"{prefix}:*"))


async def test_keys_expire(redis, prefix):
    """All keys begin with the prefix and the name in braces, and all but the epoch expire."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        await fill(backend)
    found = keys(redis, prefix)
    lasting = [key for key in found if redis.ask("PTTL", key) == b":-1\r\n"]

    assert sorted(key.removeprefix(f"{prefix}:{{shop}}:".encode()) for key in found) == [
        *(b"epoch", b"g:group", b"k:key", b"l:log", b"l:other", b"r:limit"),
    ]
    assert [key.rpartition(b":")[2] for key in lasting] == [b"epoch"]


GARBAGE = {
    "text": ("SET", "{key}", "\xff{"),
    "hash": ("HSET", "{key}", "v", "x", "d", "y", "g", "{"),
    "hash with groups": ("HSET", "{key}", "v", "7", "d", "y", "g", '[{"a":1},5,null]'),
    "large hash": ("HSET", "{key}", "v", "7", "d", "x" * (16 * 2**20 + 1)),
    "list": ("LPUSH", "{key}", "x"),
    "set of numbers": ("ZADD", "{key}", "inf", "\xfe", "nan", "x"),
    "sorted set": ("ZADD", "{key}", "inf", "\xfe"),
    "huge number": ("SET", "{key}", "1e308"),
    "no number": ("SET", "{key}", "nan"),
    "stream": ("XADD", "{key}", "*", "x", "y"),
    "end of all streams": ("XADD", "{key}", "18446744073709551615-18446744073709551615", "d", "y"),
    "large entry": ("XADD", "{key}", "1-1", "d", "x" * 70000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_does_not_exist(redis, prefix, garbage):
    """Whatever stands in a key, operations go on, and a write replaces it."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        start = await fill(backend)
        for key in keys(redis, prefix):
            if not key.endswith(b"epoch"):
                redis.ask("DEL", key)
                redis.ask(*(word.replace("{key}", key.decode()) for word in garbage))
        found = await backend.get("key", ttl=60.0)
        assert found is None or len(found.value) == 1
        await backend.members("group")
        assert 0 <= await backend.take("limit", limit=5, period=60.0) <= 60.0
        first = await backend.read({"log": start, "other": start}, wait=0.01)
        await backend.delete("key")
        await backend.put("key", b"value", ttl=60.0, groups={"group": 5})
        await backend.append("log", b"new", keep=9, ttl=60.0)
        place = next((item.position for item in first[::-1] if item.stream == "log"), start)
        # A position past the end is a gap that leads to the end.
        items = await backend.read({"log": place}, wait=0.0)
        await backend.append("log", b"newer", keep=9, ttl=60.0)
        [entry] = await backend.read({"log": items[-1].position}, wait=1.0)

        assert (await backend.get("key")).value == b"value"
        assert "key" in await backend.members("group")
        assert entry.entry == b"newer"
        assert await backend.delete("key")


async def test_waiting_readers_meet_garbage(redis, prefix):
    """An entry that this package has not written is a gap for whoever waits for it."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        start = await backend.end_of("log")
        assert await backend.read({"log": start}, wait=0.01) == []
        redis.ask("XADD", f"{prefix}:{{shop}}:l:log", "*", "x", "y")
        redis.ask("XADD", f"{prefix}:{{shop}}:l:other", "*", "x", "y")
        redis.ask("XADD", f"{prefix}:{{shop}}:l:log", "9999999999999999-5", "d", "y" * 70000)
        items = await backend.read({"log": start}, wait=5.0)

        assert items
        assert {type(item) for item in items} == {Gap}
        assert await backend.read({"log": items[-1].position}, wait=0.0) == []


@needs_redis
async def test_a_reply_has_a_bound(prefix):
    """A reply that no script can bound ends the connection, not the process."""
    with RedisServer() as server:
        async with Redis(server.url, prefix=prefix, timeout=30.0).open("shop") as backend:
            start = await backend.end_of("log")
            failures = []

            async def read():
                try:
                    await backend.read({"log": start}, wait=60.0)
                except BackendUnavailable as error:
                    failures.append(str(error))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                while b"blocked_clients:1" not in server.ask("INFO", "clients"):
                    await trio.lowlevel.checkpoint()
                large = bytes(40 * 2**20)
                place = f"{prefix}:{{shop}}:l:log"
                await trio.to_thread.run_sync(
                    server.ask, "XADD", place, "9999999999999999-1", "d", large
                )

            assert failures == [f"Redis at {server.place} failed: TOOLARGE"]


@needs_redis
async def test_rights_that_suffice(prefix):
    """A user with the documented rights can do everything, with and without `INFO`."""
    with RedisServer() as server:
        for user, more in (("full", ["+info", "+time"]), ("less", ["+time"])):
            rights = "+@read +@write +@stream +@scripting +@connection -@dangerous"
            server.ask(
                *("ACL", "SETUSER", user, "on", f">{PASSWORD}", "~noizu:*", *rights.split(), *more)
            )
            backend = Redis(f"unix://{user}:{PASSWORD}@{server.path}")
            async with backend.open("shop") as shared:
                start = await fill(shared)
                assert len(await shared.read({"log": start}, wait=1.0)) == 1
                assert await shared.delete("key")
                assert shared.epoch


async def test_too_many_operations_are_refused(redis, prefix):
    """Beyond `max_waiting` operations fail at once, and the others are answered."""
    done, refused = [], []
    async with Redis(redis.url, prefix=prefix, max_waiting=10).open("shop") as backend:

        async def ask():
            try:
                done.append(await backend.get("key"))
            except BackendUnavailable as error:
                refused.append(str(error))

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(ask)
        assert len(done) == 10
        assert set(refused) == {f"too many operations wait for Redis at {redis.place}"}
        assert await backend.get("key") is None


async def test_waiting_bytes_have_a_bound(redis, prefix):
    """Operations that wait hold at most 24 MiB of values."""
    stored, refused = [], []
    async with Redis(redis.url, prefix=prefix, timeout=30.0).open("shop") as backend:
        # Redis then has the script, which would be sent again with the value.
        await backend.put("small", b"", ttl=1.0)

        async def put(number):
            try:
                stored.append(await backend.put(f"{number}", bytes(9 * 2**20), ttl=0.1))
            except BackendUnavailable:
                refused.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(put, number)

    assert (len(stored), len(refused)) == (2, 3)


async def test_operations_need_an_open_backend(redis):
    """The object that was configured has no connection."""
    backend = Redis(redis.url)
    with pytest.raises(BackendUnavailable, match="is not open"):
        await backend.get("key")
    assert not backend.is_up


async def test_a_failure_in_the_block_is_one_exception(redis):
    """What the block raises comes out as it is."""
    with pytest.raises(KeyError):
        async with Redis(redis.url).open("shop"):
            raise KeyError


async def test_readers_share_the_waiting_connection(redis, prefix):
    """A second reader waits for the first one, and no longer than its own time."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        start = await backend.end_of("log")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(backend.read, {"log": start}, wait=60.0))
            await trio.testing.wait_all_tasks_blocked()
            assert await backend.read({"log": start}, wait=0.01) == []
            nursery.cancel_scope.cancel()


URLS = {
    "no scheme": "127.0.0.1:6379",
    "a password alone": f"{PASSWORD}@127.0.0.1",
    "another scheme": f"http://:{PASSWORD}@127.0.0.1",
    "another port": f"redis://127.0.0.1:{PASSWORD}",
    "a broken password": f"redis://:{PASSWORD}/1@127.0.0.1",
    "no host": f"redis://:{PASSWORD}@",
    "no path": "unix://",
    "a host with a path": f"unix://:{PASSWORD}@host/path",
    "a name for a database": f"redis://:{PASSWORD}@127.0.0.1/shop",
    "an option": f"redis://127.0.0.1?password={PASSWORD}",
    "a fragment": f"redis://127.0.0.1/0#{PASSWORD}",
    "brackets": f"redis://:{PASSWORD}@[127.0.0.1",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_urls_that_are_refused(url):
    """The reason is one line with the forms, and without the password."""
    with pytest.raises(ValueError, match=r"backend|Unix") as failure:
        Redis(url)

    text = str(failure.value)
    assert "\n" not in text
    assert PASSWORD not in text
    assert failure.value.__cause__ is None


def test_the_schemes_are_listed():
    """Another scheme is named beside the three that there are."""
    with pytest.raises(ValueError, match="or unix://, got http"):
        Redis("http://127.0.0.1")


SHOWN = {
    "redis://127.0.0.1": "redis://127.0.0.1:6379/0",
    f"redis://:{PASSWORD}@[::1]:7000/2": "redis://:***@[::1]:7000/2",
    f"rediss://shop:{PASSWORD}@example.com": "rediss://shop:***@example.com:6379/0",
    "redis://shop@example.com": "redis://shop@example.com:6379/0",
    "unix:///run/redis?db=4": "unix:///run/redis?db=4",
    f"unix://:{PASSWORD}@/run/redis": "unix://:***@/run/redis?db=0",
}


@pytest.mark.parametrize(("url", "shown"), SHOWN.items())
def test_text_form(url, shown):
    """`repr` shows the place, and stars for the password."""
    assert repr(Redis(url)) == f"Redis({shown!r}, prefix='noizu', lease=10.0)"


@pytest.mark.parametrize("name", ["lease", "timeout", "connect_timeout", "max_waiting"])
@pytest.mark.parametrize("number", [0, -1, float("inf"), float("nan")])
def test_numbers_are_checked(name, number):
    """Seconds and counts are above 0, and finite."""
    with pytest.raises(ValueError, match=f"{name} must be a number above 0"):
        Redis("redis://127.0.0.1", **{name: number})


def test_a_context_is_for_tls():
    """A context for a plain connection is refused."""
    with pytest.raises(ValueError, match="ssl_context is for a backend at rediss://"):
        Redis("redis://127.0.0.1", ssl_context=ssl.create_default_context())


async def open_briefly(backend):
    """Open a backend that cannot be opened; return the text of its one line."""
    with pytest.raises(BackendUnavailable) as failure:
        async with backend.open("shop"):
            pass
    assert failure.value.__cause__ is None
    assert "\n" not in str(failure.value)
    return str(failure.value)


async def test_an_empty_port(caplog):
    """Where no server listens, the line has host and port, and nothing is logged."""
    port = free_port()
    text = await open_briefly(Redis(f"redis://127.0.0.1:{port}", connect_timeout=1.0))

    assert text == f"no Redis answers at 127.0.0.1:{port}: Connection refused"
    assert caplog.records == []


async def be_silent(stream):
    await trio.sleep_forever()


async def test_a_server_that_is_silent():
    """A server that accepts and says nothing is no Redis."""
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(partial(trio.serve_listeners, be_silent, [listener]))
        text = await open_briefly(
            Redis(f"redis://127.0.0.1:{port}", timeout=0.1, connect_timeout=0.3)
        )
        nursery.cancel_scope.cancel()

    assert text == f"no Redis answers at 127.0.0.1:{port}: no answer"


ANSWERS = {
    "too old": (b"-ERR unknown command 'HELLO'\r\n", "is older than 6.2"),
    "too old for the protocol": (
        b"%3\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n",
        "is older than 6.2",
    ),
    "no Redis": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "cannot be used: "),
    "closed": (b"", "cannot be used: "),
}


@pytest.mark.parametrize(("answer", "text"), ANSWERS.values(), ids=ANSWERS)
async def test_servers_that_do_not_fit(answer, text, caplog):
    """A server that is too old, or no Redis, is named with its place."""

    async def talk(stream):
        with suppress(trio.BrokenResourceError):
            async with stream:
                await stream.receive_some()
                await stream.send_all(answer)
                if answer:
                    await stream.receive_some()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(partial(trio.serve_listeners, talk, [listener]))
        line = await open_briefly(Redis(f"redis://127.0.0.1:{port}", connect_timeout=1.0))
        nursery.cancel_scope.cancel()

    assert text in line
    assert f"127.0.0.1:{port}" in line
    assert caplog.records == []


@needs_redis
async def test_wrong_passwords(caplog):
    """A wrong or missing password ends the start at once, and is not shown."""
    with RedisServer("--requirepass", "right") as server:
        for login in (f":{PASSWORD}@", f"shop:{PASSWORD}@", ""):
            text = await open_briefly(Redis(f"unix://{login}{server.path}", connect_timeout=60.0))
            assert text == f"Redis at {server.path} refuses the user or the password"
    assert PASSWORD not in caplog.text


async def test_a_database_that_is_not_there(redis):
    """The number of the database is in the line."""
    text = await open_briefly(Redis(f"{redis.url}?db=99", connect_timeout=1.0))

    assert text == f"Redis at {redis.place} cannot be used: DB (database 99)"


async def test_coredis_is_needed(monkeypatch):
    """Where it is missing, one line says what to install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "coredis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "noizu_mcp.backends._link", raising=False)
    monkeypatch.setitem(sys.modules, "coredis", None)
    with pytest.raises(ImportError, match=r"needs coredis: pip install 'noizu-mcp\[redis\]'"):
        async with Redis("redis://127.0.0.1").open("shop"):
            pass


async def test_conflicts_and_versions_are_exact(redis, prefix):
    """Versions are larger than 32 bits, and come back as they are."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        version = await backend.put("key", b"x", ttl=60.0)
        with pytest.raises(Conflict) as failure:
            await backend.put("key", b"x", ttl=60.0, version=version + 1)

    assert failure.value.version == version > 2**32


async def gather(operation, items):
    """Return the results of an operation for all items, which begin at once."""
    results = {}

    async def run(item):
        results[item] = await operation(item)

    async with trio.open_nursery() as nursery:
        for item in items:
            nursery.start_soon(run, item)
    return [results[item] for item in items]


def calls_of_scripts(server):
    return int(re.search(rb"cmdstat_evalsha:calls=([0-9]+)", server.ask("INFO", "commandstats"))[1])


async def test_reads_are_sent_together(redis, prefix):
    """Reads that come at once need few round trips, and each has its own answer."""
    names = [f"{number}" for number in range(60)]
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        versions = await gather(lambda name: backend.put(name, name.encode(), ttl=60.0), names[:50])
        before = calls_of_scripts(redis)
        found = await gather(lambda name: backend.get(name, ttl=60.0), names)
        unchanged = await gather(lambda n: backend.get(names[n], known=versions[n]), range(50))
        assert calls_of_scripts(redis) - before < 20

    assert [record and record.value for record in found] == [
        *(name.encode() for name in names[:50]),
        *[None] * 10,
    ]
    assert [(record.value, record.version) for record in unchanged] == [
        (b"", version) for version in versions
    ]


async def test_reads_see_what_was_written_before(redis, prefix):
    """A read never joins others that were sent before it came."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:

        async def write_and_read(number):
            for _ in range(20):
                version = await backend.put(f"{number}", b"", ttl=60.0)
                assert (await backend.get(f"{number}")).version == version

        await gather(write_and_read, range(10))


async def test_cancelled_reads_leave_the_others(redis, prefix):
    """The others get their own answers, whichever callers were cancelled in between."""
    names = [f"{number}" for number in range(20)]
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        await gather(lambda name: backend.put(name, name.encode(), ttl=60.0), names)

        async def read(name):
            if int(name) % 2:
                return (await backend.get(name)).value
            with trio.move_on_after(int(name) / 20000):
                await backend.get(name)
            return None

        found = await gather(read, names)

    assert found[1::2] == [name.encode() for name in names[1::2]]


async def test_large_records_that_are_read_together(prefix):
    """A reply has no more values than fit, and the rest come with the next one."""
    names = ["a", "b", "c", "d"]
    with RedisServer() as server:
        async with Redis(server.url, prefix=prefix, timeout=30.0).open("shop") as backend:
            for name in names:
                await backend.put(name, name.encode() * 12 * 2**20, ttl=60.0)
            found = await gather(backend.get, names)

    assert [(len(each.value), each.value[:1]) for each in found] == [
        (12 * 2**20, name.encode()) for name in names
    ]


async def test_a_group_that_is_garbage_stops_no_read(redis, prefix):
    """A read that renews its record puts the group in the place of the garbage."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        await backend.put("key", b"value", ttl=60.0, groups={"group": 5})
        [group] = [key for key in keys(redis, prefix) if key.endswith(b"g:group")]
        redis.ask("SET", group.decode(), "garbage")

        assert (await backend.get("key", ttl=60.0)).value == b"value"
        assert await backend.members("group") == ["key"]


async def test_reads_fail_when_the_backend_is_closed(prefix):
    """Those that wait fail, and so does every later one."""
    texts = []

    async def read(backend):
        with pytest.raises(BackendUnavailable) as caught:
            await backend.get("key")
        texts.append(str(caught.value))

    with RedisServer() as server:
        async with (
            trio.open_nursery() as nursery,
            Redis(server.url, prefix=prefix, timeout=30.0).open("shop") as backend,
        ):
            server.pause()
            for _ in range(2):
                nursery.start_soon(read, backend)
                await trio.testing.wait_all_tasks_blocked()
        await read(backend)
        server.resume()

    assert texts == ["the backend was closed"] * 3


async def test_a_read_waits_for_another_one_within_its_time(redis, prefix):
    """One reader waits in Redis; the time of the next one may be over before."""
    async with Redis(redis.url, prefix=prefix).open("shop") as backend:
        start = await backend.end_of("log")
        found = []

        async def read():
            found.extend(await backend.read({"log": start}, wait=30.0))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            assert await backend.read({"log": start}, wait=0.05) == []
            await backend.append("log", b"entry", keep=10, ttl=60.0)

        assert [each.entry for each in found] == [b"entry"]
