"""Checks one value again and again: `loop_schema.py ENGINE SCHEMA SECONDS`.

`accept` turns a value that fits into what a handler takes; `report` turns another into
the text that a model reads.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import schema_values

Accept = Callable[[Any], Any]
LEAST = 5


def noizu(name: str) -> tuple[Accept, Accept]:
    import schema_noizu

    from noizu_mcp.schema import describe, read_shape

    shape, faults = read_shape(schema_noizu.CLASSES[name])
    if shape is None or shape.build is None:
        raise RuntimeError(f"no shape: {faults}")
    is_valid, violations, build = shape.compiled.is_valid, shape.compiled.violations, shape.build

    def accept(value: Any) -> Any:
        return build(value) if is_valid(value) else None

    def report(value: Any) -> str | None:
        return None if is_valid(value) else "\n".join(describe(violations(value)))

    return accept, report


def noizu_python(name: str) -> tuple[Accept, Accept]:
    sys.modules["jsonschema_rs"] = None  # type: ignore[assignment]  # as if not installed
    return noizu(name)


def pydantic(name: str) -> tuple[Accept, Accept]:
    import schema_pydantic
    from pydantic import TypeAdapter, ValidationError

    accept = TypeAdapter(schema_pydantic.CLASSES[name]).validate_python

    def report(value: Any) -> str | None:
        try:
            accept(value)
        except ValidationError as error:
            return str(error)
        return None

    return accept, report


def jsonschema(name: str) -> tuple[Accept, Accept]:
    import schema_noizu
    from jsonschema import Draft202012Validator

    from noizu_mcp.schema import read_shape

    shape, _ = read_shape(schema_noizu.CLASSES[name])
    validator = Draft202012Validator(shape.schema)

    def accept(value: Any) -> Any:
        return value if validator.is_valid(value) else None

    def report(value: Any) -> str | None:
        return "\n".join(error.message for error in validator.iter_errors(value)) or None

    return accept, report


def timed(check: Accept, value: Any, seconds: float) -> float:
    """Return microseconds of processor time per check."""
    if check(value) is None:
        raise RuntimeError(f"{check.__name__} did not do its work")
    count, spent = LEAST, 0.0
    while spent < seconds * 2 / 3:
        spent = loop(check, value, count)
        count *= 2
    count = max(LEAST, int(count / 2 * seconds / spent))
    gc.collect()
    gc.disable()
    return loop(check, value, count) / count * 1e6


def loop(check: Accept, value: Any, count: int) -> float:
    """Check so often; returns seconds of processor time."""
    began = time.process_time()
    for _ in range(count):
        check(value)
    return time.process_time() - began


ENGINES = {
    "noizu, native": noizu,
    "noizu, Python": noizu_python,
    "pydantic": pydantic,
    "jsonschema": jsonschema,
}

if __name__ == "__main__":
    engine, name, seconds = sys.argv[1:]
    accept, report = ENGINES[engine](name)
    figures = {
        "accept_us": timed(accept, schema_values.VALID[name], float(seconds) / 2),
        "report_us": timed(report, schema_values.faulty(name), float(seconds) / 2),
    }
    print(json.dumps(figures))
