"""Settings of hosts: the files in which Claude Desktop, Cursor and others name their servers."""

from ._entry import own_program as own_program
from ._install import install as install
from ._install import show_config as show_config
