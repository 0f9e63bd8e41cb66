"""Raw JSON Schema, as a mapping and as JSON text.

Arguments are validated, and arrive as a plain dict with all keys, also unknown ones.

Try it:

    noizu-mcp call docs/examples/raw_schema.py convert amount=10 from=eur to=usd
    noizu-mcp call docs/examples/raw_schema.py convert amount=ten from=eur to=usd
    noizu-mcp call docs/examples/raw_schema.py route stops='["Oslo", "Lima"]'
"""

from typing import Any

from noizu_mcp import Server, Tool

# Units of the currency for one euro.
RATES = {"eur": 1.0, "usd": 1.25, "nok": 11.5}
CURRENCY = {"type": "string", "enum": list(RATES)}


class Convert(Tool):
    """Convert an amount of money."""

    # `from` is a keyword of Python, so only a raw schema can declare it.
    input_schema = {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "minimum": 0},
            "from": {"$ref": "#/$defs/currency"},
            "to": {"$ref": "#/$defs/currency"},
        },
        "required": ["amount", "from", "to"],
        "additionalProperties": False,
        "$defs": {"currency": CURRENCY},
    }
    output_schema = {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "currency": {"type": "string"}},
        "required": ["amount", "currency"],
    }

    def call(self, args: dict[str, Any]) -> dict[str, Any]:
        euros = args["amount"] / RATES[args["from"]]
        return {"amount": round(euros * RATES[args["to"]], 2), "currency": args["to"]}


class Route(Tool):
    """Write a route from its first stop to its last."""

    input_schema = """{
      "type": "object",
      "properties": {
        "stops": {
          "type": "array",
          "prefixItems": [{"const": "Oslo"}],
          "items": {"type": "string"},
          "minItems": 2,
          "uniqueItems": true
        }
      },
      "required": ["stops"]
    }"""

    def call(self, args: dict[str, Any]) -> str:
        return " → ".join(args["stops"])


class Raw(Server, name="raw", version="1.0.0"):
    tools = [Convert, Route]


if __name__ == "__main__":
    Raw().run()
