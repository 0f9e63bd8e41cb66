"""The values of the schema benchmark: what fits, and the same with one fault at the end."""

import json
from typing import Any

ECHO = {"text": "hello bench", "repeat": 2, "mode": "upper"}

ORDER = {
    "number": "A-20441",
    "customer": {
        "name": "Ada Moreau",
        "email": "ada@example.org",
        "address": {"street": "1 Main Street", "city": "Lyon", "zip": "69001", "country": "FR"},
    },
    "lines": [
        {"sku": "bolt-m6", "count": 40, "price": 0.12},
        {"sku": "nut-m6", "count": 40, "price": 0.08},
        {"sku": "washer-m6", "count": 80, "price": 0.03},
    ],
    "tags": ["workshop", "monthly"],
    "priority": "high",
    "discount": 0.05,
    "gift": False,
    "note": None,
}

BATCH = {"orders": [{**ORDER, "number": f"B-{10_000 + n}"} for n in range(100)], "dry_run": True}

SHAPES = [
    {"kind": "circle", "x": 1.5, "y": 2.5, "radius": 3.0},
    {"kind": "box", "x": 0.5, "y": 0.5, "width": 10.0, "height": 4.0},
    {"kind": "label", "x": 5.0, "y": 6.0, "text": "entrance", "size": 12},
    {"kind": "path", "points": [[0.0, 0.0], [1.0, 4.0], [2.5, 4.0]], "closed": True},
]
DRAWING = {"title": "plan", "shapes": SHAPES * 8}

VALID: dict[str, Any] = {"small": ECHO, "medium": ORDER, "large": BATCH, "union": DRAWING}


def faulty(name: str) -> Any:
    """Return a value with one fault, in what is checked last."""
    # Through JSON, so that no part of it stands in two places.
    value = json.loads(json.dumps(VALID[name]))
    match name:
        case "small":
            value["mode"] = "loud"
        case "medium":
            value["discount"] = 1.5
        case "large":
            value["orders"][-1]["lines"][-1]["count"] = 0
        case _:
            value["shapes"][-1]["closed"] = "perhaps"
    return value
