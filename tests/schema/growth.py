"""Tells whether work grows no faster than its input, on any machine and beside any other work."""

import time

#: The larger input is so many times as long as the smaller one. Linear work takes so many times as
#: long, and quadratic work the square of it; the limit is a factor of four from either.
TIMES = 16
LIMIT = 64
#: A machine that is busy slows some measurements down, but not the fastest of so many.
ROUNDS = 10


def is_linear(work, make, size):
    """Tell if the processor time of work grows with the size of its input, not with its square.

    For work of native code, in which nothing can be counted.

    Args:
        work: A function of an input.
        make: Makes an input from its size.
        size: The size of the smaller input. Work on it takes longer than the call.
    """
    small, large = make(size), make(size * TIMES)
    small_times, large_times = [], []
    for _ in range(ROUNDS):
        small_times.append(_seconds(work, small))
        large_times.append(_seconds(work, large))
        if min(large_times) <= LIMIT * min(small_times):
            return True
    return False


def _seconds(work, value):
    start = time.process_time()
    work(value)
    return time.process_time() - start
