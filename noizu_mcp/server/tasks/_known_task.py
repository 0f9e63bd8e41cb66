"""A task that runs at this node or at another one, as its owner may see it."""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._errors import InsufficientScope
from ..._value import JSONObject

if TYPE_CHECKING:
    from ...types import Principal, RequireScopes


class KnownTask(abc.ABC):
    """A task of this server.

    Attributes:
        id: The unguessable name of the task.
        owner: The key of its principal; None without authentication.
    """

    id: str
    owner: str | None

    @property
    @abc.abstractmethod
    def is_over(self) -> bool:
        """True in a final state that clients may see."""

    @property
    @abc.abstractmethod
    def shown(self) -> JSONObject:
        """The task in wire format, in the state that clients may see."""

    @property
    @abc.abstractmethod
    def required(self) -> "Sequence[RequireScopes]":
        """The scopes that its call needed."""

    def admits(self, caller: "Principal | None") -> bool:
        """Tell whether a caller has all scopes that the call needed."""
        # Checked at each access (the extension requires it): the owner may return with a token that
        # has fewer scopes.
        return all(each.admits(caller) for each in self.required)

    def admit(self, caller: "Principal | None") -> None:
        """Check that a caller has all scopes that the call needed.

        Raises:
            InsufficientScope: A scope is missing. It names all scopes, so that one new token is
                enough.
        """
        if not self.admits(caller):
            raise InsufficientScope([scope for each in self.required for scope in each.scopes])
