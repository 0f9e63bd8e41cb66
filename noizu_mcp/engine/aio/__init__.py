"""Two loops in one thread: asyncio code for trio tasks, and trio code for asyncio tasks.

Importing it loads asyncio, so it is imported where asyncio is used.
"""

from ..._util import publish as _publish
from ._crossing import AsyncioCall as AsyncioCall
from ._crossing import TrioSide as TrioSide
from ._crossing import enter_asyncio as enter_asyncio
from ._crossing import from_asyncio as from_asyncio
from ._crossing import run_asyncio as run_asyncio
from ._guest import enter_trio as enter_trio
from ._guest import trio_side as trio_side

_publish(globals())
