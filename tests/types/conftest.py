"""The official schemas, where the checkout has them beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCHEMAS = Path(__file__).resolve().parents[2] / ".." / "shared" / "schema"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def official(revision: str) -> Callable[[str, Any], None]:
    """Check a value against a definition of the official schema of the revision."""
    path = SCHEMAS / revision / "schema.json"
    if not path.exists():
        pytest.skip("no official schemas beside the checkout")
    import jsonschema

    document = json.loads(path.read_text())
    definitions = "$defs" if "$defs" in document else "definitions"

    def check(name: str, value: Any) -> None:
        if name not in document[definitions]:
            pytest.skip(f"{revision} has no {name}")
        schema = {
            "$ref": f"#/{definitions}/{name}",
            definitions: document[definitions],
            "$schema": document["$schema"],
        }
        cls = jsonschema.validators.validator_for(schema)
        json.dumps(value, allow_nan=False)
        cls(schema).validate(value)

    return check
