"""The keywords of `run_http` and `asgi`."""

import re
from typing import get_args

import attrs
import pytest

from noizu_mcp import DefinitionError, Server
from noizu_mcp.transports.http import HostOptions, HttpOptions

from ...kit.servers import Small


def test_keywords_are_the_attributes_of_the_options():
    """Each attribute of both classes is a keyword with its type, in the same order."""

    def plain(kind):
        # Some are classes, some strings, which `TypedDict` wraps; with or without a module.
        text = getattr(kind, "__forward_arg__", getattr(kind, "__name__", str(kind)))
        return re.sub(r"\b\w+\.", "", text)

    def typed(options):
        return [(each.name, plain(each.type)) for each in attrs.fields(options)]

    def annotated(method):
        (keywords,) = get_args(method.__annotations__["options"])
        return [(name, plain(kind)) for name, kind in keywords.__annotations__.items()]

    assert typed(HttpOptions) == annotated(Server.asgi)
    assert [*typed(HttpOptions), *typed(HostOptions)] == annotated(Server.run_http)


@pytest.mark.parametrize(
    ("method", "option", "text"),
    [
        ("asgi", "alowed_hosts", "has no option 'alowed_hosts'; did you mean 'allowed_hosts'?"),
        ("asgi", "certfile", "has no option 'certfile'"),
        ("run_http", "prot", "has no option 'prot'; did you mean 'port'?"),
        ("run_http", "handle_signals", "has no option 'handle_signals'"),
        ("run", "port", "has no option 'port'"),
    ],
)
def test_unknown_options(method, option, text):
    """An option that a method does not have is refused, and the nearest one suggested."""
    with pytest.raises(DefinitionError) as caught:
        getattr(Small(), method)(**{option: 1})

    assert f"{method}(…): {text}" in str(caught.value)
