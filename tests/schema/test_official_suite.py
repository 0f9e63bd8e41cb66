"""The official JSON-Schema-Test-Suite, draft 2020-12, required and optional, on both engines."""

import json
from collections import Counter
from pathlib import Path

import pytest

from noizu_mcp.schema import CompiledSchema, SchemaUnsupported, compile_schema

SUITE = Path(__file__).parents[3] / "shared" / "json-schema-test-suite"
PARTS = {"required": "draft2020-12", "optional": "draft2020-12/optional"}

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the suite is not beside the checkout")


@pytest.fixture(scope="module")
def documents():
    """Return the documents that the suite serves at its own address."""
    remotes = SUITE / "remotes"
    return {
        f"http://localhost:1234/{path.relative_to(remotes).as_posix()}": json.loads(
            path.read_text()
        )
        for path in remotes.rglob("*.json")
    }


def groups(part):
    """Yield the name and the content of each group of tests in a part."""
    for path in sorted((SUITE / PARTS[part]).glob("*.json")):
        for group in json.loads(path.read_text()):
            yield f"{path.stem}: {group['description']}", group


def run(part, engine, documents):
    """Count the right, wrong and refused verdicts; return the wrong ones, too."""
    counts: Counter[str] = Counter()
    wrong = []
    for name, group in groups(part):
        try:
            compiled = compile_schema(group["schema"], engine, documents)
        except SchemaUnsupported:
            counts["refused"] += len(group["tests"])
            continue
        for test in group["tests"]:
            right = is_right(compiled, test)
            counts["right" if right else "wrong"] += 1
            if not right:
                wrong.append(f"{name}: {test['description']}")
    return counts, wrong


def is_right(compiled: CompiledSchema, test) -> bool:
    """Tell whether the verdict is that of the suite, and the report agrees with it."""
    before = json.dumps(test["data"])
    valid = compiled.is_valid(test["data"])
    violations = compiled.violations(test["data"])
    explained = all(found.message != "does not match the schema" for found in violations)
    unchanged = before == json.dumps(test["data"])
    return valid is test["valid"] and (not violations) is valid and explained and unchanged


@pytest.mark.parametrize(("part", "right"), [("required", 1299), ("optional", 162)])
def test_native_answers_everything(part, right, documents):
    """The native engine is right in every test, and every rejection is explained."""
    assert run(part, "native", documents) == ({"right": right}, [])


@pytest.mark.parametrize(
    ("part", "right", "refused"), [("required", 1146, 153), ("optional", 131, 31)]
)
def test_python_answers_rightly_or_refuses(part, right, refused, documents):
    """The Python engine is never wrong, and serves no fewer tests than before."""
    assert run(part, "python", documents) == ({"right": right, "refused": refused}, [])
