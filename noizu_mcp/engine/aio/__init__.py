"""Two loops in one thread: asyncio code for trio tasks, and trio code for asyncio tasks."""
