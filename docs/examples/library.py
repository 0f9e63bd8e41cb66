"""A library: its catalogue is an SQLite database, which tools search, export and change.

    noizu-mcp call docs/examples/library.py search words=sea
    noizu-mcp call docs/examples/library.py export table=books > books.csv
    noizu-mcp call docs/examples/library.py delete_book number=2
    noizu-mcp read docs/examples/library.py library://books/1
    noizu-mcp prompt docs/examples/library.py recommend mood=calm

The environment variable LIBRARY names the file of the database. Without it the catalogue is in
memory, and every start begins with the same books.
"""

import csv
import io
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Annotated, Literal

from noizu_mcp import (
    Accept,
    Annotations,
    Context,
    ResourceNotFound,
    ResourceTemplate,
    Schema,
    Server,
    ToolError,
    Toolkit,
    field,
    mcp,
)

Table = Literal["books", "members"]
SELECT = {"books": "SELECT * FROM books", "members": "SELECT * FROM members"}
TABLES = """
CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY, title TEXT, author TEXT, year INTEGER);
CREATE TABLE IF NOT EXISTS members (id INTEGER PRIMARY KEY, name TEXT);
INSERT OR IGNORE INTO members VALUES (1, 'Ada'), (2, 'Grace');
INSERT OR IGNORE INTO books VALUES
    (1, 'The Sea-Wolf', 'Jack London', 1904),
    (2, 'Walden', 'Henry David Thoreau', 1854),
    (3, 'Twenty Thousand Leagues Under the Seas', 'Jules Verne', 1870);
"""


#: The number of a row; SQLite has no greater ones.
Number = Annotated[int, field(min=1, max=2**63 - 1)]


class Book(Schema):
    id: int
    title: str
    author: str
    year: int


class Catalogue(Toolkit):
    """Tools over the catalogue; `ctx.state` is the database."""

    @mcp(annotations=Annotations(read_only_hint=True))
    def search(
        self,
        words: Annotated[str, field(min_length=2, description="A part of a title or an author")],
        ctx: Context,
        limit: Annotated[int, field(min=1, max=50)] = 10,
    ) -> list[Book]:
        """Search the books of the library."""
        query = "SELECT * FROM books WHERE title LIKE ?1 OR author LIKE ?1 ORDER BY year LIMIT ?2"
        return [Book(**row) for row in ctx.state.execute(query, (f"%{words}%", limit))]

    @mcp(annotations=Annotations(read_only_hint=True))
    def export(self, table: Table, ctx: Context) -> str:
        """Export a table as CSV."""
        rows = ctx.state.execute(SELECT[table]).fetchall()
        text = io.StringIO()
        writer = csv.writer(text)
        for done, row in enumerate(rows, start=1):
            writer.writerow(row)
            ctx.report_progress(done, len(rows))
        return text.getvalue()

    @mcp(annotations=Annotations(destructive_hint=True))
    async def delete_book(self, number: Number, ctx: Context) -> str:
        """Delete a book, after the user has agreed."""
        book = ctx.state.execute("SELECT * FROM books WHERE id = ?", (number,)).fetchone()
        if book is None:
            raise ToolError(f"No book {number}; search shows the numbers")
        answer = await ctx.elicit(f"Delete {book['title']}, {book['author']}?", {"sure": bool})
        if not isinstance(answer, Accept) or not answer.content.sure:
            return f"{book['title']} was kept"
        with ctx.state:
            ctx.state.execute("DELETE FROM books WHERE id = ?", (number,))
        return f"{book['title']} was deleted"


class Row(ResourceTemplate, uri_template="library://{table}/{number}"):
    """A row of a table."""

    def read(self, table: Table, number: Number, ctx: Context) -> dict[str, object]:
        row = ctx.state.execute(f"{SELECT[table]} WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise ResourceNotFound
        return dict(row)


def recommend(mood: str, count: int = 3) -> str:
    """Let the model choose books of the library."""
    return f"Search the library and recommend {count} books for a reader who feels {mood}."


class Library(Server, name="library", version="1.0.0"):
    tools = [Catalogue]
    resources = [Row]
    prompts = [recommend]

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[sqlite3.Connection]:
        path = os.environ.get("LIBRARY", ":memory:")
        with closing(sqlite3.connect(path, check_same_thread=False)) as database:
            database.row_factory = sqlite3.Row
            database.executescript(TABLES)
            yield database


if __name__ == "__main__":
    Library().run()
