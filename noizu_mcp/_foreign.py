"""Names from FastMCP and from the official SDK, each with its counterpart here.

People who come from there try the names that they know. A list of all options does not help them:
the feature often has another name here, or another place.
"""

from collections.abc import Container, Mapping
from typing import Final

# A hint is an option there, and a field of `annotations` here.
_HINT: Final = (("max_concurrency", "write annotations=Annotations(read_only_hint=True, …)"),)
_INPUT: Final = (("input", "write input=…, or a class Input"),)
# Those frameworks configure the transport in the constructor; here the verb that serves does.
_WHERE_SERVED: Final = "give it where the server is served: run_http({0}=…) or asgi({0}=…)"
_LISTED: Final = "write {0} = […] in the body of the class"
# Other frameworks choose a winner among two tools of one name; here that is an error, so no option
# exists.
_CLASHES: Final = (("tool_timeout", "leave it out; two of one name are always refused"),)

#: The advice on each unknown option. A row counts for a place that has the option that the row
#: begins with: a server has `tool_timeout`, a tool `max_concurrency`.
_OPTIONS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "tags": (
        ("category", "write category='…', one text"),
        ("meta", "write meta={'com.example/tags': […]}"),
    ),
    "enabled": (
        (
            "hidden",
            "leave it out of the list of the server; hidden=True hides it from clients only",
        ),
    ),
    "auth": (
        ("tool_timeout", _WHERE_SERVED.format("auth")),
        ("requires", "write requires=RequireScopes('…')"),
    ),
    "structured_output": (("output", "declare a class Output, or a return annotation"),),
    "exclude_args": (("input", "declare only what the model sends; __init__ takes the rest"),),
    "run_in_thread": (("inline", "a sync method runs in a thread unless inline=True"),),
    **dict.fromkeys(("parameters", "params", "args_schema", "arguments"), _INPUT),
    **dict.fromkeys(
        ("input", "input_schema"), (("arguments", "write arguments=…, or a class Arguments"),)
    ),
    **dict.fromkeys(("readOnlyHint", "read_only_hint", "destructiveHint"), _HINT),
    **dict.fromkeys(("destructive_hint", "idempotentHint", "idempotent_hint"), _HINT),
    **dict.fromkeys(("openWorldHint", "open_world_hint"), _HINT),
    "lifespan": (
        ("tool_timeout", "write a method: @asynccontextmanager async def lifespan(self)"),
    ),
    **{
        name: (("tool_timeout", _LISTED.format(name)),)
        for name in ("tools", "resources", "prompts", "skills", "telemetry")
    },
    **{
        name: (("tool_timeout", f"give it where the server is served: run_http({name}=…)"),)
        for name in ("host", "port")
    },
    "middleware": (
        ("tool_timeout", "override call_tool, read_resource or get_prompt, and call super()"),
    ),
    "policies": (("tool_timeout", "override call_tool to decide who may call what"),),
    "providers": (
        (
            "tool_timeout",
            "override list_tools and call_tool to compute tools, or use server.tools.add",
        ),
    ),
    "resource_templates": (("tool_timeout", "put templates into resources"),),
    "transport": (("tool_timeout", "call run() to serve stdio, run_http() to serve HTTP"),),
    "mask_error_details": (
        ("tool_timeout", "leave it out; clients never see the text of an exception"),
    ),
    "stateless_http": (
        (
            "tool_timeout",
            "leave it out; run_http(seal_sessions=True) lets every process serve a session",
        ),
    ),
    **dict.fromkeys(("on_duplicate", "on_duplicate_tools", "on_duplicate_resources"), _CLASHES),
    **dict.fromkeys(("on_duplicate_prompts", "warn_on_duplicate_tools"), _CLASHES),
}

_SERVE_HTTP: Final = "call run_http() to serve HTTP, or asgi() for an ASGI application"
_MAKE_TOOL: Final = "write a class with a method call, or put @mcp above a method of a Toolkit"
_MAKE_PROMPT: Final = "write class …(Prompt) with a method get"
_MAKE_RESOURCE: Final = (
    "write class …(Resource, uri='…') or class …(ResourceTemplate, uri_template='…') with a method"
    " read"
)

#: Methods of a server of another framework, each with its advice.
METHODS: Final[Mapping[str, str]] = {
    "tool": f"{_MAKE_TOOL}, and list it in tools = […] of the server",
    "prompt": f"{_MAKE_PROMPT}, and list it in prompts = […] of the server",
    **dict.fromkeys(
        ("resource", "resource_template"),
        f"{_MAKE_RESOURCE}, and list it in resources = […] of the server",
    ),
    "add_tool": f"{_MAKE_TOOL}, and call server.tools.add(…)",
    "add_prompt": f"{_MAKE_PROMPT}, and call server.prompts.add(…)",
    "add_resource": f"{_MAKE_RESOURCE}, and call server.resources.add(…)",
    "add_template": f"{_MAKE_RESOURCE}, and call server.resources.add(…)",
    "remove_tool": "call server.tools.remove(…)",
    "add_middleware": "override call_tool, read_resource or get_prompt, and call super()",
    "completion": "write a method complete in the Prompt or the ResourceTemplate",
    "custom_route": "mount server.asgi() in an application that has the route",
    "mount": "list the tools of both in one class …(Server)",
    "import_server": "list the tools of both in one class …(Server)",
    "get_context": "take the context as a parameter: async def call(self, args, ctx)",
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
    rows = _OPTIONS.get(option, ())
    return next((text for needed, text in rows if needed in options), None)
