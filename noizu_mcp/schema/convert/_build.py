"""Nodes → a builder: generated code that turns accepted JSON values into typed values.

The code checks nothing, for the schema has accepted the value before. Each class gets one function,
compiled once when the form is read; its source is kept where tracebacks and debuggers look for it.
"""

import linecache
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from enum import Enum
from functools import partial
from itertools import count, repeat
from typing import Any
from weakref import finalize

from ..._json_schema import TYPES
from ..declare import _nodes as nodes
from ..jsonschema._values import type_of
from ..jsonschema._violation import show
from ._dump import ATOMS, dump_value

Build = Callable[[object], object]
Test = Callable[[object], bool]

# Files of generated code have names of their own, as the cache of source lines needs.
_numbers = count()
# Types of defaults that cannot change, so that every instance may hold the same one.
_IMMUTABLE = (str, int, float, bool, type(None), bytes, frozenset, Enum)


class ValueBuilder:
    """Writes the functions that build one form.

    Args:
        name: The name of the form, for the file name that tracebacks show.
        compile_test: Returns a test of whether a value fits a node. It is used where the JSON type
            of a value does not decide between the branches of a union.

    Attributes:
        names: The constants and functions of the generated code.
        lines: The generated code.
        objects: The function of each object, by the identity of its node.
        unions: The branches of each union that needs a choice, by the identity of its node.
        defaults: The fields with a default that is JSON, each with that JSON.
    """

    def __init__(self, name: str, compile_test: Callable[[nodes.Node], Test]) -> None:
        self._name = name
        self._compile_test = compile_test
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.objects: dict[int, str] = {}
        self.unions: dict[int, list[tuple[Test, nodes.Node]]] = {}
        self.defaults: list[tuple[nodes.ObjectField, object]] = []
        self._fresh = count()

    def compile(self, root: nodes.Node) -> Build | None:
        """Return the builder of a form; None if every value stays as it is."""
        self.names.update(
            MISSING=nodes.MISSING,
            new=object.__new__,
            copy=deepcopy,
            whole=int,
            real=_real,
            dump=dump_value,
            is_json=is_json,
        )
        made = self.value(root, "v")
        if made is None:
            return None
        self.lines += ["def build(v):", f"    return {made}"]
        source = "\n".join(self.lines) + "\n"
        file = f"<noizu_mcp build {self._name} {next(_numbers)}>"
        exec(compile(source, file, "exec"), self.names)  # the text is made above
        # The outermost function of an object is the builder itself: one call less.
        build: Build = self.names[self.objects.get(id(root), "build")]
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        finalize(build, linecache.cache.pop, file, None).atexit = False
        return build

    def of(self, node: nodes.Object) -> Build:
        """Return the compiled builder of an object inside the form."""
        build: Build = self.names[self.objects[id(node)]]
        return build

    def default_problems(self) -> Iterator[tuple[nodes.ObjectField, str]]:
        """Build every default that is JSON once; yield the fields whose default cannot be built."""
        for field, value in self.defaults:
            build = ValueBuilder(self._name, self._compile_test).compile(field.node)
            try:
                build and build(deepcopy(value))
            except RecursionError:
                yield field, "default contains itself, so that building it never ends; use | None"
            except Exception as error:
                yield field, f"default {show(value)} cannot be used: {error}; change it"

    def value(self, node: nodes.Node, name: str) -> str | None:
        """Return an expression for the typed value of a variable; None if it stays as it is."""
        writers: dict[type, Callable[[Any, str], str | None]] = {
            nodes.Scalar: self._scalar,
            nodes.ScalarChoice: self._choice,
            nodes.Array: self._array,
            nodes.Tuple: self._tuple,
            nodes.Map: self._map,
            nodes.Union: self._union,
            nodes.Object: self._object,
            nodes.Pydantic: self._pydantic,
        }
        writer = writers.get(type(node))
        return writer(node, name) if writer is not None else None

    def _constant(self, prefix: str, value: object) -> str:
        name = f"{prefix}{next(self._fresh)}"
        self.names[name] = value
        return name

    def _scalar(self, node: nodes.Scalar, name: str) -> str | None:
        if isinstance(node.cast, nodes.Format):
            return f"{self._constant('parse', node.cast.parse)}({name})"
        if node.cast == "int":
            return f"({name} if {name}.__class__ is int else whole({name}))"
        if node.cast == "float":
            return f"({name} if {name}.__class__ is float else real({name}))"
        return None

    def _pydantic(self, node: nodes.Pydantic, name: str) -> str:
        return f"{self._constant('check', node.check)}({name})"

    def _choice(self, node: nodes.ScalarChoice, name: str) -> str | None:
        if all(type(result) is str or result is None for result in node.results):
            return None
        # 1 and True are one key of a dict, and two values in JSON.
        pairs = zip(node.values, node.results, strict=True)
        table = {(type(value) is bool, value): result for value, result in pairs}
        return f"{self._constant('choice', table)}[{name}.__class__ is bool, {name}]"

    def _array(self, node: nodes.Array, name: str) -> str | None:
        item = f"i{next(self._fresh)}"
        made = self.value(node.item, item)
        if made is None:
            return None if node.collection is list else f"{node.collection.__name__}({name})"
        if node.collection is list:
            return f"[{made} for {item} in {name}]"
        return f"{node.collection.__name__}([{made} for {item} in {name}])"

    def _tuple(self, node: nodes.Tuple, name: str) -> str:
        parts: list[str] = []
        for index, item in enumerate(node.items):
            variable = f"i{next(self._fresh)}"
            made = self.value(item, variable)
            part = f"{name}[{index}]"
            parts.append(part if made is None else f"[{made} for {variable} in ({part},)][0]")
        return f"({''.join(f'{part}, ' for part in parts)})"

    def _map(self, node: nodes.Map, name: str) -> str | None:
        key, item = f"k{next(self._fresh)}", f"i{next(self._fresh)}"
        made_key, made = self.value(node.key, key), self.value(node.value, item)
        if made_key is None and made is None:
            return None
        return f"{{{made_key or key}: {made or item} for {key}, {item} in {name}.items()}}"

    def _union(self, node: nodes.Union, name: str) -> str | None:
        options = node.options
        if len(options) == 1:
            made = self.value(options[0], name)
            return made and f"(None if {name} is None else {made})"
        branches = [self.value(option, "v") for option in options]
        if not any(branches):
            return None
        tests = self._tests(options)
        self.unions[id(node)] = list(zip(tests, options, strict=True))
        builds = [made and self._function(made) for made in branches]
        pick = _picker(list(zip(tests, builds, strict=True)), self.names)
        return f"{self._constant('pick', pick)}({name})"

    def _function(self, made: str) -> str:
        """Write a function that returns an expression of `v`; return its name."""
        name = f"build{next(self._fresh)}"
        self.lines += [f"def {name}(v):", f"    return {made}", ""]
        return name

    def _tests(self, options: list[nodes.Node]) -> list[Test]:
        """Return a test for each branch of a union: of the JSON type, where that decides."""
        kinds = [_kinds(option) for option in options]
        tests: list[Test] = []
        for index, (option, own) in enumerate(zip(options, kinds, strict=True)):
            others = frozenset().union(*kinds[:index], *kinds[index + 1 :])
            tests.append(self._compile_test(option) if own & others else partial(_is_of, own))
        return tests

    def _object(self, node: nodes.Object, name: str) -> str:
        function = self.objects.get(id(node))
        if function is None:
            name_of = node.name if node.name.isidentifier() else "object"
            function = self.objects[id(node)] = f"build_{next(self._fresh)}_{name_of}"
            self.lines += self._body(node, function)
        return f"{function}({name})"

    def _body(self, node: nodes.Object, function: str) -> list[str]:
        """Return the function that builds an object, by how it is made."""
        fields = [field for field in node.fields if field.keyword is not None]
        # A Schema class without hooks is filled in past its constructor, which is twice as fast.
        direct = node.make == "direct"
        store, steps = "made", ["made = {}"]
        if direct:
            cls = self._constant("cls", node.cls)
            store, steps = "state", [f"made = new({cls})", "state = made.__dict__"]
        if any(not field.required for field in fields):
            steps.insert(0, "get = v.get")
        for field in fields:
            target = f"{store}[{field.attribute if direct else field.keyword!r}]"
            # An absent key of a TypedDict stays absent; a default that needs the instance is left
            # to the constructor, so that its keyword must be absent.
            if field.takes_self or (node.make == "dict" and not field.required):
                steps.append(f"if {field.name!r} in v:")
                steps += (f"    {line}" for line in self._sent(field, target))
            else:
                steps += self._take(field, target)
        made = f"{self._constant('cls', node.cls)}(**made)" if node.make == "call" else "made"
        return [f"def {function}(v):", *(f"    {step}" for step in [*steps, f"return {made}"]), ""]

    def _sent(self, field: nodes.ObjectField, target: str) -> list[str]:
        """Return the lines that take over a field that was sent."""
        variable = f"x{next(self._fresh)}"
        made = self.value(field.node, variable)
        sent = f"v[{field.name!r}]"
        if made is None:
            return [f"{target} = {sent}"]
        return [f"{variable} = {sent}", f"{target} = {made}"]

    def _take(self, field: nodes.ObjectField, target: str) -> list[str]:
        """Return the lines that take over a field: the value sent, its default, or None."""
        if field.required:
            return self._sent(field, target)
        name, variable = repr(field.name), f"x{next(self._fresh)}"
        made = self.value(field.node, variable)
        if not field.has_default:
            if made is None:
                return [f"{target} = get({name})"]
            # Null, where it fits, and absence are both None; unless null is an enum member.
            if _null_is_a_member(field.node):
                made = f"{made} if {name} in v else None"
            else:
                made = f"None if {variable} is None else {made}"
            return [f"{variable} = get({name})", f"{target} = {made}"]
        if made is not None and field.factory is None and is_json(field.node, field.default):
            # The default takes the place of the value that was not sent, and is built like it.
            value = dump_value(field.default)
            self.defaults.append((field, value))
            default = self._constant("default", value)
            sent = f"get({name}, {default})"
            if value.__class__ not in ATOMS:
                sent = f"v[{name}] if {name} in v else copy({default})"
            return [f"{variable} = {sent}", f"{target} = {made}"]
        default = self._default(field, made)
        if made is None and default.isidentifier():
            return [f"{target} = get({name}, {default})"]
        made = f"{default} if {variable} is MISSING else {made or variable}"
        return [f"{variable} = get({name}, MISSING)", f"{target} = {made}"]

    def _default(self, field: nodes.ObjectField, made: str | None) -> str:
        """Return an expression for a default; a name if it is the same object every time."""
        if field.factory is None:
            name = self._constant("default", field.default)
            return name if is_immutable(field.default) else f"copy({name})"
        factory = f"{self._constant('factory', field.factory)}()"
        if made is None:
            return factory
        # Only the call shows if a factory returns JSON.
        build = self._function(self.value(field.node, "v") or "v")
        node = self._constant("node", field.node)
        fresh = f"f{next(self._fresh)}"
        return f"({build}(dump({fresh})) if is_json({node}, {fresh} := {factory}) else {fresh})"


