"""A workbench: skills and workflows as tools, which come and go while the server runs.

In the top folder of a clone:

    noizu-mcp list docs.examples.workbench
    noizu-mcp call docs.examples.workbench 'skill:headlines' text='# One'
    noizu-mcp call docs.examples.workbench 'workflow:Tech News Digest' input='# One'
    noizu-mcp read docs.examples.workbench workbench://workflows/list
    WORKBENCH=/srv/workbench python -m docs.examples.workbench

The last line serves over HTTP, to those who have a key. The environment variable WORKBENCH names
the folder with the skills, the workflows, the policies and the settings; without it the folder
`home` is used. The page `docs/how-to/workbench.md` explains the parts. It needs the packages
watchfiles and, for HTTP, the extras `http`, `auth` and `prometheus`.
"""

from .server import Workbench as Workbench
