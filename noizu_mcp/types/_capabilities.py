"""Capabilities of clients and servers, declared by the presence of keys (basic/lifecycle)."""

from collections.abc import Mapping

import attrs

from .._util import final
from .._value import JSONObject
from ._wire import Wire


class _Paths(Wire):
    __slots__ = ()

    def has(self, path: str) -> bool:
        """Tell whether a capability is declared.

        Args:
            path: Wire keys joined by dots: `sampling.tools`, `resources.subscribe`,
                `extensions.io.modelcontextprotocol/tasks`.

        Returns:
            True if every key of the path is present and neither null nor false.
        """
        return _has(self.to_wire(), path)


def _has(value: object, path: str) -> bool:
    if not isinstance(value, Mapping):
        return False
    # The whole rest first: ids of extensions have dots.
    if path in value:
        return value[path] is not None and value[path] is not False
    first, _, rest = path.partition(".")
    return bool(rest) and _has(value.get(first), rest)


@final
@attrs.frozen(eq=False, repr=False, kw_only=True)
class ClientCapabilities(_Paths):
    """Capabilities of a client.

    Attributes:
        experimental: Capabilities outside the specification.
        extensions: Extensions by id, with their settings (2026-07-28).
        roots: It can list its roots; `{"listChanged": true}` if it notifies about changes.
        sampling: It can sample from a model; `tools` and `context` inside are optional parts.
        elicitation: It can ask its user; `form` and `url` inside are the modes, `{}` means form.
        tasks: It can run requests as tasks (2025-11-25).
    """

    # Objects and not flags: `{}` declares a capability without options (basic/lifecycle).
    experimental: JSONObject | None = None
    extensions: JSONObject | None = None
    roots: JSONObject | None = None
    sampling: JSONObject | None = None
    elicitation: JSONObject | None = None
    tasks: JSONObject | None = None


@final
@attrs.frozen(eq=False, repr=False, kw_only=True)
class ServerCapabilities(_Paths):
    """Capabilities of a server.

    Attributes:
        experimental: Capabilities outside the specification.
        extensions: Extensions by id, with their settings (2026-07-28).
        logging: It sends log messages.
        completions: It completes arguments.
        prompts: It has prompts; `{"listChanged": true}` if it notifies about changes.
        resources: It has resources; `subscribe` and `listChanged` inside.
        tools: It has tools; `listChanged` inside.
        tasks: It runs requests as tasks (2025-11-25).
    """

    experimental: JSONObject | None = None
    extensions: JSONObject | None = None
    logging: JSONObject | None = None
    completions: JSONObject | None = None
    prompts: JSONObject | None = None
    resources: JSONObject | None = None
    tools: JSONObject | None = None
    tasks: JSONObject | None = None
