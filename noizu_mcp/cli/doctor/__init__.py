"""`noizu-mcp doctor`: checks of any server, with what to do about each finding."""
