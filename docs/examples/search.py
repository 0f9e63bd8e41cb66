"""Fields, an enum, a dependency, an alias and a hidden catalog.

Try it:

    noizu-mcp list docs/examples/search.py
    noizu-mcp call docs/examples/search.py search query=install scope=guides
    noizu-mcp call docs/examples/search.py catalog query=search
"""

import enum

from noizu_mcp import Annotations, Context, Schema, Server, Tool, field, tool
from noizu_mcp.tools import Catalog

PAGES = {
    "guides/install": "How to install the package and its extras.",
    "guides/first-server": "How to install, write and run a first server.",
    "reference/errors": "Every error, its code and when it is raised.",
}


class Index:
    """The pages of one documentation, searched word by word."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages

    def search(self, words: str, prefix: str, limit: int) -> list[str]:
        wanted = words.lower().split()
        found = [
            name
            for name, text in self.pages.items()
            if name.startswith(prefix) and all(word in text.lower() for word in wanted)
        ]
        return found[:limit]


class Scope(enum.Enum):
    ALL = "all"
    GUIDES = "guides"
    REFERENCE = "reference"


class SearchDocs(
    Tool,
    category="Docs",
    annotations=Annotations(read_only_hint=True, idempotent_hint=True),
    timeout=10.0,
):
    """Full-text search over project documentation."""

    class Input(Schema):
        query: str = field(min_length=2, description="Search terms")
        limit: int = field(default=10, min=1, max=50)
        scope: Scope = Scope.ALL

    class Output(Schema):
        hits: int
        pages: list[str]

    def __init__(self, index: Index | None = None) -> None:
        self.index = index or Index(PAGES)

    async def call(self, args: Input, ctx: Context) -> Output:
        prefix = "" if args.scope is Scope.ALL else args.scope.value
        pages = self.index.search(args.query, prefix, args.limit)
        await ctx.debug({"query": args.query, "hits": len(pages)})
        return self.Output(hits=len(pages), pages=pages)


class Docs(Server, name="docs", version="1.0.0", instructions="Search before you answer."):
    tools = [
        SearchDocs,
        tool(SearchDocs, name="search", description="Alias for search_docs"),
        tool(Catalog, hidden=True),
    ]


if __name__ == "__main__":
    Docs().run()
