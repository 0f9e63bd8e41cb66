"""Invalid classes: each is refused by its statement, with every problem and its place."""

from collections.abc import Callable

import pytest

# A class body, and its complete `DefinitionError`. The first line of the body is line 4.
CASES = {
    "unknown_option": (
        ("class Bad(Tool, catgory='x'):\n    def call(self): ..."),
        "case.py:4: Bad.catgory: unknown option; did you mean 'category'?",
    ),
    "unknown_option_far": (
        ("class Bad(Tool, zzzzzz=1):\n    def call(self): ..."),
        (
            "case.py:4: Bad.zzzzzz: unknown option; there are: name, title, description, "
            "category, annotations, icons, meta, hidden, visible, timeout, max_concurrency, "
            "max_queue, max_result_bytes, "
            "coerce, requires, available, loop, inline, strict, task, starts_task, restartable, "
            "input, output, input_schema, "
            "output_schema, abstract"
        ),
    ),
    "keyword_and_attribute": (
        ("class Bad(Tool, title='a'):\n    title = 'b'\n    def call(self): ..."),
        "case.py:5: Bad.title: given as a class keyword and as an attribute; keep one of them",
    ),
    "name_with_space": (
        ("class Bad(Tool, name='get weather'):\n    def call(self): ..."),
        (
            "case.py:4: Bad.name: must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', got "
            "'get weather'"
        ),
    ),
    "name_empty": (
        ("class Bad(Tool):\n    name = ''\n    def call(self): ..."),
        "case.py:5: Bad.name: must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', got ''",
    ),
    "name_too_long": (
        ("class Bad(Tool, name='x' * 129):\n    def call(self): ..."),
        (
            "case.py:4: Bad.name: must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', got "
            "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
        ),
    ),
    "name_from_class": (
        ("class Größe(Tool):\n    def call(self): ..."),
        "case.py:4: Größe: the class gives the tool an invalid name: 'größe'; write name=…",
    ),
    "blank_description": (
        ("class Bad(Tool):\n    description = ' '\n    def call(self): ..."),
        "case.py:5: Bad.description: must be a text that is not empty, got ' '",
    ),
    "hidden_truthy": (
        ("class Bad(Tool, hidden=1):\n    def call(self): ..."),
        "case.py:4: Bad.hidden: must be True or False, got 1",
    ),
    "timeout_text": (
        ("class Bad(Tool, timeout='10'):\n    def call(self): ..."),
        "case.py:4: Bad.timeout: must be seconds above 0, or None for no limit, got '10'",
    ),
    "timeout_zero": (
        ("class Bad(Tool):\n    timeout = 0\n    def call(self): ..."),
        "case.py:5: Bad.timeout: must be seconds above 0, or None for no limit, got 0",
    ),
    "timeout_bool": (
        ("class Bad(Tool, timeout=True):\n    def call(self): ..."),
        "case.py:4: Bad.timeout: must be seconds above 0, or None for no limit, got True",
    ),
    "concurrency_zero": (
        ("class Bad(Tool, max_concurrency=0):\n    def call(self): ..."),
        (
            "case.py:4: Bad.max_concurrency: must be a whole number above 0, or None for no "
            "limit, got 0"
        ),
    ),
    "concurrency_float": (
        ("class Bad(Tool, max_concurrency=1.5):\n    def call(self): ..."),
        (
            "case.py:4: Bad.max_concurrency: must be a whole number above 0, or None for no "
            "limit, got 1.5"
        ),
    ),
    "annotation_unknown": (
        ("class Bad(Tool, annotations={'readonly_hint': True}):\n    def call(self): ..."),
        (
            "case.py:4: Bad.annotations: unknown annotation 'readonly_hint'; did you mean "
            "'read_only_hint'?"
        ),
    ),
    "annotation_camel": (
        ("class Bad(Tool):\n    annotations = {'readOnlyHint': True}\n    def call(self): ..."),
        (
            "case.py:5: Bad.annotations: unknown annotation 'readOnlyHint'; did you mean "
            "'read_only_hint'?"
        ),
    ),
    "annotation_type": (
        ("class Bad(Tool, annotations={'read_only_hint': 1}):\n    def call(self): ..."),
        ("case.py:4: Bad.annotations: Annotations.read_only_hint: expected true or false, got 1"),
    ),
    "annotation_list": (
        ("class Bad(Tool, annotations=['read_only_hint']):\n    def call(self): ..."),
        (
            "case.py:4: Bad.annotations: must be Annotations(…) or a mapping of its fields, got "
            "['read_only_hint']"
        ),
    ),
    "icons_text": (
        ("class Bad(Tool, icons=['a.png']):\n    def call(self): ..."),
        "case.py:4: Bad.icons: must be a list of Icon(src), got ['a.png']",
    ),
    "icons_none": (
        ("class Bad(Tool, icons=None):\n    def call(self): ..."),
        "case.py:4: Bad.icons: must be a list of Icon(src), got None",
    ),
    "meta_list": (
        ("class Bad(Tool, meta=[1]):\n    def call(self): ..."),
        "case.py:4: Bad.meta: must be a mapping, got [1]",
    ),
    "meta_key": (
        ("class Bad(Tool, meta={'a b': 1}):\n    def call(self): ..."),
        "case.py:4: Bad.meta: 'a b' is not a valid key; write a word or 'com.example/word'",
    ),
    "meta_reserved": (
        ("class Bad(Tool, meta={'com.mcp.tools/a': 1}):\n    def call(self): ..."),
        (
            "case.py:4: Bad.meta: 'com.mcp.tools/a' is reserved by the protocol; use a prefix of "
            "your own domain"
        ),
    ),
    "meta_value": (
        ("class Bad(Tool, meta={'a': {1}}):\n    def call(self): ..."),
        (
            "case.py:4: Bad.meta: must be a mapping of JSON values: Object of type set is not "
            "JSON serializable"
        ),
    ),
    "category_number": (
        ("class Bad(Tool, category=3):\n    def call(self): ..."),
        "case.py:4: Bad.category: must be a text that is not empty, got 3",
    ),
    "abstract_name": (
        ("class Base(Tool, abstract=True, name='base'):\n    def call(self): ..."),
        "case.py:4: Base.name: an abstract base is not a tool; leave it to the subclasses",
    ),
    "inline_async": (
        ("class Bad(Tool, inline=True):\n    async def call(self): ..."),
        (
            "case.py:4: Bad.inline: is for a sync method;"
            " an async one runs where it is called anyway"
        ),
    ),
    "no_call": (
        ("class Bad(Tool):\n    pass"),
        (
            "case.py:4: Bad: a tool needs a method: async def call(self, args, ctx); a base for "
            "tools needs abstract=True"
        ),
    ),
    "call_three": (
        ("class Bad(Tool):\n    def call(self, a, b, c): ..."),
        (
            "case.py:5: Bad.call.a: has no annotation; write a: str\n"
            "case.py:5: Bad.call.b: has no annotation; write b: str\n"
            "case.py:5: Bad.call.c: has no annotation; write c: str"
        ),
    ),
    "call_var": (
        ("class Bad(Tool):\n    def call(self, *args): ..."),
        (
            "case.py:5: Bad.call: takes *args; name each parameter, or write def "
            "call(self, args, ctx)"
        ),
    ),
    "call_kwargs": (
        ("class Bad(Tool):\n    def call(self, **kwargs): ..."),
        (
            "case.py:5: Bad.call: takes **kwargs; name each parameter, or write def "
            "call(self, args, ctx)"
        ),
    ),
    "call_keyword_only": (
        ("class Bad(Tool):\n    def call(self, *, query): ..."),
        (
            "case.py:5: Bad.call.query: has no annotation; write query: str, or call "
            "it args to take the whole input"
        ),
    ),
    "call_no_self": (
        ("class Bad(Tool):\n    def call(): ..."),
        "case.py:5: Bad.call: takes no self; write def call(self, args, ctx)",
    ),
    "call_star_self": (
        ("class Bad(Tool):\n    def call(*args): ..."),
        "case.py:5: Bad.call: takes no self; write def call(self, args, ctx)",
    ),
    "call_no_function": (
        ("class Bad(Tool):\n    call = 3"),
        "case.py:5: Bad.call: must be a method, got 3",
    ),
    "call_class": (
        ("class Bad(Tool):\n    class call: ..."),
        "case.py:5: Bad.call: must be a method, got the class call",
    ),
    "second_default": (
        ("class Bad(Tool):\n    def call(self, args, limit=3): ..."),
        (
            "case.py:5: Bad.call.limit: stands beside args, which takes the whole "
            "input; leave it out, or rename args: then each parameter is one "
            "property of the input"
        ),
    ),
    "call_generator": (
        ("class Bad(Tool):\n    def call(self):\n        yield 1"),
        "case.py:5: Bad.call: yields, but an answer is one value; return a list",
    ),
    "call_async_generator": (
        ("class Bad(Tool):\n    async def call(self):\n        yield 1"),
        "case.py:5: Bad.call: yields, but an answer is one value; return a list",
    ),
    "subclass_of_concrete": (
        ("class Good(Tool):\n    def call(self): ...\nclass Bad(Good):\n    pass"),
        (
            "case.py:6: Bad: a subclass of the tool Good needs its own name; write name=…, "
            "or mark Good with abstract=True"
        ),
    ),
    "mcp_in_tool": (
        ("class Bad(Tool):\n    def call(self): ...\n    @mcp\n    def other(self): ..."),
        "case.py:7: Bad.other: @mcp marks the tools of a Toolkit; a Tool has one method, call",
    ),
    "input_twice": (
        (
            "class Bad(Tool):\n"
            "    input = {}\n"
            "    class Input(Schema):\n"
            "        a: int\n"
            "    def call(self, args): ..."
        ),
        "case.py:6: Bad.Input: input and the class Input both declare it; keep one of them",
    ),
    "input_no_class": (
        ("class Bad(Tool):\n    Input = {'a': str}\n    def call(self, args): ..."),
        "case.py:5: Bad.Input: must be a class; write input = … for {'a': <class 'str'>}",
    ),
    "input_list_root": (
        ("class Bad(Tool):\n    input_schema = {'type': 'array'}\n    def call(self, args): ..."),
        (
            'case.py:5: Bad.input_schema: the root of an input must be of type "object"; declare '
            "a class with fields, a mapping of fields, or a schema with that type"
        ),
    ),
    "input_annotation": (
        ("class Bad(Tool):\n    def call(self, args: int): ..."),
        (
            'case.py:5: Bad.call.args: the root of an input must be of type "object"; declare a '
            "class with fields, a mapping of fields, or a schema with that type"
        ),
    ),
    "input_unresolved": (
        ("class Bad(Tool):\n    def call(self, args: 'Missing'): ..."),
        (
            "case.py:5: Bad.call: the annotation of its arguments names something that is not "
            "there when the class is made; import it, not for type checkers alone, or declare a "
            "class Input"
        ),
    ),
    "input_typo": (
        (
            "class Bad(Tool):\n"
            "    input_schema = {\n"
            "        'type': 'object',\n"
            "        'properties': {'q': {'type': 'string', 'minLenght': 2}},\n"
            "    }\n"
            "    def call(self, args): ..."
        ),
        (
            'case.py:7: Bad.input_schema.properties.q.minLenght: no such keyword; "minLength" '
            'is, and "x-minLenght" is free for your own use'
        ),
    ),
    "input_text": (
        (
            "class Bad(Tool):\n"
            '    input_schema = \'\'\'{"type": "object",\n'
            "  oops}'''\n"
            "    def call(self, args): ..."
        ),
        (
            "case.py:5: Bad.input_schema: invalid JSON text: Expecting property name enclosed in "
            "double quotes (line 2, column 3 of the text)"
        ),
    ),
    "input_none": (
        ("class Bad(Tool, input_schema=None):\n    def call(self, args): ..."),
        "case.py:4: Bad.input_schema: expected a JSON Schema or JSON text, got null",
    ),
    "input_mixture": (
        (
            "class Bad(Tool):\n"
            "    input = {'a': f.string(), 'b': {'type': 'string'}}\n"
            "    def call(self, args): ..."
        ),
        (
            "case.py:5: Bad.input: a mixture of fields and something else (b); write fields "
            "only, or a schema"
        ),
    ),
    "input_header": (
        (
            "class Bad(Tool):\n"
            "    input_schema = {'type': 'object', 'properties': {'a': {'type': 'number', "
            "'x-mcp-header': 'A'}}}\n"
            "    def call(self, args): ..."
        ),
        (
            "case.py:5: Bad.input_schema.properties.a.x-mcp-header: header needs a field of type "
            "string, integer or boolean (not null), not number"
        ),
    ),
    "field_default": (
        (
            "class Bad(Tool):\n"
            "    class Input(Schema):\n"
            "        query: str\n"
            "        limit: int = field(default=60, max=50)\n"
            "    def call(self, args): ..."
        ),
        ("case.py:7: Bad.Input.limit: default 60 is above max 50; change the default or the field"),
    ),
    "field_option": (
        (
            "class Bad(Tool):\n"
            "    class Input(Schema):\n"
            "        query: str = field(min=2)\n"
            "    def call(self, args): ..."
        ),
        "case.py:6: Bad.Input.query: min does not belong to string; write min_length",
    ),
    "data_field_option": (
        (
            "class Bad(Tool):\n"
            "    input = {\n"
            "        'a': f.string(),\n"
            "        'b': f.enum(),\n"
            "    }\n"
            "    def call(self, args): ..."
        ),
        'case.py:7: Bad.input.b: f.enum needs values; write f.enum("plain", "loud")',
    ),
    "output_twice": (
        (
            "class Bad(Tool):\n"
            "    output = {}\n"
            "    class Output(Schema):\n"
            "        a: int\n"
            "    def call(self): ..."
        ),
        "case.py:6: Bad.Output: output and the class Output both declare it; keep one of them",
    ),
    "output_bad": (
        ("class Bad(Tool, output_schema={'type': 'strin'}):\n    def call(self): ..."),
        (
            "case.py:4: Bad.output_schema.type: takes one of null, boolean, object, array, "
            'number, string, integer, or a list of them, not "strin"'
        ),
    ),
    "return_no_json": (
        ("class Bad(Tool):\n    def call(self) -> object.__class__: ..."),
        (
            "case.py:5: Bad.call.return: type has no JSON Schema; use str, int, float, bool, an "
            "Enum, Literal, list, dict, a Schema or attrs class, a dataclass, a TypedDict "
            "or a pydantic model"
        ),
    ),
    "return_stream": (
        ("class Bad(Tool):\n    def call(self) -> memoryview: ..."),
        (
            "case.py:5: Bad.call.return: memoryview has no JSON Schema; use str, int, float, "
            "bool, an Enum, Literal, list, dict, a Schema or attrs class, a dataclass, a "
            "TypedDict or a pydantic model"
        ),
    ),
    "return_unresolved": (
        ("class Bad(Tool):\n    def call(self) -> 'Missing': ..."),
        (
            "case.py:5: Bad.call: the annotation of its result names something that is not there "
            "when the class is made; import it, not for type checkers alone, or declare a class "
            "Output"
        ),
    ),
    "kit_empty": (
        ("class Kit(Toolkit):\n    def call(self): ..."),
        "case.py:4: Kit: a kit needs a method under @mcp; a base for kits needs abstract=True",
    ),
    "kit_name": (
        ("class Kit(Toolkit, name='kit'):\n    @mcp\n    def a(self): ..."),
        "case.py:4: Kit.name: a kit has many tools; write it in the @mcp(…) of each",
    ),
    "kit_private": (
        ("class Kit(Toolkit):\n    @mcp\n    def _a(self): ..."),
        "case.py:6: Kit._a: @mcp marks public methods; take the underscore off, or the @mcp",
    ),
    "kit_duplicate": (
        (
            "class Kit(Toolkit):\n"
            "    @mcp(name='same')\n"
            "    def a(self): ...\n"
            "    @mcp(name='same')\n"
            "    def b(self): ..."
        ),
        (
            "case.py:6: Kit.a: one of 2 tools named 'same'; names differ in a kit\n"
            "case.py:8: Kit.b: one of 2 tools named 'same'; names differ in a kit"
        ),
    ),
    "kit_arity": (
        ("class Kit(Toolkit):\n    @mcp\n    def three(self, a, b, c): ..."),
        (
            "case.py:6: Kit.three.a: has no annotation; write a: str\n"
            "case.py:6: Kit.three.b: has no annotation; write b: str\n"
            "case.py:6: Kit.three.c: has no annotation; write c: str"
        ),
    ),
    "kit_static_arity": (
        ("class Kit(Toolkit):\n    @mcp\n    @staticmethod\n    def three(a, b, c): ..."),
        (
            "case.py:7: Kit.three.a: has no annotation; write a: str\n"
            "case.py:7: Kit.three.b: has no annotation; write b: str\n"
            "case.py:7: Kit.three.c: has no annotation; write c: str"
        ),
    ),
    "kit_unknown_option": (
        ("class Kit(Toolkit):\n    @mcp(nmae='x')\n    def a(self): ..."),
        "case.py:6: Kit.a.nmae: unknown option; did you mean 'name'?",
    ),
    "kit_positional": (
        ("class Kit(Toolkit):\n    @mcp('x')\n    def a(self): ..."),
        "case.py:6: Kit.a: @mcp takes keywords only; write @mcp(name=…)",
    ),
    "kit_dangling": (
        ("class Kit(Toolkit):\n    a = mcp(name='x')"),
        "case.py:5: Kit.a: @mcp(…) stands above nothing; put it on the line before a method",
    ),
    "kit_on_class": (
        ("class Kit(Toolkit):\n    @mcp\n    class Inner: ..."),
        "case.py:6: Kit.Inner: @mcp marks methods and this is a class; write def … under it",
    ),
    "kit_on_property": (
        ("class Kit(Toolkit):\n    @mcp\n    @property\n    def a(self): ..."),
        "case.py:7: Kit.a: @mcp marks methods and this is a property; write def … under it",
    ),
    "kit_keyword_and_args": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, args, *, b: int): ..."),
        (
            "case.py:6: Kit.a.b: stands beside args, which takes the whole input; "
            "leave it out, or rename args: then each parameter is one property of "
            "the input"
        ),
    ),
    "kit_keyword_ctx_twice": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, ctx, context, *, b: int): ..."),
        ("case.py:6: Kit.a.context: has no annotation; for the context of the call write ctx"),
    ),
    "kit_keyword_no_type": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, *, b): ..."),
        (
            "case.py:6: Kit.a.b: has no annotation; write b: str, or call it args to "
            "take the whole input"
        ),
    ),
    "kit_keyword_missing": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, *, b: 'Missing'): ..."),
        (
            "case.py:6: Kit.a.b: cannot find 'Missing', which the annotation 'Missing' names; "
            "define or import it before the class is used"
        ),
    ),
    "kit_bad_input": (
        ("class Kit(Toolkit):\n    @mcp(input={'mode': f.enum()})\n    def a(self, args): ..."),
        'case.py:6: Kit.a.input.mode: f.enum needs values; write f.enum("plain", "loud")',
    ),
    "kit_bad_text": (
        ("class Kit(Toolkit):\n    @mcp(input='[1, 2]')\n    def a(self, args): ..."),
        "case.py:6: Kit.a.input: JSON schema text must hold an object, got [1, 2]",
    ),
    "kit_bad_name": (
        ("class Kit(Toolkit):\n    @mcp\n    def größe(self): ..."),
        "case.py:6: Kit.größe: the method gives the tool an invalid name; write name=…",
    ),
    "kit_inline_async": (
        ("class Kit(Toolkit):\n    @mcp(inline=True)\n    async def a(self): ..."),
        (
            "case.py:6: Kit.a: inline is for a sync method; an async one runs where it is called "
            "anyway"
        ),
    ),
    "kit_override_by_value": (
        (
            "class Base(Toolkit, abstract=True):\n"
            "    @mcp\n"
            "    def a(self): ...\n"
            "class Kit(Base):\n"
            "    a = 3"
        ),
        "case.py:8: Kit.a: must be a method, got 3",
    ),
    "kit_input_annotation": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, args: list[int]): ..."),
        (
            'case.py:6: Kit.a.args: the root of an input must be of type "object"; declare a '
            "class with fields, a mapping of fields, or a schema with that type"
        ),
    ),
    "kit_return": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self) -> memoryview: ..."),
        (
            "case.py:6: Kit.a.return: memoryview has no JSON Schema; use str, int, float, bool, "
            "an Enum, Literal, list, dict, a Schema or attrs class, a dataclass, a TypedDict "
            "or a pydantic model"
        ),
    ),
    "kit_unresolved": (
        ("class Kit(Toolkit):\n    @mcp\n    def a(self, args: 'Missing') -> 'Missing': ..."),
        (
            "case.py:6: Kit.a: the annotation of its arguments names something that is not there "
            "when the class is made; import it, not for type checkers alone, or give "
            "@mcp(input=…)\n"
            "case.py:6: Kit.a: the annotation of its result names something that is not there "
            "when the class is made; import it, not for type checkers alone, or give "
            "@mcp(output=…)"
        ),
    ),
    "kit_stray_and_value": (
        ("class Kit(Toolkit):\n    @mcp(name='a b')\n    @mcp(timeout=-1)\n    def a(self): ..."),
        (
            "case.py:7: Kit.a.name: must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', got "
            "'a b'\n"
            "case.py:7: Kit.a.timeout: must be seconds above 0, or None for no limit, got -1"
        ),
    ),
    "mixin": (
        (
            "class Mixin:\n"
            "    hidden = 'no'\n"
            "    timeout = 'x'\n"
            "    name = 3\n"
            "class Bad(Mixin, Tool, timeout=1):\n"
            "    def call(self): ..."
        ),
        "case.py:5: Bad.hidden: must be True or False, got 'no'",
    ),
    "all_at_once": (
        (
            "class Bad(Tool, annotations={'readonly': True}, hidden='yes', colour='red'):\n"
            "    timeout = -1\n"
            "    class Input(Schema):\n"
            "        query: str = field(min_length=-1)\n"
            "        limit: int = field(default=60, max=50)\n"
            "    class Output(Schema):\n"
            "        hits: int = field(pattern='x')\n"
            "    def call(self, ctx, args, more): ..."
        ),
        (
            "case.py:4: Bad.annotations: unknown annotation 'readonly'; there are: "
            "title, read_only_hint, destructive_hint, idempotent_hint, "
            "open_world_hint\n"
            "case.py:4: Bad.hidden: must be True or False, got 'yes'\n"
            "case.py:4: Bad.colour: unknown option; there are: name, title, "
            "description, category, annotations, icons, meta, hidden, visible, "
            "timeout, max_concurrency, max_queue, max_result_bytes, "
            "coerce, requires, available, loop, inline, strict, task, "
            "starts_task, restartable, "
            "input, output, input_schema, output_schema, abstract\n"
            "case.py:5: Bad.timeout: must be seconds above 0, or None for no limit, "
            "got -1\n"
            "case.py:7: Bad.Input.query: min_length must be a whole number, 0 or "
            "more, got -1\n"
            "case.py:8: Bad.Input.limit: default 60 is above max 50; change the "
            "default or the field\n"
            "case.py:10: Bad.Output.hits: pattern does not belong to integer, which "
            "takes min, max, exclusive_min, exclusive_max, multiple_of\n"
            "case.py:11: Bad.call.more: stands beside args, which takes the whole "
            "input; leave it out: it is args.more if the input declares it"
        ),
    ),
    "near_misses_of_a_tool": (
        (
            "class Bad(Tool):\n"
            "    nmae = 'x'\n"
            "    titel = 'x'\n"
            "    descripton = 'x'\n"
            "    time_out = 3\n"
            "    inputs = {'a': str}\n"
            "    output_shema = {'type': 'object'}\n"
            "    class Ouput(Schema):\n"
            "        a: str\n"
            "    def call(self): ..."
        ),
        (
            "case.py:5: Bad.nmae: is not an option; did you mean 'name'? (begin a name of your own"
            " with _)\n"
            "case.py:6: Bad.titel: is not an option; did you mean 'title'? (begin a name of your"
            " own with _)\n"
            "case.py:7: Bad.descripton: is not an option; did you mean 'description'? (begin a name"
            " of your own with _)\n"
            "case.py:8: Bad.time_out: is not an option; did you mean 'timeout'? (begin a name of"
            " your own with _)\n"
            "case.py:9: Bad.inputs: is not an option; did you mean 'input'? (begin a name of your"
            " own with _)\n"
            "case.py:10: Bad.output_shema: is not an option; did you mean 'output_schema'? (begin a"
            " name of your own with _)\n"
            "case.py:11: Bad.Ouput: is not an option; did you mean 'Output'? (begin a name of your"
            " own with _)"
        ),
    ),
    "strict_raw": (
        (
            "class Bad(Tool, strict=True):\n"
            "    input_schema = {'type': 'object'}\n"
            "    def call(self): ..."
        ),
        (
            "case.py:5: Bad.input_schema: strict=True cannot change a raw schema; write"
            " additionalProperties: false in it, and leave strict out"
        ),
    ),
    "strict_raw_in_every_form": (
        (
            "class Bad(Toolkit, strict=True):\n"
            '    @mcp(input=\'{"type": "object"}\')\n'
            "    def text(self, args): ...\n"
            "    @mcp(input={'type': 'object'})\n"
            "    def mapping(self, args): ...\n"
            "    @mcp(input={'type': 'object', 'additionalProperties': False})\n"
            "    def closed(self, args): ...\n"
            "    @mcp(input={'type': 'object'}, strict=False)\n"
            "    def open(self, args): ...\n"
            "    @mcp(output={'type': 'object'})\n"
            "    def other(self, *, a: int): ..."
        ),
        (
            "case.py:6: Bad.text.input: strict=True cannot change a raw schema; write"
            " additionalProperties: false in it, and leave strict out\n"
            "case.py:8: Bad.mapping.input: strict=True cannot change a raw schema; write"
            " additionalProperties: false in it, and leave strict out"
        ),
    ),
    "kit_all_at_once": (
        (
            "class Kit(Toolkit, category=1):\n"
            "    @mcp(nme='x', input={'a': f.string(min=1)})\n"
            "    def a(self, args, ctx, more): ...\n"
            "    @mcp\n"
            "    def b(self, *rest): ...\n"
            "    c = mcp()"
        ),
        (
            "case.py:4: Kit.category: must be a text that is not empty, got 1\n"
            "case.py:6: Kit.a.nme: unknown option; did you mean 'name'?\n"
            "case.py:6: Kit.a.more: stands beside args, which takes the whole input; "
            "leave it out: it is args.more if the input declares it\n"
            "case.py:6: Kit.a.input.a: min does not belong to string; write "
            "min_length\n"
            "case.py:8: Kit.b: takes *rest; name each parameter, or write def "
            "b(self, args, ctx)\n"
            "case.py:9: Kit.c: @mcp(…) stands above nothing; put it on the line "
            "before a method"
        ),
    ),
    "icon_scheme": (
        (
            "from noizu_mcp.types import Icon\n"
            "class Bad(Tool, icons=[Icon('data:,'), Icon('file:///a.png')]):\n"
            "    def call(self): ..."
        ),
        "case.py:5: Bad.icons: an icon comes from an https: or data: URI, got 'file:///a.png'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_class(name: str, refusal: Callable[[str], str]) -> None:
    """The error lists every problem of the class, one per line, in the order of the source."""
    source, message = CASES[name]
    assert refusal(source) == message
