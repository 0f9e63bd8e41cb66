"""Agent Skills: folders with a `SKILL.md`, read and offered to a server."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._registration import check_clashes as check_clashes
from ._registration import check_skills as check_skills
from ._registration import expand_skills as expand_skills

_LATE = {
    "._files": "MANIFEST MAX_BYTES MAX_FILES quote_path",
    "._folder": "SkillFolder SkillSpec",
    "._frontmatter": "compare_frontmatter",
}

if _TYPE_CHECKING:
    from ._files import MANIFEST as MANIFEST
    from ._files import MAX_BYTES as MAX_BYTES
    from ._files import MAX_FILES as MAX_FILES
    from ._files import quote_path as quote_path
    from ._folder import SkillFolder as SkillFolder
    from ._folder import SkillSpec as SkillSpec
    from ._frontmatter import compare_frontmatter as compare_frontmatter
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
