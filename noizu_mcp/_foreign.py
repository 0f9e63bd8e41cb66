"""Names from FastMCP and from the official SDK, each with its counterpart here.

People who come from there try the names that they know. A list of all options does not help them:
the feature often has another name here, or another place.
"""

from collections.abc import Container, Mapping
from typing import Final

# A hint is an option there, and a field of `annotations` here.
_HINTS: Final = "write annotations=Annotations(read_only_hint=True, …)"
# Other frameworks choose a winner among two tools of one name; here that is an error, so no option
# exists.
_CLASHES: Final = "leave it out; two of one name are always refused"
#: The option that distinguishes each of these from the others.
_SERVER: Final = "tool_timeout"
_TOOL: Final = "max_concurrency"
#: The advice on each unknown option: an option that the class must have for the advice to count,
#: the unknown options, and the advice, in which `{name}` stands for the option.
_OPTIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("category", "tags", "write category='…', one text"),
    ("meta", "tags", "write meta={'com.example/tags': […]}"),
    (
        "hidden",
        "enabled",
        "leave it out of the list of the server; hidden=True hides it from clients only",
    ),
    # Those frameworks configure the transport in the constructor; here the verb that serves does.
    (_SERVER, "auth", "give it where the server is served: run_http(auth=…) or asgi(auth=…)"),
    (_SERVER, "host port", "give it where the server is served: run_http({name}=…)"),
    (_SERVER, "transport", "call run() to serve stdio, run_http() to serve HTTP"),
    ("requires", "auth", "write requires=RequireScopes('…')"),
    ("output", "structured_output", "declare a class Output, or a return annotation"),
    ("input", "exclude_args", "declare only what the model sends; __init__ takes the rest"),
    ("inline", "run_in_thread", "a sync method runs in a thread unless inline=True"),
    ("input", "parameters params args_schema arguments", "write input=…, or a class Input"),
    ("arguments", "input input_schema", "write arguments=…, or a class Arguments"),
    (_TOOL, "readOnlyHint destructiveHint idempotentHint openWorldHint", _HINTS),
    (_TOOL, "read_only_hint destructive_hint idempotent_hint open_world_hint", _HINTS),
    (_SERVER, "lifespan", "write a method: @asynccontextmanager async def lifespan(self)"),
    (
        _SERVER,
        "tools resources prompts providers skills telemetry policies",
        "write {name} = […] in the body of the class",
    ),
    (
        _SERVER,
        "middleware",
        "override call_tool, read_resource or get_prompt, and call super()",
    ),
    (_SERVER, "resource_templates", "put templates into resources"),
    (_SERVER, "mask_error_details", "leave it out; clients never see the text of an exception"),
    (
        _SERVER,
        "stateless_http",
        "leave it out; run_http(seal_sessions=True) lets every process serve a session",
    ),
    (_SERVER, "on_duplicate on_duplicate_tools on_duplicate_resources", _CLASHES),
    (_SERVER, "on_duplicate_prompts warn_on_duplicate_tools", _CLASHES),
)

_SERVE_HTTP: Final = "call run_http() to serve HTTP, or asgi() for an ASGI application"
_MAKE_TOOL: Final = "write a function, with @mcp(…) above it for options"
_MAKE_PROMPT: Final = "write a function, or prompt(f, …) of it for options"
_MAKE_RESOURCE: Final = "write a function f, and list resource(f, uri='…')"

#: Methods of a server of another framework, each with its advice.
METHODS: Final[Mapping[str, str]] = {
    "tool": f"{_MAKE_TOOL}, and list it in tools = […] of the server",
    "prompt": f"{_MAKE_PROMPT}, and list it in prompts = […] of the server",
    **dict.fromkeys(
        ("resource", "resource_template"),
        f"{_MAKE_RESOURCE} in resources = […] of the server",
    ),
    "add_tool": f"{_MAKE_TOOL}, and call server.tools.add(…)",
    "add_prompt": f"{_MAKE_PROMPT}, and call server.prompts.add(…)",
    **dict.fromkeys(
        ("add_resource", "add_template"),
        "write a function f, and call server.resources.add(resource(f, uri='…'))",
    ),
    "remove_tool": "call server.tools.remove(…)",
    "add_middleware": "override call_tool, read_resource or get_prompt, and call super()",
    "completion": "write a method complete in the Prompt or the ResourceTemplate",
    "custom_route": "mount server.asgi() in an application that has the route",
    "mount": "list the tools of both in one class …(Server)",
    "import_server": "list the tools of both in one class …(Server)",
    "get_context": "take the context as a parameter: ctx: Context",
    "run_async": "await serve_stdio(server) or serve_http(server)",
    "run_stdio_async": "await serve_stdio(server)",
    "run_http_async": "await serve_http(server)",
    **dict.fromkeys(("http_app", "streamable_http_app", "sse_app"), _SERVE_HTTP),
}


def advice(option: str, options: Container[str]) -> str | None:
    """Return the advice on an option of other frameworks.

    Args:
        option: The unknown option.
        options: The names of the options that exist in this place.

    Returns:
        The advice; None for an unknown name.
    """
    # The first row whose option exists in this place counts: one name may mean two things.
    for needed, names, text in _OPTIONS:
        if needed in options and option in names.split():
            return text.replace("{name}", option)
    return None
