"""Overrides that change nothing."""


class PassesOn:
    """The first base of a server: answers each request with `super()`."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)

    async def list_resources(self, cursor, ctx):
        return await super().list_resources(cursor, ctx)

    async def list_resource_templates(self, cursor, ctx):
        return await super().list_resource_templates(cursor, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri, ctx)

    async def list_prompts(self, cursor, ctx):
        return await super().list_prompts(cursor, ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt(name, args, ctx)

    async def complete(self, ref, argument, prefix, ctx):
        return await super().complete(ref, argument, prefix, ctx)
