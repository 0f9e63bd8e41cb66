"""Bodies in crumbs: each piece costs the same work, however small it is."""

from typing import Final

from ._options import KIB

#: Pieces of one body, chunks or frames, that may be of any size.
PIECES: Final = 16 * KIB
#: Bytes that the pieces of a body with more of them must have on average: a body of the largest
#: size that is usual, 16 MiB, then costs at most 256 Ki of them, and not 16 Mi.
PIECE_SIZE: Final = 64
#: Pieces after which everybody else has a turn: about a millisecond of work.
TURN: Final = 128


class Crumbs:
    """The pieces in which a body has come so far."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces = 0
        self._size = 0

    def add(self, size: int, *, pieces: int = 1) -> bool:
        """Count a piece; tells whether there are too many for what is in them.

        Args:
            size: Its bytes.
            pieces: 0 for a part of a piece that was counted.
        """
        self._pieces += pieces
        self._size += size
        # The last one may have come in part.
        return self._pieces > PIECES and self._size < PIECE_SIZE * (self._pieces - 1)
