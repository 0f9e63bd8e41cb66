"""`noizu-mcp doctor`: checks of any server, with what to do about each finding."""

from ._doctor import doctor as doctor
