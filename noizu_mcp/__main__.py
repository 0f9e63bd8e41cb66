"""`python -m noizu_mcp`: the command line."""

from .cli import main

raise SystemExit(main())
