"""A server on stdio that misbehaves as the name of the called tool says.

It parses as little as possible and has few imports, so that hundreds of it can be started. It
supports both eras.
"""

import os
import sys

INITIALIZED = (
    b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"bad","version":"1"}}'
)
DISCOVERED = (
    b'{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},'
    b'"ttlMs":0,"cacheScope":"private"}'
)
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}'
GARBAGE = (
    b"\xff\xfe{",
    b"{",
    b"[]",
    b"5",
    b"Listening on port 80",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"jsonrpc":"2.0","error":{"code":1,"message":"of nothing"}}',
    b'{"jsonrpc":"2.0","id":999999,"result":{}}',
    b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    b'{"jsonrpc":"2.0","id":true,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[],"progress":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999999}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    b'{"id":' + b"[" * 100_000 + b"\n",
)


def write(*lines):
    data = b"\n".join([*lines, b""])
    while data:
        data = data[os.write(1, data) :]


def member(line, name, after=b""):
    """Return the text of a member that is a number or a string without escapes."""
    rest = line.partition(after)[2] if after else line
    rest = rest.partition(b'"' + name + b'":')[2]
    return rest[1:].partition(b'"')[0] if rest[:1] == b'"' else rest.partition(b",")[0].strip(b"}")


def answer(id_, text):
    result = b'{"resultType":"complete","content":[{"type":"text","text":"%b"}]}' % text
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, result)


def lines():
    rest = b""
    while chunk := os.read(0, 65536):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


# What each tool does; each gets the id of the call and the token in its arguments.


def echo(id_, token):
    write(*(answer(held, b"late") for held in waiting), answer(id_, token))
    waiting.clear()


def leave(id_, token):
    os._exit(3)


def die(id_, token):
    os.kill(os.getpid(), 9)


def hang(id_, token):
    pass


def half(id_, token):
    os.write(1, answer(id_, token)[:-9])
    os._exit(0)


def half_and_hang(id_, token):
    os.write(1, answer(id_, token)[:-9])


def close_stdout(id_, token):
    os.close(1)


def close_stdin(id_, token):
    os.close(0)
    write(answer(id_, token))
    os.read(os.pipe()[0], 1)  # for ever


def twice(id_, token):
    write(answer(id_, token), answer(id_, b"the second"))


def out_of_order(id_, token):
    behind.append(answer(id_, token))
    if len(behind) == 3:
        write(*reversed(behind))
        behind.clear()


def garbage(id_, token):
    write(*GARBAGE, answer(id_, token), *GARBAGE)


def wrong_id(id_, token):
    write(answer(b'"%b"' % id_, token), answer(b"%b.5" % id_, token), answer(b"-" + id_, token))


def no_result(id_, token):
    write(b'{"jsonrpc":"2.0","id":%b,"result":5}' % id_)


def no_answer(id_, token):
    write(b'{"jsonrpc":"2.0","id":%b,"result":{},"error":{}}' % id_)


def no_json(id_, token):
    write(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[}}' % id_)


def huge(id_, token):
    write(answer(id_, b"x" * 1_000_000))


def flood(id_, token):
    write(*(NOTICE % number for number in range(20_000)), answer(id_, token))


def ask(id_, token):
    question = b'{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{}}'
    write(*(question % number for number in range(2_000)), answer(id_, token))


def late(id_, token):
    waiting.append(id_)


def cancel(id_, token):
    params = b'{"requestId":%b}' % id_
    write(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}' % params)
    write(answer(id_, token))


#: Calls that are answered with the next one, or all together in the reverse order.
waiting = []
behind = []
TOOLS = {name.encode(): tool for name, tool in globals().items() if callable(tool)}


def main():
    for line in lines():
        method, id_ = member(line, b"method"), member(line, b"id")
        if method == b"initialize":
            write(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, INITIALIZED))
        elif method == b"server/discover":
            write(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, DISCOVERED))
        elif method == b"tools/call":
            token = member(line, b"token")
            TOOLS[member(line, b"name", b'"params":')](id_, token)


if __name__ == "__main__":
    main()
    sys.exit()