def _is_of(kinds: frozenset[str], value: object) -> bool:
    return type_of(value) in kinds


def _null_is_a_member(node: nodes.Node) -> bool:
    """Tell if null stands for an enum member, not for None."""
    if not isinstance(node, nodes.ScalarChoice):
        return False
    pairs = zip(node.values, node.results, strict=True)
    return any(result is not None for value, result in pairs if value is None)


def is_immutable(value: object) -> bool:
    """Tell if a default can be shared by all instances."""
    if isinstance(value, tuple):
        return all(map(is_immutable, value))
    return isinstance(value, _IMMUTABLE)


def _picker(pairs: list[tuple[Test, str | None]], names: dict[str, Any]) -> Build:
    def pick(value: object) -> Any:
        for test, build in pairs:
            if test(value):
                return value if build is None else names[build](value)
        if value is None:
            return None
        # The schema accepted the value, and each branch has a type that cannot parse it.
        raise ValueError("no type of the union fits")

    return pick


def _kinds(node: nodes.Node) -> frozenset[str]:
    """Return the JSON types that a value of a node may have, as `type_of` tells them."""
    if isinstance(node, nodes.Scalar):
        found = {node.kind}
    elif isinstance(node, nodes.ScalarChoice):
        found = set(map(type_of, node.values))
    elif isinstance(node, (nodes.Array, nodes.Tuple)):
        found = {"array"}
    elif isinstance(node, (nodes.Map, nodes.Object)):
        found = {"object"}
    elif isinstance(node, nodes.Pydantic) and "type" in node.schema:
        kinds = node.schema["type"]
        found = {kinds} if isinstance(kinds, str) else set(kinds)
    else:
        found = set(TYPES)
    # 1.0 is an integer, and 1 a number.
    numbers = {"integer", "number"}
    return frozenset(found if found.isdisjoint(numbers) else found | numbers)


