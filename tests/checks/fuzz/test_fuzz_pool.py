"""Sequences: values of earlier calls become arguments of the next."""

import random

from noizu_mcp.check.fuzz._case import Listed, Replies
from noizu_mcp.check.fuzz._pool import SeenValues
from noizu_mcp.check.raw import Exchange

CREATE = Listed(
    "tool", "create_note", {}, {"type": "object", "properties": {"title": {"type": "string"}}}
)
READ = Listed(
    "tool",
    "read_note",
    {},
    {
        "type": "object",
        "properties": {"note_id": {"type": "integer"}, "title": {"type": "string"}},
        "required": ["note_id"],
    },
)


class Always(random.Random):
    """Always uses a known value."""

    def random(self):
        return 0.0


def called(component, arguments, result):
    step = component.step(arguments)
    return Replies(step, Exchange(step.method, {"result": result}))


def filled(pool, value=None):
    return pool.fill(READ, {"note_id": 0} if value is None else value, Always(1))


def test_a_result_fills_an_argument_of_its_name():
    """The `id` of a result is tried as `note_id`, and arguments under their own names."""
    pool = SeenValues()
    pool.learn(CREATE, called(CREATE, {"title": "a"}, {"structuredContent": {"id": 42}}))

    assert filled(pool) == {"note_id": 42, "title": "a"}


def test_json_in_text_is_read():
    """A tool without structured content may write its result as text."""
    pool = SeenValues()
    text = [{"type": "text", "text": '[{"note": {"note_id": 7}}]'}, {"type": "text", "text": "{"}]
    pool.learn(CREATE, called(CREATE, {}, {"content": text}))

    assert filled(pool) == {"note_id": 7}


def test_a_value_that_does_not_fit_is_not_taken():
    """The schema of the argument decides."""
    pool = SeenValues()
    pool.learn(CREATE, called(CREATE, {}, {"structuredContent": {"id": "forty-two", "title": 1}}))

    assert filled(pool) == {"note_id": 0}


def test_failures_teach_nothing():
    """Arguments of a failed call are not added to the known values."""
    pool = SeenValues()
    pool.learn(CREATE, called(CREATE, {"title": "a"}, {"isError": True, "content": []}))

    assert filled(pool) == {"note_id": 0}


def test_memory_is_limited():
    """Only the latest values of a name are kept."""
    pool = SeenValues()
    for number in range(100):
        pool.learn(CREATE, called(CREATE, {}, {"structuredContent": {"id": number}}))

    assert filled(pool)["note_id"] >= 96


FILES = Listed(
    "tool",
    "read_files",
    {},
    {
        "type": "object",
        "properties": {"fileName": {"type": "string"}, "topics": {"type": "string"}},
    },
)


def test_names_that_stand_for_others():
    """`name` fills `fileName`, and a value fills the plural of its name."""
    pool = SeenValues()
    pool.learn(CREATE, called(CREATE, {}, {"structuredContent": {"name": "a", "topic": "b"}}))

    assert pool.fill(FILES, {}, Always(1)) == {"fileName": "a", "topics": "b"}


def test_completions_are_values():
    """A completion of an argument is a value for it."""
    pool = SeenValues()
    definition = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "topics"}}
    component = Listed("completion", "x topics", definition, {"type": "string"})
    pool.learn(component, called(component, "", {"completion": {"values": ["sea"]}}))

    assert pool.fill(FILES, {}, Always(1)) == {"topics": "sea"}


def test_deep_values_and_many_names():
    """A value that is too deep, or a name beyond the limit, is not kept."""
    pool = SeenValues()
    deep = {"title": "deep"}
    for _ in range(9):
        deep = {"a": deep}
    pool.learn(CREATE, called(CREATE, {}, {"structuredContent": deep}))
    pool.learn(CREATE, called(CREATE, {f"n{each}": 1 for each in range(600)}, {"content": []}))
    pool.learn(CREATE, called(CREATE, {"title": "late"}, {"content": []}))

    assert filled(pool) == {"note_id": 0}
