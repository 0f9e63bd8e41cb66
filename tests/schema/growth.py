"""Measures whether work grows linearly with its input, also on a busy machine."""

import time

#: Length of the larger input in multiples of the smaller one. Linear work takes this factor longer,
#: quadratic work its square; the limit is a factor of four away from both.
TIMES = 16
LIMIT = 64
#: Number of measurements; a busy machine slows down some of them, but not the fastest.
ROUNDS = 10


def is_linear(work, make, size):
    """Tell whether the processor time of work grows linearly with the size of its input.

    For native code, in which nothing can be counted.

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
