"""Checks of servers in any language: how they behave, what they list, and what breaks them.

raw/        connections on which every byte can be examined
lint/       the tools of a server as models read them
contract/   what a server lists, and the changes since it was written down
fuzz/       calls that look for what breaks a server
doctor/     the checks of `noizu-mcp doctor`
"""

from .._util import publish as _publish

_publish(globals())
