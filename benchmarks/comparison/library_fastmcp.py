"""The library of docs/examples/library.py, written for FastMCP."""

import csv
import io
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.exceptions import NotFoundError, ToolError
from fastmcp.server.lifespan import lifespan
from pydantic import BaseModel, Field

Table = Literal["books", "members"]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
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


class Book(BaseModel):
    id: int
    title: str
    author: str
    year: int


@lifespan
async def database(server: FastMCP) -> AsyncGenerator[dict[str, object]]:
    path = os.environ.get("LIBRARY", ":memory:")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.row_factory = sqlite3.Row
        connection.executescript(TABLES)
        yield {"database": connection}


mcp = FastMCP("library", version="1.0.0", lifespan=database)


@mcp.tool(annotations={"readOnlyHint": True})
def search(
    words: Annotated[str, Field(min_length=2, description="A part of a title or an author")],
    ctx: Context,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> list[Book]:
    """Search the books of the library."""
    query = "SELECT * FROM books WHERE title LIKE ?1 OR author LIKE ?1 ORDER BY year LIMIT ?2"
    rows = ctx.lifespan_context["database"].execute(query, (f"%{words}%", limit))
    return [Book(**row) for row in rows]


@mcp.tool(annotations={"readOnlyHint": True})
async def export(table: Table, ctx: Context) -> str:
    """Export a table as CSV."""
    rows = ctx.lifespan_context["database"].execute(SELECT[table]).fetchall()
    text = io.StringIO()
    writer = csv.writer(text)
    for done, row in enumerate(rows, start=1):
        writer.writerow(row)
        await ctx.report_progress(done, len(rows))
    return text.getvalue()


@mcp.tool(annotations={"destructiveHint": True})
async def delete_book(number: Number, ctx: Context) -> str:
    """Delete a book, after the user has agreed."""
    database = ctx.lifespan_context["database"]
    book = database.execute("SELECT * FROM books WHERE id = ?", (number,)).fetchone()
    if book is None:
        raise ToolError(f"No book {number}; search shows the numbers")
    answer = await ctx.elicit(f"Delete {book['title']}, {book['author']}?", bool)
    if answer.action != "accept" or not answer.data:
        return f"{book['title']} was kept"
    with database:
        database.execute("DELETE FROM books WHERE id = ?", (number,))
    return f"{book['title']} was deleted"


@mcp.resource("library://{table}/{number}", mime_type="application/json")
def row(table: Table, number: Number, ctx: Context) -> dict[str, object]:
    """A row of a table."""
    database = ctx.lifespan_context["database"]
    found = database.execute(f"{SELECT[table]} WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise NotFoundError(f"No row {number} in {table}")
    return dict(found)


@mcp.prompt
def recommend(mood: str, count: int = 3) -> str:
    """Let the model choose books of the library."""
    return f"Search the library and recommend {count} books for a reader who feels {mood}."


if __name__ == "__main__":
    mcp.run()
