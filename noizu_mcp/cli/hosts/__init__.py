"""Settings of hosts: the files in which Claude Desktop, Cursor and others name their servers."""
