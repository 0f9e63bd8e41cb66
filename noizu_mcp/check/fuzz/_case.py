"""The values of a run: components, steps, outcomes, cases, and findings."""

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from ..._errors import SchemaError
from ..._limits import CLIENT_LIMITS
from ..._util import part_of
from ..._value import JSON, JSONObject
from ...protocol import LATEST_HANDSHAKE
from ...schema import PeerSchema, Violation, coerce_text
from ...types import META_BROKEN_OUTPUT
from ..raw import Exchange

CaseKind = Literal[
    "tool", "prompt", "resource", "template", "completion", "list", "message", "revision"
]

#: The method that uses a component of each kind; other kinds use their own methods.
METHODS: Final = {
    "tool": "tools/call",
    "prompt": "prompts/get",
    "resource": "resources/read",
    "template": "resources/read",
    "completion": "completion/complete",
}

PROGRESS: Final = "notifications/progress"
#: Deaths of a server caused by one component, after which it is not called again.
MAX_DEATHS: Final = 3


@attrs.frozen
class Step:
    """One message to a server.

    Attributes:
        method: The method of the request.
        params: Its params, without the `_meta` of 2026-07-28.
        cancel_after: Seconds after which the request is cancelled; None to not cancel it.
    """

    method: str
    params: JSONObject = attrs.field(factory=dict)
    cancel_after: float | None = None

    def to_json(self) -> JSONObject:
        """Return the step as JSON, without empty members."""
        found: JSONObject = {"method": self.method}
        if self.params:
            found["params"] = self.params
        if self.cancel_after is not None:
            found["cancelAfter"] = self.cancel_after
        return found

    @classmethod
    def from_json(cls, value: JSON) -> "Step":
        """Parse a step.

        Raises:
            ValueError: The value is not a step.
        """
        step = value if isinstance(value, dict) else {}
        method, params = step.get("method"), step.get("params", {})
        after = step.get("cancelAfter")
        kinds = ((method, str), (params, dict), (after, int | float | None))
        if not all(isinstance(each, kind) for each, kind in kinds):
            raise ValueError(f"not a step: {value!r}")
        return cls(step["method"], params, after)


@attrs.frozen
class Replies:
    """The messages that came back after a step.

    Attributes:
        step: The step.
        exchange: The answer, or why it is missing.
        faults: The faults of the server's messages, each as a rule and what was received.
        notifications: The notifications that came.
        token: The progress token of the request; None if it had none.
        can_log: True if the server may send log messages.
        responsive: False if the server did not answer another request afterwards either; None if
            this was not tried.
        version: The revision.
    """

    step: Step
    exchange: Exchange
    faults: tuple[tuple[str, str], ...] = ()
    notifications: tuple[JSONObject, ...] = ()
    token: str | None = None
    can_log: bool = True
    responsive: bool | None = None
    version: str = LATEST_HANDSHAKE.name

    @property
    def result(self) -> JSONObject | None:
        """The result; None for an error, or without an answer."""
        return self.exchange.result

    @property
    def notices(self) -> tuple[str, ...]:
        """The methods of the notifications that came."""
        return tuple(str(each["method"]) for each in self.notifications)

    @property
    def progress(self) -> list[JSONObject]:
        """The params of the notifications of progress that came."""
        found = [each for each in self.notifications if each["method"] == PROGRESS]
        return [part_of(each, "params", dict) for each in found]

    @property
    def refused(self) -> bool:
        """True for an error, or the result of a tool that failed."""
        return bool(self.exchange.error) or bool((self.result or {}).get("isError"))

    @property
    def broke_output(self) -> bool:
        """True if the server reports that its tool broke the output schema."""
        if not self.refused:
            return False
        marks = part_of(self.result or {}, "_meta", dict)
        return META_BROKEN_OUTPUT in marks or "Output validation error" in self.error_text

    @property
    def error_text(self) -> str:
        """The text of an error, or of the result of a tool that failed; empty for success."""
        error = self.exchange.error
        if error:
            data = error.get("data")
            return f"{error.get('message', '')}{f' {data}' if data is not None else ''}"
        if not self.refused:
            return ""
        blocks = (self.result or {}).get("content")
        texts = [each.get("text", "") for each in blocks or () if isinstance(each, Mapping)]
        return "\n".join(str(each) for each in texts)


