"""The changes between two contracts, and their effect on users of the server."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Literal

import attrs

from ..._nearest import nearest
from ..._util import UNSET, Unset, final, json_text
from ..._value import JSON, JSONObject, Value
from ._catalogue import KINDS, ListKind
from ._schemas import SchemaUse, compare_schemas

ChangeEffect = Literal["breaking", "visible", "compatible"]
#: From worst to mildest.
EFFECTS: Final[tuple[ChangeEffect, ...]] = ("breaking", "visible", "compatible")

#: Characters of a value in the text of a change.
_MAX_SHOWN: Final = 80
#: Characters of an example for people.
_MAX_EXAMPLE: Final = 500


@final
@attrs.frozen(eq=False, repr=False)
class Change(Value):
    """A difference between two contracts.

    Attributes:
        effect: `breaking`: a valid call fails, or its result was not promised. `visible`: calls
            still work, and a model reads something else. `compatible`: neither; the server offers
            more than before.
        kind: `tools`, `resources`, `templates` or `prompts`; empty for the server itself.
        name: The name or the URI of the component; empty for the server itself.
        member: The member that has changed, with a JSON pointer for a place in a schema; empty for
            the whole component.
        text: The change, in a few words.
        example: A value that shows that a change of a schema is breaking: arguments that were
            accepted, or a result that was not possible; else `UNSET`.
        reasons: One line for each rule that the example breaks.
    """

    effect: ChangeEffect
    kind: ListKind | Literal[""]
    name: str
    member: str
    text: str
    example: JSON | Unset = UNSET
    reasons: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The component and its member, for people."""
        words = (self.kind.removesuffix("s") or "server", self.name, self.member)
        return " ".join(filter(None, words))

    @property
    def shown_example(self) -> str:
        """The example as JSON, shortened for people."""
        return _short(self.example, _MAX_EXAMPLE)

    def to_json(self) -> JSONObject:
        """Return the change for programs."""
        wire: JSONObject = {
            "effect": self.effect,
            "kind": self.kind,
            "name": self.name,
            "member": self.member,
            "text": self.text,
        }
        if self.example is not UNSET:
            wire["example"] = self.example
            wire["reasons"] = list(self.reasons)
        return wire

    def __str__(self) -> str:
        text = f"{self.effect}: {self.place}: {self.text}"
        if self.example is not UNSET:
            text += f"; example: {self.shown_example} ({'; '.join(self.reasons)})"
        return text


def compare(old: JSONObject, new: JSONObject) -> tuple[Change, ...]:
    """Find the changes between two contracts.

    Args:
        old: The older contract; see `fetch`. Kinds that it does not have are not compared.
        new: The newer one.

    Returns:
        The changes, the worst first.
    """
    found = list(_compare_texts("", "", old, new, ("instructions",)))
    for kind in KINDS:
        if kind in old:
            found += _compare_components(kind, old[kind], new.get(kind, {}))
    return tuple(sorted(found, key=lambda change: EFFECTS.index(change.effect)))


def _compare_components(
    kind: ListKind, old: Mapping[str, JSONObject], new: Mapping[str, JSONObject]
) -> Iterator[Change]:
    added = [name for name in new if name not in old]
    for name, before in old.items():
        if name in new:
            yield from _COMPARE[kind](name, before, new[name])
            continue
        meant = nearest(name, added)
        hint = f"; was it renamed to {meant}?" if meant else ""
        yield Change("breaking", kind, name, "", f"it is gone{hint}")
    for name in added:
        yield Change("compatible", kind, name, "", "it is new")


def _compare_tools(name: str, old: JSONObject, new: JSONObject) -> Iterator[Change]:
    yield from _compare_schema(
        "input", name, old.get("inputSchema", {}), new.get("inputSchema", {})
    )
    before, after = (each.get("outputSchema") for each in (old, new))
    if before is not None and after is not None:
        yield from _compare_schema("output", name, before, after)
    elif after is not None:
        yield Change("compatible", "tools", name, "outputSchema", "its results have a schema now")
    elif before is not None:
        text = "its results have no schema any more"
        yield Change("breaking", "tools", name, "outputSchema", text)
    yield from _compare_execution(name, old.get("execution", {}), new.get("execution", {}))
    yield from _compare_rest("tools", name, old, new, ("inputSchema", "outputSchema", "execution"))