def _real(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        # JSON has no largest number; beyond float, the integer says it exactly.
        return value


# The type of a default that a client may send, and that is delivered as another.
_SENT_FOR: Mapping[str, type] = {"text": str, "int": float, "float": int}


def is_json(node: nodes.Node, value: object) -> bool:
    """Tell if a default is JSON, at least in part, where the typed value is something else.

    A mapping stands for an instance, text for a date or an enum member, 1 for 1.0. A default that
    is an instance, a member or a date already is delivered unchanged.
    """
    if isinstance(node, nodes.Union):
        return any(is_json(option, value) for option in node.options)
    if isinstance(node, (nodes.ScalarChoice, nodes.Pydantic)):
        results = node.results if isinstance(node, nodes.ScalarChoice) else ()
        kinds = ATOMS if isinstance(node, nodes.ScalarChoice) else {*ATOMS, dict, list}
        delivered = any(type(each) is type(value) and each == value for each in results)
        return not delivered and value is not None and type(value) in kinds
    if isinstance(node, nodes.Scalar):
        cast = "text" if isinstance(node.cast, nodes.Format) else node.cast or ""
        return type(value) is _SENT_FOR.get(cast)
    if isinstance(value, Mapping):
        return _is_json_mapping(node, value)
    if isinstance(value, (list, tuple, AbstractSet)):
        return _is_json_list(node, value)
    return False


def _is_json_mapping(node: nodes.Node, value: Mapping[object, object]) -> bool:
    if isinstance(node, nodes.Map):
        items = value.items()
        return any(is_json(node.key, key) or is_json(node.value, item) for key, item in items)
    if not isinstance(node, nodes.Object):
        return False
    # The typed value of a TypedDict is a mapping too.
    inside = ((field.node, value.get(field.name)) for field in node.fields)
    return node.make != "dict" or any(is_json(inner, item) for inner, item in inside)


def _is_json_list(node: nodes.Node, value: Any) -> bool:
    if not isinstance(node, (nodes.Array, nodes.Tuple)):
        return False
    if type(value) is list and (isinstance(node, nodes.Tuple) or node.collection is not list):
        return True
    own = node.items if isinstance(node, nodes.Tuple) else repeat(node.item)
    return any(is_json(inner, item) for inner, item in zip(own, value, strict=False))
