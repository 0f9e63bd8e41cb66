"""Skills: folders of instructions that a server offers.

Source: the extension `io.modelcontextprotocol/skills`, `specification/stable/skills` (SEP-2640).
"""

from typing import Any, Final

import attrs

from .._util import final
from ._wire import Wire

#: The id of the extension, as a server declares it.
SKILLS: Final = "io.modelcontextprotocol/skills"
#: The media type of a directory, which `resources/directory/read` reads.
DIRECTORY: Final = "inode/directory"


@final
@attrs.frozen(eq=False, repr=False)
class SkillDefinition(Wire):
    """A skill as `skills/list` and `skills/get` describe it ("Skill Entries").

    Attributes:
        uri: The URI of its `SKILL.md`.
        frontmatter: What stands at the top of that file; `name` and `description` always do.
        resources: Its files, `SKILL.md` among them: a list of mappings with `uri`, `digest`
            (`sha256:` and 64 digits) and `size` in bytes; or the text `dynamic`.
    """

    uri: str
    frontmatter: dict[str, Any]
    resources: Any
