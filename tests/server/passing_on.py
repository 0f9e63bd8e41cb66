"""A server class whose overrides all delegate to `super()`."""


class PassingOn:
    """Overrides everything that a server may override on the way to a handler."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt(name, args, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri, ctx)

    async def complete(self, ref, argument, prefix, ctx):
        return await super().complete(ref, argument, prefix, ctx)
