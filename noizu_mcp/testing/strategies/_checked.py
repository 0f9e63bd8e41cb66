"""Strategies for whole schemas: the plan of a schema, with the schema engine behind it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from hypothesis import event, note, reject
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.strategies import DrawFn, SearchStrategy

from ..._value import JSON, JSONObject
from ...schema import Document
from ._build import StrategyBuilder, pick
from ._case import Goal, Goals, Mood
from ._expand import Expander
from ._plan import Planner
from ._texts import FORMATS, Formats
from ._violation import Unsatisfiable, Violation

# Values that are drawn for one example, as many as a filter of Hypothesis draws.
_RETRIES: Final = 3
# Examples without a value before a plan that never had one is given up. Hypothesis complains of
# filters after 50.
_MISSES: Final = 40
# Messages of a conversation after the handshake.
_LONGEST: Final = 20


def select_formats(formats: bool | Mapping[str, SearchStrategy[str]]) -> Formats:
    """Return the strategies of formats that a caller asks for; see `from_schema`."""
    if isinstance(formats, bool):
        return FORMATS if formats else {}
    return {**FORMATS, **formats}


def checked(
    document: Document,
    mood: Mood,
    accepts: Callable[[JSON], bool],
    formats: Formats,
    *,
    beside: tuple[JSON, ...] = (),
    asserted: bool = False,
) -> SearchStrategy[JSON]:
    """Return the strategy for the values that fit or break a schema.

    Args:
        document: The schema.
        mood: "is" for values that fit, "near" for those that break it.
        accepts: Tells if a value is one of those.
        formats: The strategies of the formats.
        beside: Other schemas that the values fit.
        asserted: True if a text can break a format.

    Raises:
        Unsatisfiable: There is no such value.
    """
    expander = Expander(document, frozenset(formats), asserted=asserted)
    planner = Planner(expander)
    text = "no value fits the schema" if mood == "is" else "no value breaks the schema"
    # Where no value breaks one keyword alone, others break several.
    moods: list[Mood] = ["near", "not"] if mood == "near" else [mood]
    tries: list[Goals] = [(Goal(document.root, each), *map(Goal, beside)) for each in moods]
    goals = next(filter(planner.choices, tries), None)
    if goals is None:
        raise Unsatisfiable(text)
    builder = StrategyBuilder(planner, formats, whole_floats=expander.dialect.whole_floats)
    planned = builder.values(goals)
    met, missed = False, 0

    @st.composite
    def values(draw: DrawFn) -> JSON:
        nonlocal met, missed
        for _ in range(_RETRIES):
            with suppress(UnsatisfiedAssumption):
                value = draw(planned)
                if accepts(value):
                    met = True
                    return value
        # After all retries, not before: a replay of the example ends here, too.
        missed += 1
        if missed >= _MISSES and not met:
            raise Unsatisfiable(f"{text}, or none was found in {_MISSES} tries")
        return reject()

    return values()


def labelled(
    values: SearchStrategy[JSON], explain: Callable[[JSON], list[JSON]]
) -> SearchStrategy[Violation]:
    """Return the strategy for values together with the keyword and the place that they break.

    Args:
        values: The values; each breaks a schema.
        explain: Returns the violations of a value.
    """

    def label(value: JSON) -> Violation:
        first = explain(value)[0]
        return Violation(value, first.keyword, first.path)

    return values.map(label)


def noted(
    values: SearchStrategy[JSON],
    explain: Callable[[JSON], list[JSON]],
    describe: Callable[[list[JSON]], list[str]],
) -> SearchStrategy[JSON]:
    """Return the strategy for values whose violations Hypothesis notes.

    Args:
        values: The values.
        explain: Returns the violations of a value.
        describe: Puts violations into words.
    """

    def note_violation(value: JSON) -> JSON:
        violations = explain(value)
        event("breaks", violations[0].keyword)
        note(f"breaks {violations[0].keyword}: {describe(violations[:1])[0]}")
        return value

    return values.map(note_violation)


#: Takes each of some strategies equally often.
any_of: Final = pick


def calls(
    requests: SearchStrategy[JSONObject], name: str, arguments: SearchStrategy[JSONObject]
) -> SearchStrategy[JSONObject]:
    """Return the strategy for calls of one tool.

    Args:
        requests: Calls of any tool.
        name: The name of the tool.
        arguments: Its arguments.
    """

    def call(pair: tuple[JSONObject, JSONObject]) -> JSONObject:
        request, drawn = pair
        return {**request, "params": {**request["params"], "name": name, "arguments": drawn}}

    # Not `builds`: Hypothesis would print the call of this function instead of the message.
    return st.tuples(requests, arguments).map(call)


@st.composite
def conversation(
    draw: DrawFn, first: list[SearchStrategy[JSONObject]], rest: SearchStrategy[JSONObject]
) -> list[JSONObject]:
    """Draw the messages of a client on one connection.

    Args:
        draw: Draws from a strategy.
        first: The messages of the handshake.
        rest: The messages after it.
    """
    made = [draw(each) for each in first]
    made += draw(st.lists(rest, max_size=_LONGEST))
    sent: list[JSON] = []
    for message in made:
        params = message["params"]
        if "id" in message:
            # An id that is taken gets a number behind it (basic, Requests: ids are unique).
            if message["id"] in sent:
                message["id"] = f"{message['id']}-{len(sent)}"
            sent.append(message["id"])
        elif "requestId" in params and len(sent) > 1 and draw(st.integers(0, 3)):
            # A client must not cancel the handshake (basic/utilities/cancellation).
            params["requestId"] = draw(st.sampled_from(sent[len(first) > 0 :]))
    return made
