"""Invalid resources, templates and prompts: each is refused with every problem and its place."""

from collections.abc import Callable

import pytest

PRELUDE = (
    "from noizu_mcp.components import Prompt, Resource, ResourceTemplate;"
    " from noizu_mcp.schema import argument, fields as f\n"
)

# The last lines of a source, and the complete `DefinitionError`. They start at line 5.
CASES = {
    "no_uri": (
        "class Bad(Resource):\n    def read(self): ...",
        "case.py:5: Bad: a resource needs a uri: write uri='config://app', or abstract=True",
    ),
    "no_template": (
        "class Bad(ResourceTemplate):\n    def read(self, uri, args): ...",
        (
            "case.py:5: Bad: a resource template needs a uri_template: write"
            " uri_template='db://{table}', or abstract=True"
        ),
    ),
    "relative_uri": (
        "class Bad(Resource, uri='app/config'):\n    def read(self): ...",
        (
            "case.py:5: Bad.uri: must be an absolute URI like 'config://app', other characters"
            " percent-encoded (RFC 3986), got 'app/config'"
        ),
    ),
    "uri_with_space": (
        "class Bad(Resource):\n    uri = 'x:a b'\n    def read(self): ...",
        (
            "case.py:6: Bad.uri: must be an absolute URI like 'config://app', other characters"
            " percent-encoded (RFC 3986), got 'x:a b'"
        ),
    ),
    "uri_with_bad_escape": (
        "class Bad(Resource, uri='x:%zz'):\n    def read(self): ...",
        (
            "case.py:5: Bad.uri: must be an absolute URI like 'config://app', other characters"
            " percent-encoded (RFC 3986), got 'x:%zz'"
        ),
    ),
    "uri_number": (
        "class Bad(Resource, uri=3):\n    def read(self): ...",
        "case.py:5: Bad.uri: must be a text like 'config://app', got 3",
    ),
    "uri_of_a_template": (
        "class Bad(Resource, uri='x:{a}'):\n    def read(self): ...",
        "case.py:5: Bad.uri: has a variable in it; make it a ResourceTemplate, got 'x:{a}'",
    ),
    "template_number": (
        "class Bad(ResourceTemplate, uri_template=3):\n    def read(self, uri, args): ...",
        "case.py:5: Bad.uri_template: must be a text like 'db://{table}/schema', got 3",
    ),
    "template_of_a_uri": (
        "class Bad(ResourceTemplate, uri_template='x:a'):\n    def read(self, uri, args): ...",
        "case.py:5: Bad.uri_template: has no variable in it; make it a Resource, got 'x:a'",
    ),
    "template_without_scheme": (
        "class Bad(ResourceTemplate, uri_template='{a}:b'):\n    def read(self, uri, args): ...",
        "case.py:5: Bad.uri_template: must begin with a scheme, like 'db://{table}', got '{a}:b'",
    ),
    "template_unclosed": (
        "class Bad(ResourceTemplate, uri_template='x:{a'):\n    def read(self, uri, args): ...",
        (
            "case.py:5: Bad.uri_template: at 3 in 'x:{a': '{' is never closed; write '}' behind the"
            " variable"
        ),
    ),
    "template_twice": (
        "class Bad(ResourceTemplate, uri_template='x:{a}{a}'):\n    def read(self, uri, args): ...",
        (
            "case.py:5: Bad.uri_template: the variable 'a' stands in it 2 times; give each a"
            " name of"
            " its own; the variables 'a' and 'a' cannot be told apart; put a text between them"
        ),
    ),
    "options": (
        (
            "class Bad(Resource, uri='x:a', mime_type='json', size=-1, subscribable=1, bogus=2,\n"
            "          annotations={'audience': ['all']}, name=' ', timeout=0):\n"
            "    def read(self): ..."
        ),
        (
            "case.py:5: Bad.mime_type: must be a media type like 'application/json', got 'json'\n"
            "case.py:5: Bad.size: must be a whole number of bytes, got -1\n"
            "case.py:5: Bad.subscribable: must be True or False, got 1\n"
            "case.py:5: Bad.bogus: unknown option; there are: uri, name, title, description,"
            " mime_type, size, annotations, icons, meta, hidden, visible, timeout, requires,"
            " available, loop, subscribable, abstract\n"
            "case.py:5: Bad.annotations: audience lists 'user' and 'assistant', got 'all'\n"
            "case.py:5: Bad.name: must be a printable text that is not empty, got ' '\n"
            "case.py:5: Bad.timeout: must be seconds above 0, or None for no limit, got 0"
        ),
    ),
    "annotations": (
        "class Bad(Resource, uri='x:a', annotations={'priority': 2}):\n    def read(self): ...\n",
        "case.py:5: Bad.annotations: priority is from 0, optional, to 1, required, got 2",
    ),
    "annotations_of_a_tool": (
        "class Bad(Resource, uri='x:a', annotations={'title': 2}):\n    def read(self): ...\n",
        (
            "case.py:5: Bad.annotations: unknown annotation 'title'; there are: audience, priority,"
            " last_modified"
        ),
    ),
    "size_of_true": (
        "class Bad(Resource, uri='x:a', size=True, annotations=None):\n    def read(self): ...\n",
        "case.py:5: Bad.size: must be a whole number of bytes, got True",
    ),
    "size_of_a_template": (
        (
            "class Bad(ResourceTemplate, uri_template='x:{a}', size=1):\n"
            "    def read(self, uri, args): ..."
        ),
        (
            "case.py:5: Bad.size: unknown option; there are: uri_template, name, title,"
            " description, mime_type, annotations, icons, meta, hidden, visible, timeout,"
            " requires, available, loop, subscribable, traversal, arguments, abstract"
        ),
    ),
    "no_read": (
        "class Bad(Resource, uri='x:a'): pass",
        (
            "case.py:5: Bad: a resource needs a method: async def read(self, uri, ctx); a base for"
            " resources needs abstract=True"
        ),
    ),
    "read_is_none": (
        "class Bad(Resource, uri='x:a'):\n    read = None",
        "case.py:6: Bad.read: must be a method, got None",
    ),
    "read_without_self": (
        "class Bad(Resource, uri='x:a'):\n    def read(): ...",
        "case.py:6: Bad.read: takes no self; write def read(self, uri, ctx)",
    ),
    "read_with_keyword_self": (
        "class Bad(Resource, uri='x:a'):\n    def read(*, self): ...",
        "case.py:6: Bad.read: takes no self; write def read(self, uri, ctx)",
    ),
    "read_too_much": (
        "class Bad(Resource, uri='x:a'):\n    def read(self, uri, args, ctx): ...",
        (
            "case.py:6: Bad.read.args: has no value to take; write def read(self, "
            "uri, ctx), or give the URI a variable {args}"
        ),
    ),
    "read_variadic": (
        "class Bad(Resource, uri='x:a'):\n    def read(self, *uris: str, **more): ...",
        (
            "case.py:6: Bad.read: takes *uris; write def read(self, uri, ctx)\n"
            "case.py:6: Bad.read: takes **more; write def read(self, uri, ctx)"
        ),
    ),
    "read_keyword": (
        "class Bad(Resource, uri='x:a'):\n    def read(self, uri, *, limit): ...",
        (
            "case.py:6: Bad.read.limit: has no value to take; write def read(self, "
            "uri, ctx), or give the URI a variable {limit}"
        ),
    ),
    "read_default": (
        "class Bad(Resource, uri='x:a'):\n    def read(self, uri, limit=3): ...",
        (
            "case.py:6: Bad.read.limit: has no value to take; write def read(self, "
            "uri, ctx), or give the URI a variable {limit}"
        ),
    ),
    "read_yields": (
        "class Bad(Resource, uri='x:a'):\n    async def read(self): yield 1",
        "case.py:6: Bad.read: yields, but an answer is one value; return a list",
    ),
    "marked": (
        "class Bad(Resource, uri='x:a'):\n    @mcp\n    def read(self): ...",
        "case.py:7: Bad.read: @mcp marks the tools of a Toolkit; take it off",
    ),
    "abstract": (
        "class Bad(Resource, uri='x:a', name='n', title='t', abstract=True): pass",
        (
            "case.py:5: Bad.uri: an abstract base is not a resource; leave it to the subclasses\n"
            "case.py:5: Bad.name: an abstract base is not a resource; leave it to the subclasses\n"
            "case.py:5: Bad.title: an abstract base is not a resource; leave it to the subclasses"
        ),
    ),
    "subclass": (
        "class One(Resource, uri='x:a'):\n    def read(self): ...\nclass Bad(One): pass",
        (
            "case.py:7: Bad: a subclass of the resource One needs its own uri; write uri=…,"
            " or mark One"
            " with abstract=True"
        ),
    ),
    "everything_of_a_template": (
        (
            "class Bad(ResourceTemplate, uri_template='x:{a}/{b}{/c*}', hidden=0):\n"
            "    class Arguments(Schema):\n"
            "        a: dict[str, int]\n"
            "        c: str\n"
            "        other: int = 1\n"
            "    def read(self, ctx): ...\n"
            "    def complete(self, prefix, ctx): ...\n"
            "    def list(self, cursor, ctx): ..."
        ),
        (
            "case.py:5: Bad.hidden: must be True or False, got 0\n"
            "case.py:6: Bad.Arguments: 'x:{a}/{b}{/c*}' has a variable 'b'; declare "
            "it\n"
            "case.py:7: Bad.Arguments.a: a variable is a text; declare it as str, "
            "int, float, bool, an Enum or a Literal\n"
            "case.py:8: Bad.Arguments.c: {c*} matches a list of texts; declare it as "
            "list[str]\n"
            "case.py:9: Bad.Arguments.other: 'x:{a}/{b}{/c*}' has no variable of "
            "this name\n"
            "case.py:10: Bad.read: takes no variable of 'x:{a}/{b}{/c*}', so that "
            "all of its resources would be one; take a: str, b: str, c: str\n"
            "case.py:11: Bad.complete: 'ctx' stands in the place of prefix; write "
            "def complete(self, variable, prefix, ctx)\n"
            "case.py:12: Bad.list: takes (cursor, ctx) but is passed (ctx); write "
            "def list(self, ctx)"
        ),
    ),
    "everything_of_a_prompt": (
        (
            "class Bad(Prompt, name='code review', icons=['x'], timeout='3', uri='x:a'):\n"
            "    class Arguments(Schema):\n"
            "        a: list[str] = []\n"
            "        b: dict[str, str]\n"
            "    def complete(self, ctx): ..."
        ),
        (
            "case.py:5: Bad.name: must be 1 to 128 characters of A-Z a-z 0-9 _ - and "
            "'.', got 'code review'\n"
            "case.py:5: Bad.icons: must be a list of Icon(src), got ['x']\n"
            "case.py:5: Bad.timeout: must be seconds above 0, or None for no limit, "
            "got '3'\n"
            "case.py:5: Bad.uri: unknown option; there are: name, title, "
            "description, icons, meta, hidden, visible, timeout, requires, available, loop, "
            "arguments, abstract\n"
            "case.py:5: Bad: a prompt needs a method: async def get(self, args, "
            "ctx); a base for prompts needs abstract=True\n"
            "case.py:7: Bad.Arguments.a: an argument is a text; declare it as str, "
            "int, float, bool, an Enum or a Literal\n"
            "case.py:8: Bad.Arguments.b: an argument is a text; declare it as str, "
            "int, float, bool, an Enum or a Literal\n"
            "case.py:9: Bad.complete: takes (ctx) but is passed (argument, prefix, "
            "ctx); write def complete(self, argument, prefix, ctx)"
        ),
    ),
    "complete": (
        (
            "class Bad(Prompt):\n"
            "    class Arguments(Schema):\n"
            "        a: str = argument(complete='abc')\n"
            "        b: str = argument(complete=[1])\n"
            "        c: str = argument(complete=lambda prefix: [])\n"
            "    def get(self, args): ..."
        ),
        (
            "case.py:7: Bad.Arguments.a: complete must be a list of texts or an async"
            " function (prefix,"
            " ctx), got 'abc'\n"
            "case.py:8: Bad.Arguments.b: complete must be a list of texts or an async"
            " function (prefix,"
            " ctx), got [1]\n"
            "case.py:9: Bad.Arguments.c: complete must be a list of texts or an async"
            " function (prefix,"
            " ctx), got <function Bad.Arguments.<lambda> at "
        ),
    ),
    "recursive_argument": (
        (
            "class Node(Schema):\n"
            "    next: 'Node | None' = None\n"
            "class Bad(Prompt):\n"
            "    class Arguments(Schema):\n"
            "        node: Node | None = None\n"
            "        nodes: Node | int = 1\n"
            "    def get(self, args): ..."
        ),
        (
            "case.py:9: Bad.Arguments.node: an argument is a text; declare it as str, int, float,"
            " bool, an Enum or a Literal"
        ),
    ),
    "arguments_no_class": (
        "class Bad(Prompt):\n    Arguments = {'a': str}\n    def get(self, args): ...",
        ("case.py:6: Bad.Arguments: must be a class; write arguments = … for {'a': <class 'str'>}"),
    ),
    "near_misses_of_a_prompt": (
        (
            "class Bad(Prompt):\n"
            "    class Argument(Schema):\n"
            "        a: str\n"
            "    def completes(self, argument, prefix, ctx): ...\n"
            "    def get(self, args): ..."
        ),
        (
            "case.py:6: Bad.Argument: is not an option; did you mean 'Arguments'? (begin a name of"
            " your own with _)\n"
            "case.py:8: Bad.completes: is not an option; did you mean 'complete'? (begin a name of"
            " your own with _)"
        ),
    ),
    "near_misses_of_resources": (
        (
            "class Bad(ResourceTemplate, uri_template='x:{a}'):\n"
            "    argument = {'a': str}\n"
            "    mimetype = 'text/plain'\n"
            "    def complet(self, variable, prefix): ...\n"
            "    def read(self, uri, args): ..."
        ),
        (
            "case.py:6: Bad.argument: is not an option; did you mean 'arguments'? (begin a name of"
            " your own with _)\n"
            "case.py:7: Bad.mimetype: is not an option; did you mean 'mime_type'? (begin a name of"
            " your own with _)\n"
            "case.py:8: Bad.complet: is not an option; did you mean 'complete'? (begin a name of"
            " your own with _)"
        ),
    ),
    "every_kind_of_wrong_argument": (
        (
            "class Bad(Prompt):\n"
            "    class Arguments(Schema):\n"
            "        a: str = argument(min=3)\n"
            "        b: str = argument(complete=3)\n"
            "        c: list[str] = argument()\n"
            "        d: dict[str, int] = argument(complete=[1])\n"
            "    def get(self, args): ..."
        ),
        (
            "case.py:7: Bad.Arguments.a: min does not belong to string; write min_length\n"
            "case.py:8: Bad.Arguments.b: complete must be a list of texts or an async function"
            " (prefix, ctx), got 3\n"
            "case.py:9: Bad.Arguments.c: an argument is a text; declare it as str, int, float,"
            " bool, an Enum or a Literal\n"
            "case.py:10: Bad.Arguments.d: complete must be a list of texts or an async function"
            " (prefix, ctx), got [1]\n"
            "case.py:10: Bad.Arguments.d: an argument is a text; declare it as str, int, float,"
            " bool, an Enum or a Literal"
        ),
    ),
    "every_kind_of_wrong_variable": (
        (
            "class Bad(ResourceTemplate, uri_template='x:{a}/{b}'):\n"
            "    class Arguments(Schema):\n"
            "        a: dict[str, int] = argument(min_length=3)\n"
            "        z: str = argument(min=3)\n"
            "    def read(self, uri, args): ..."
        ),
        (
            "case.py:6: Bad.Arguments: 'x:{a}/{b}' has a variable 'b'; declare it\n"
            "case.py:7: Bad.Arguments.a: min_length does not belong to object; write min\n"
            "case.py:7: Bad.Arguments.a: a variable is a text; declare it as str, int, float, bool,"
            " an Enum or a Literal\n"
            "case.py:8: Bad.Arguments.z: min does not belong to string; write min_length\n"
            "case.py:8: Bad.Arguments.z: 'x:{a}/{b}' has no variable of this name"
        ),
    ),
    "arguments_as_data": (
        (
            "class Bad(Prompt):\n"
            "    arguments = {\n"
            "        'a': f.string(min=3),\n"
            "        'b': f.array(str),\n"
            "    }\n"
            "    def get(self, args): ..."
        ),
        (
            "case.py:7: Bad.arguments.a: min does not belong to string; write min_length\n"
            "case.py:8: Bad.arguments.b: an argument is a text; declare it as str, int, float,"
            " bool, an Enum or a Literal"
        ),
    ),
    "arguments_that_are_no_form": (
        "class Bad(Prompt, arguments=3):\n    def get(self, args): ...",
        "case.py:5: Bad.arguments: ",
    ),
    "arguments_without_an_end": (
        (
            "class L1:\n"
            "    a: str = ''\n"
            "for n in range(2, 18):\n"
            "    exec(f'class L{n}:\\n a: L{n-1}\\n b: L{n-1}')\n"
            "class Bad(Prompt):\n"
            "    class Arguments(Schema):\n"
            "        deep: L17\n"
            "    def get(self, args): ..."
        ),
        "case.py:10: Bad.Arguments: is too large once its classes are written out; make it flatter",
    ),
    "arguments_in_two_forms": (
        (
            "class Bad(Prompt):\n"
            "    arguments = {'a': str}\n"
            "    class Arguments(Schema):\n"
            "        a: str\n"
            "    def get(self, args): ..."
        ),
        "case.py:6: Bad.arguments: the class Arguments declares them too; keep one of them",
    ),
    "prompt_name_from_class": (
        "class Größe(Prompt):\n    def get(self): ...",
        "case.py:5: Größe: the class gives the prompt an invalid name: 'größe'; write name=…",
    ),
    "prompt_subclass": (
        "class One(Prompt):\n    def get(self): ...\nclass Bad(One): pass",
        (
            "case.py:7: Bad: a subclass of the prompt One needs its own name; write name=…,"
            " or mark One"
            " with abstract=True"
        ),
    ),
    "prompt_abstract": (
        "class Bad(Prompt, name='n', abstract=True): pass",
        "case.py:5: Bad.name: an abstract base is not a prompt; leave it to the subclasses",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_classes(case: str, refusal: Callable[[str], str]) -> None:
    """One error lists every problem, in the order of the source."""
    source, expected = CASES[case]
    found = refusal(PRELUDE + source)
    assert found.startswith(expected)
    assert found.count("\n") == expected.count("\n")
