"""Handlers that ask: a form in a loop, a URL, a model, and a side effect that runs once.

noizu-mcp call docs/examples/asking.py book
noizu-mcp call docs/examples/asking.py book --answers '{"guest": "Ada", "more": false}'
noizu-mcp call docs/examples/asking.py connect_calendar
"""

from typing import Literal

from noizu_mcp import Accept, Context, Schema, Server, Toolkit, field, mcp


class Guest(Schema):
    """One page of the form."""

    guest: str = field(min_length=2, description="Name of a guest")
    room: Literal["quiet", "view"] = "quiet"
    more: bool = field(default=False, description="Another guest?")


class Hotel(Toolkit):
    """A hotel that asks for the guests and books their rooms."""

    def __init__(self) -> None:
        self.booked: list[str] = []

    def reserve(self, guests: list[str]) -> int:
        """Reserve rooms. This side effect must happen once."""
        self.booked += guests
        return len(self.booked)

    @mcp
    async def book(self, ctx: Context) -> str:
        """Book rooms for as many guests as the user names."""
        guests: list[str] = []
        more = True
        while more:
            answer = await ctx.elicit(f"Who is guest {len(guests) + 1}?", Guest)
            if not isinstance(answer, Accept):
                return "nothing was booked"
            guests.append(f"{answer.content.guest} ({answer.content.room})")
            more = answer.content.more
        number = await ctx.step(self.reserve, guests)
        agreed = await ctx.elicit("Send a confirmation?", {"type": "object", "properties": {}})
        sent = "sent" if isinstance(agreed, Accept) else "not sent"
        return f"{', '.join(guests)}; {number} booked, confirmation {sent}"

    @mcp
    async def connect_calendar(self, ctx: Context) -> str:
        """Let the user sign in at the calendar. The server never sees the password."""
        agreed = await ctx.elicit_url("Sign in to your calendar", "https://calendar.example/oauth")
        return "signing in" if isinstance(agreed, Accept) else "not connected"

    @mcp
    async def slogan(self, ctx: Context) -> str:
        """Let the client's model write a slogan for its project."""
        roots = await ctx.list_roots()
        answer = await ctx.sample(f"A slogan for {roots[0].name or roots[0].uri}", max_tokens=50)
        return answer.text


class Asking(Server, name="asking", version="1.0.0"):
    tools = [Hotel]
