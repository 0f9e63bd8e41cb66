"""Strategies on the official JSON-Schema-Test-Suite, draft 2020-12: the share of served schemas."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from noizu_mcp.schema import compile_schema
from noizu_mcp.testing import Unsatisfiable, from_schema, violating

from .drawing import draw

SUITE = Path(__file__).parents[3] / "shared" / "json-schema-test-suite"
KINDS = {"valid": from_schema, "violating": violating}


def load_documents():
    """Return the documents that the suite serves at its own address."""
    remotes = SUITE / "remotes"
    return {
        f"http://localhost:1234/{path.relative_to(remotes).as_posix()}": json.loads(
            path.read_text()
        )
        for path in remotes.rglob("*.json")
    }


def has_values(make, schema, documents):
    """Tell whether a strategy has values; the engine validates each of them."""
    try:
        values = draw(make(schema, documents=documents), 5)
    except Unsatisfiable:
        return False
    compiled = compile_schema(schema, documents=documents)
    assert {compiled.is_valid(value) for value in values} <= {make is from_schema}
    return bool(values)


def run(folder):
    """Count the schemas with values, of those that must have some; return the others, too."""
    documents, counts, missing = load_documents(), Counter(), []
    for path in sorted((SUITE / folder).glob("*.json")):
        for group in json.loads(path.read_text()):
            for kind, make in KINDS.items():
                # A test of the suite shows that there is such a value.
                if all(test["valid"] is (kind != "valid") for test in group["tests"]):
                    continue
                found = has_values(make, group["schema"], documents)
                counts[kind, found] += 1
                if not found:
                    missing.append(f"{kind}: {path.stem}: {group['description']}")
    return counts, missing


@pytest.mark.slow
@pytest.mark.skipif(not SUITE.is_dir(), reason="the suite is not beside the checkout")
@pytest.mark.time_limit(360)
def test_schemas_of_the_suite_have_values():
    """For every schema of the suite with valid or invalid values, some are drawn."""
    counts, missing = run("draft2020-12")
    assert missing == []
    assert counts == {("valid", True): 358, ("violating", True): 302}


@pytest.mark.slow
def test_the_first_test_of_a_project(tmp_path):
    """The table of characters is made before the first draw, which would count as too slow."""
    code = (
        "import os\n"
        "from noizu_mcp.testing import from_schema\n"
        "from_schema({'type': 'string'})\n"
        "print(os.listdir('.hypothesis'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert "unicode_data" in done.stdout
