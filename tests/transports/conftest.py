"""Fixtures that the tests of transports share."""

import os
from contextlib import ExitStack

import pytest


@pytest.fixture
def pipes():
    """Make pipes; ends that the test leaves open are closed after it."""
    with ExitStack() as stack:

        def make():
            ends = os.pipe()
            for fd in ends:
                # An end that was closed is left alone: its number may belong to another file.
                stack.callback(_close_if_same, fd, os.fstat(fd))
            return ends

        yield make


def _close_if_same(fd, before):
    try:
        now = os.fstat(fd)
    except OSError:
        return
    if (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino):
        os.close(fd)


@pytest.fixture
def piped_descriptors(pipes):
    """Replace descriptors 0 to 2 by pipes until the end of the test; return the other ends.

    To be called in the test: between fixtures and tests pytest captures again.
    """
    saved = [os.dup(fd) for fd in range(3)]

    def make():
        (stdin, feed), (out, stdout), (err, stderr) = pipes(), pipes(), pipes()
        for fd, end in enumerate((stdin, stdout, stderr)):
            os.dup2(end, fd)
            os.close(end)
        return feed, out, err

    yield make
    for fd, copy in enumerate(saved):
        os.dup2(copy, fd)
        os.close(copy)
