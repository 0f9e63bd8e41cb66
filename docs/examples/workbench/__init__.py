"""A workbench: skills and workflows as tools, which come and go while the server runs.

In the folder `docs/examples`:

    noizu-mcp list workbench
    noizu-mcp call workbench 'skill:headlines' text='# One'
    noizu-mcp call workbench 'workflow:Tech News Digest' input='# One'
    noizu-mcp read workbench workbench://workflows/list
    WORKBENCH=/srv/workbench python -m workbench

The last line serves over HTTP, to those who have a key. The environment variable WORKBENCH names
the folder with the skills, the workflows, the policies and the settings; without it the folder
`home` is used. The page `docs/how-to/workbench.md` explains the parts. It needs the packages
watchfiles and, for HTTP, the extras `http`, `auth` and `prometheus`.
"""

from .server import Workbench as Workbench
