"""Arguments: a value that fits becomes what a handler takes, another a text."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table
from ._peers import package_version, python_for
from ._script import sample

TITLES = {
    "small": "3 fields",
    "medium": "an order: 8 fields, 3 levels, 3 lines",
    "large": "100 such orders",
    "union": "32 items, each one of 4 classes",
}
COLUMNS = (
    Column("accept_us", "accept, CPU µs", ranged=True),
    Column("report_us", "refuse, CPU µs"),
)
TABLES = {
    name: Table(f"schema {name}", f"Schema, {name}: {title}", COLUMNS, base="pydantic")
    for name, title in TITLES.items()
}
#: Which package each engine needs, and whose interpreter has it.
ENGINES = {
    "noizu, native": ("jsonschema_rs", "noizu"),
    "noizu, Python": ("fastjsonschema", "noizu"),
    "pydantic": ("pydantic", "mcp"),
    "jsonschema": ("jsonschema", "noizu"),
}


def cases(settings: Settings) -> Iterator[Case]:
    for name, table in TABLES.items():
        for engine, (package, owner) in ENGINES.items():
            if owner in settings.peers:
                run = partial(time_checks, engine, package, owner, name, settings.seconds)
                yield Case(table, engine, run)


def time_checks(engine: str, package: str, owner: str, name: str, seconds: float) -> Sample:
    python = python_for(owner)
    package_version(python, package)
    return sample(python, "loop_schema.py", engine, name, seconds)


BENCHMARK = Benchmark("schema", cases)