def _compare_execution(name: str, old: JSONObject, new: JSONObject) -> Iterator[Change]:
    """Compare how a tool may be called: directly, as a task, or both (2025-11-25)."""
    before, after = (each.get("taskSupport", "forbidden") for each in (old, new))
    if before != after:
        # "optional" allows both ways.
        effect: ChangeEffect = "compatible" if after == "optional" else "breaking"
        yield Change(effect, "tools", name, "execution/taskSupport", _difference(before, after))


def _compare_schema(
    direction: SchemaUse, name: str, old: JSONObject, new: JSONObject
) -> Iterator[Change]:
    found = compare_schemas(direction, old, new)
    member = f"{direction}Schema"
    if found.text:
        effect: ChangeEffect = "breaking" if found.is_breaking else "compatible"
        yield Change(effect, "tools", name, member, found.text, found.example, tuple(found.reasons))
    for place in found.added:
        yield Change("compatible", "tools", name, f"{member}{place}", "it is new")
    for place in found.removed:
        # If it is refused now, that is a separate change.
        yield Change("visible", "tools", name, f"{member}{place}", "it is gone")
    for place, before, after in found.annotations:
        yield Change("visible", "tools", name, f"{member}{place}", _difference(before, after))


def _compare_prompts(name: str, old: JSONObject, new: JSONObject) -> Iterator[Change]:
    change = partial(Change, kind="prompts", name=name)
    before, after = (
        {each["name"]: each for each in prompt.get("arguments", ())} for prompt in (old, new)
    )
    for key in {**before, **after}:
        member = f"arguments/{key}"
        is_needed = after.get(key, {}).get("required", False)
        was_needed = before.get(key, {}).get("required", False)
        if key not in after:
            yield change(effect="breaking", member=member, text="it is gone")
        elif is_needed and not was_needed:
            text = "it is new, and required" if key not in before else "it is required now"
            yield change(effect="breaking", member=member, text=text)
        elif key not in before:
            yield change(effect="compatible", member=member, text="it is new")
        elif was_needed and not is_needed:
            yield change(effect="compatible", member=member, text="it may be left out now")
        if key in before and key in after:
            texts = ("title", "description")
            yield from _compare_texts(
                "prompts", name, before[key], after[key], texts, prefix=f"{member}/"
            )
    yield from _compare_rest("prompts", name, old, new, ("arguments",))


def _compare_resources(
    kind: ListKind, name: str, old: JSONObject, new: JSONObject
) -> Iterator[Change]:
    before, after = old.get("mimeType"), new.get("mimeType")
    if before != after:
        # Programs interpret the contents by their media type.
        effect: ChangeEffect = "compatible" if before is None else "breaking"
        yield Change(effect, kind, name, "mimeType", _difference(before, after))
    yield from _compare_rest(kind, name, old, new, ("mimeType",))


def _compare_rest(
    kind: ListKind, name: str, old: JSONObject, new: JSONObject, others: tuple[str, ...]
) -> Iterator[Change]:
    """Compare the members without a rule of their own, which models and people read."""
    members = [key for key in {**old, **new} if key not in others]
    yield from _compare_texts(kind, name, old, new, members)


def _compare_texts(
    kind: ListKind | Literal[""],
    name: str,
    old: JSONObject,
    new: JSONObject,
    members: Iterable[str],
    *,
    prefix: str = "",
) -> Iterator[Change]:
    for key in members:
        before, after = old.get(key), new.get(key)
        if before != after:
            yield Change("visible", kind, name, f"{prefix}{key}", _difference(before, after))


def _difference(before: JSON, after: JSON) -> str:
    """Describe an old and a new value; None means missing."""
    if before is None:
        return f"it is new: {_short(after)}"
    if after is None:
        return f"it is gone: {_short(before)}"
    return f"{_short(after)}, was {_short(before)}"


def _short(value: JSON, limit: int = _MAX_SHOWN) -> str:
    text = json_text(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_COMPARE: Final[Mapping[ListKind, Callable[[str, JSONObject, JSONObject], Iterator[Change]]]] = {
    "tools": _compare_tools,
    "resources": partial(_compare_resources, "resources"),
    "templates": partial(_compare_resources, "templates"),
    "prompts": _compare_prompts,
}