@attrs.frozen(eq=False)
class Listed:
    """A component that the server lists.

    Attributes:
        kind: Its kind.
        name: Its name, its URI or its URI template.
        definition: The definition, as listed.
        schema: The schema of its arguments, or of the variables of a template; for a completion,
            the schema of the text to complete.
    """

    kind: CaseKind
    name: str
    definition: JSONObject
    schema: JSONObject
    _judges: dict[str, PeerSchema | None] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def is_destructive(self) -> bool:
        """True if its annotations say that it may destroy something."""
        hints = self.definition.get("annotations")
        return isinstance(hints, dict) and hints.get("destructiveHint") is True

    @property
    def is_annotated(self) -> bool:
        """True if its annotations say whether it may destroy something."""
        hints = self.definition.get("annotations")
        known = ("destructiveHint", "readOnlyHint")
        return isinstance(hints, dict) and any(isinstance(hints.get(each), bool) for each in known)

    def step(self, value: JSON) -> Step:
        """Make the request that uses the component.

        Args:
            value: The arguments; the variables of a template; the text to complete.
        """
        params: JSONObject
        if self.kind in ("resource", "template"):
            params = {"uri": value}
        elif self.kind == "completion":
            params = {
                **self.definition,
                "argument": {**self.definition["argument"], "value": value},
            }
        else:
            params = {"name": self.name, "arguments": value}
        return Step(METHODS[self.kind], params)

    def value_of(self, step: Step) -> JSON:
        """Return the value from which `step` was made."""
        if self.kind in ("resource", "template"):
            return step.params.get("uri")
        if self.kind == "completion":
            return step.params["argument"]["value"]
        return step.params.get("arguments", {})

    def violations(self, value: JSON) -> list[Violation] | None:
        """Return how a value breaks the schema; None if the schema cannot be used."""
        judge = self.judge("inputSchema", self.schema)
        return None if judge is None else judge.violations(value)

    def has_format(self, value: JSON) -> bool:
        """Tell whether a value has a text for which the schema has a `format`.

        `format` is an annotation, so such a value matches the schema; a server may still refuse it.
        """
        judge = self.judge("formats", _without_formatted(self.schema))
        return judge is None or judge.violations(value) != []

    def is_read_as_valid(self, value: JSON) -> bool:
        """Tell whether a value matches once its texts are converted to other types.

        Many servers accept `"3"` for 3, since models write it.
        """
        read = coerce_text(self, value, CLIENT_LIMITS)
        return read is not value and self.violations(read) == []

    def judge(self, part: str, schema: JSON) -> PeerSchema | None:
        """Compile a schema of the component, once; None if it cannot be used."""
        if part not in self._judges:
            try:
                self._judges[part] = PeerSchema(schema)
            except SchemaError:
                self._judges[part] = None
        return self._judges[part]


def _without_formatted(schema: JSON) -> JSON:
    """Refuse each text for which a schema has a `format`."""
    if isinstance(schema, list):
        return [_without_formatted(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found: JSONObject = {name: _without_formatted(part) for name, part in schema.items()}
    if isinstance(schema.get("format"), str):
        no_text = {"not": {"type": "string"}}
        found["allOf"] = [*part_of(found, "allOf", list), no_text]
    return found


@attrs.frozen
class Case:
    """Steps on one connection, of which the last one is checked.

    Attributes:
        stateless: True for 2026-07-28, False for the revisions with a handshake.
        steps: The steps.
    """

    stateless: bool
    steps: tuple[Step, ...]


@attrs.define(eq=False)
class Use:
    """A component and its calls so far.

    Attributes:
        listed: The component by the eras that list it: its schemas may differ between them.
        turns: The number of rounds.
        sent: The values that were sent, as JSON text.
        valid: Valid values of the last round, for sequences.
        right: A call that succeeded.
        slow: A slow call of it.
        is_slow: True if its calls take long: sequences leave it out.
        seconds: The total time of its answers.
        varies: True if the same call returns different results.
        deaths: How often the server died, or hung, because of it.
        silent: True if it was found to leave requests without an answer.
    """

    listed: dict[bool, Listed] = attrs.field(factory=dict)
    turns: int = 0
    sent: set[str] = attrs.field(factory=set)
    valid: list[JSON] = attrs.field(factory=list)
    right: Step | None = None
    slow: Step | None = None
    is_slow: bool = False
    seconds: float = 0.0
    varies: bool = False
    deaths: int = 0
    silent: bool = False

    @property
    def component(self) -> Listed:
        """The component as listed in the first era."""
        return next(iter(self.listed.values()))

    @property
    def is_hopeless(self) -> bool:
        """True if more calls would only take time."""
        return self.silent or self.deaths >= MAX_DEATHS


@attrs.frozen
class Finding:
    """A check that failed.

    Attributes:
        check: The name of the check.
        kind: The kind of the component.
        name: Its name, URI or template; for hostile messages, the name of the message.
        case: The smallest steps that reproduce it.
        seen: What was received.
        steady: True if the steps reproduced it on a new connection.
    """

    check: str
    kind: CaseKind
    name: str
    case: Case
    seen: str
    steady: bool = True

    def is_same(self, other: "Finding") -> bool:
        """Tell whether another finding is of the same check and component.

        Wrong arguments are accepted for several causes, each with its own steps.
        """
        mine, others = [(each.check, each.kind, each.name) for each in (self, other)]
        is_one = self.check != "accepts-invalid" or self.case.steps == other.case.steps
        return mine == others and is_one

    def to_json(self) -> JSONObject:
        """Return the finding as JSON."""
        return {
            "check": self.check,
            "kind": self.kind,
            "name": self.name,
            "stateless": self.case.stateless,
            "steps": [each.to_json() for each in self.case.steps],
            "seen": self.seen,
            "steady": self.steady,
        }

    @classmethod
    def from_json(cls, value: JSON) -> "Finding":
        """Parse a finding.

        Raises:
            ValueError: The value is not a finding.
        """
        try:
            steps = tuple(Step.from_json(each) for each in value["steps"])
            case = Case(bool(value["stateless"]), steps)
            texts = [str(value[key]) for key in ("check", "name", "seen")]
            kind: CaseKind = value["kind"]
            return cls(texts[0], kind, texts[1], case, texts[2], bool(value.get("steady", True)))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a finding: {value!r}") from error
