"""Counts of private imports and patched constants in tests, which may only fall."""

import re
from pathlib import Path

TESTS = Path(__file__).parent

#: Files that import a private module, or a private name.
FILES = 44
PRIVATE = re.compile(
    r"^\s*(?:from|import)\s+noizu_mcp[\w.]*?(?:\._[a-z]|\s+import\s+(?:\([^)]*|[^\n(]*)\b_[a-z])",
    re.MULTILINE,
)
#: Constants of the package that tests replace.
CONSTANTS = 39
PATCHED = re.compile(r"""\bsetattr\([^()]*?["'](?:\w+\.)*_?[A-Z][A-Z_]*["']""")


def found(pattern: re.Pattern[str]) -> dict[str, int]:
    """Count the matches in each file of the tests."""
    texts = {
        path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(TESTS.rglob("*.py"))
        # It puts faults into the package.
        if not {"node_modules", "benchmarks", "seeded_faults.py"} & set(path.parts)
    }
    counts = {file: len(pattern.findall(text)) for file, text in texts.items()}
    return {file: count for file, count in counts.items() if count}


def test_private_imports_become_fewer() -> None:
    """The number of files that import private modules may only fall."""
    files = found(PRIVATE)

    assert len(files) <= FILES, "\n".join(files)


def test_patched_constants_become_fewer() -> None:
    """The number of patched constants may only fall; an option of the object is better."""
    constants = found(PATCHED)

    assert sum(constants.values()) <= CONSTANTS, constants
