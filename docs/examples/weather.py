"""A tool with typed input and output.

Try it:

    noizu-mcp list docs/examples/weather.py
    noizu-mcp call docs/examples/weather.py get_weather city=Oslo
    noizu-mcp call --trace get_weather city=Oslo -- noizu-mcp run docs/examples/weather.py
"""

from noizu_mcp import Schema, Server, Tool, ToolError, field

# Temperature in °C and sky of each city; constants, so that answers never change.
REPORTS = {"Lima": (19.5, "fog"), "Nairobi": (24.0, "sun"), "Oslo": (-3.5, "snow")}


class GetWeather(Tool):
    """Current weather of a city."""

    class Input(Schema):
        city: str = field(min_length=2, description="Name of the city")

    class Output(Schema):
        celsius: float
        sky: str

    async def call(self, args: Input) -> Output:
        if args.city not in REPORTS:
            raise ToolError(f"No report from {args.city}; there are: {', '.join(REPORTS)}")
        celsius, sky = REPORTS[args.city]
        return self.Output(celsius=celsius, sky=sky)


class Weather(Server, name="weather", version="1.0.0"):
    tools = [GetWeather]


if __name__ == "__main__":
    Weather().run()
