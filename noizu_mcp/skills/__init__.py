"""Agent Skills: folders with a `SKILL.md`, read and offered to a server."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._registration import check_clashes as check_clashes
from ._registration import check_skills as check_skills
from ._registration import expand_skills as expand_skills

_LATE = {
    "SkillFolder": "._folder",
    "SkillSpec": "._folder",
}

if _TYPE_CHECKING:
    from ._folder import SkillFolder as SkillFolder
    from ._folder import SkillSpec as SkillSpec
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
