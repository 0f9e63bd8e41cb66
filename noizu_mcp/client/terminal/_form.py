"""The fields of a form, as shown to a person (client/elicitation)."""

import json
from typing import Final, NamedTuple

from ..._errors import SchemaError
from ..._util import part_of
from ..._value import JSON, JSONObject
from ...schema import compile_schema, describe

_YES: Final = ("yes", "y", "true")
_NO: Final = ("no", "n", "false")
_TYPES: Final = {
    "string": "text",
    "boolean": "yes or no",
    "integer": "whole number",
    "number": "number",
}
_BOUNDS: Final = {
    "format": "{}",
    "minimum": "from {}",
    "maximum": "up to {}",
    "minLength": "{} letters or more",
    "maxLength": "{} letters or fewer",
    "minItems": "{} or more of them",
    "maxItems": "{} or fewer of them",
}


class FormChoice(NamedTuple):
    """One of the values that a field may have.

    Attributes:
        value: The value that is sent.
        title: The text that is shown.
    """

    value: JSON
    title: str


class FormField:
    """One field of a form.

    Args:
        name: Its key in the answer.
        schema: Its schema, of any revision.
        required: Whether it must be filled in.

    Attributes:
        choices: The values to choose from; empty if any value is allowed.
    """

    def __init__(self, name: str, schema: JSONObject, *, required: bool) -> None:
        self.name = name
        self.required = required
        self._schema = schema
        try:
            self._compiled = compile_schema(schema, trusted=False)
        except SchemaError:
            # Not a reason to refuse: the server checks the answer again.
            self._compiled = compile_schema(True)
        self._several = schema.get("type") == "array"
        self.choices = _choices(schema["items"] if self._several and "items" in schema else schema)

    @property
    def label(self) -> str:
        """The title of the field, or its name."""
        return str(self._schema.get("title") or self.name)

    @property
    def explanation(self) -> str:
        """The description of the field, its constraints, and whether it is required."""
        bounds = [
            form.format(self._schema[key]) for key, form in _BOUNDS.items() if key in self._schema
        ]
        rest = "" if self.required else "optional"
        about = ", ".join(filter(None, (self._kind(), *bounds, rest)))
        return f"{self._schema.get('description', '')} ({about})".lstrip()

    def _kind(self) -> str:
        if self.choices:
            return "several of these, with commas between" if self._several else "one of these"
        return _TYPES.get(str(self._schema.get("type")), "JSON")

    @property
    def is_yes_or_no(self) -> bool:
        """True if yes and no are the only values."""
        return self._schema.get("type") == "boolean" and not self.choices

    @property
    def shown_default(self) -> str:
        """The default, as text; empty without one."""
        default = self._schema.get("default")
        if isinstance(default, bool):
            return "yes" if default else "no"
        values = default if isinstance(default, list) else [default]
        # Keys are JSON: in Python 1 equals True, and lists have no hash.
        titles = {json.dumps(choice.value): choice.title for choice in self.choices}
        return ", ".join(
            titles.get(json.dumps(value), str(value)) for value in values if value is not None
        )

    def read(self, text: str) -> JSON:
        """Convert the text that was typed.

        Args:
            text: One line; empty for the default.

        Returns:
            The value, or None if the field is left out.

        Raises:
            ValueError: The field does not accept it; the message names the constraint.
        """
        if not text and ("default" in self._schema or not self.required):
            return self._schema.get("default")
        if not text:
            raise ValueError("this is needed")
        value = self._parse(text)
        self._check(value)
        return value

    def take(self, given: JSONObject) -> JSON:
        """Return the value from a mapping, or else the default.

        Returns:
            The value, or None if the field is left out.

        Raises:
            ValueError: The value is missing or not accepted; the message names the field.
        """
        # In scripts, null leaves an optional field out: no field of a form accepts null.
        value = given.get(self.name, self._schema.get("default"))
        if value is None and not self.required:
            return None
        try:
            self._check(value)
        except ValueError as error:
            text = str(error) if self.name in given else "the form needs it"
            raise ValueError(f"{self.name}: {text}") from None
        return value

    def _check(self, value: JSON) -> None:
        # Without their paths: the form shows one field at a time.
        problems = describe(self._compiled.violations(value))
        if problems:
            raise ValueError("; ".join(line.partition(": ")[2] for line in problems))

    def _parse(self, text: str) -> JSON:
        kind = self._schema.get("type")
        if self.choices and self._several:
            words = [word.strip() for word in text.split(",") if word.strip()]
            return [self._choose(word) for word in words]
        if self.choices:
            return self._choose(text)
        if kind == "boolean":
            if text.lower() not in (*_YES, *_NO):
                raise ValueError("answer yes or no")
            return text.lower() in _YES
        if kind == "string":
            return text
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError(f"this is no {_TYPES.get(str(kind), 'JSON')}") from None

    def _choose(self, word: str) -> JSON:
        """Find a choice by its value, or else by its title or its number."""
        # Values first, for all choices: they may be numbers.
        for choice in self.choices:
            if str(choice.value) == word:
                return choice.value
        for number, choice in enumerate(self.choices, 1):
            if word in (choice.title, str(number)):
                return choice.value
        raise ValueError(f"{word!r} is not one of the choices")


def read_fields(schema: JSON) -> list[FormField]:
    """Read the fields of a form.

    Args:
        schema: The `requestedSchema` of an elicitation, as received.
    """
    required = part_of(schema, "required", list)
    return [
        FormField(name, each, required=name in required)
        for name, each in part_of(schema, "properties", dict).items()
        if isinstance(each, dict)
    ]


def _choices(schema: JSON) -> list[FormChoice]:
    """Return the choices of a field: plain, titled, or titled as in 2025-06-18."""
    titled = part_of(schema, "oneOf", list) or part_of(schema, "anyOf", list)
    if titled:
        return [
            FormChoice(each["const"], str(each.get("title", each["const"])))
            for each in titled
            if isinstance(each, dict) and "const" in each
        ]
    values, names = part_of(schema, "enum", list), part_of(schema, "enumNames", list)
    names = names if len(names) == len(values) else values
    return [FormChoice(value, str(name)) for value, name in zip(values, names, strict=True)]


def without_none(values: JSONObject) -> JSONObject:
    """Remove the fields without a value."""
    return {name: value for name, value in values.items() if value is not None}
