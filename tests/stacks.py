"""The current state of a process: trio loops, asyncio tasks, threads, child processes."""

import asyncio
import gc
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace

import trio

Task = trio.lowlevel.Task
STEP = "  "


def what_runs() -> str:
    """Describe every task of every loop of this process, its threads and its child processes."""
    lines: list[str] = []
    roots = [task for task in objects(Task) if task.parent_nursery is None and alive(task.coro)]
    for root in roots:
        lines += ["trio loop", *trio_tree(root, STEP)]
    for task in objects(asyncio.Task):
        if not task.done():
            lines += [f"asyncio task {task.get_name()}", *coroutine_stack(task.get_coro(), STEP)]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        stack = reversed(list(traceback.walk_stack(frame)))
        lines += [f"thread {names.get(ident, ident)}", *stack_lines(stack, STEP)]
    found = [f"{STEP}{pid} {command}" for pid, command in child_processes()]
    return "\n".join([*lines, "child processes", *(found or [f"{STEP}none"])])


def objects(cls: type) -> list:
    """Find all instances of a class."""
    return [each for each in gc.get_objects() if issubclass(type(each), cls)]


def alive(coroutine: object) -> bool:
    """Tell whether a coroutine has not ended."""
    return getattr(coroutine, "cr_frame", None) is not None


def trio_tree(task: Task, indent: str) -> Iterator[str]:
    """Describe a task with its stack, and the tasks of its nurseries below it."""
    yield f"{indent}task {task.name}"
    yield from stack_lines(task.iter_await_frames(), indent + STEP)
    for nursery in task.child_nurseries:
        # `cancel_called` looks at the clock of the loop that runs in this thread.
        state = ", cancelled" if nursery.cancel_scope._cancel_called else ""
        yield f"{indent}{STEP}nursery{state}"
        for child in nursery.child_tasks:
            yield from trio_tree(child, indent + STEP * 2)


def coroutine_stack(coroutine: object, indent: str) -> list[str]:
    """Describe the stack of a waiting coroutine; trio's walk works for asyncio, too."""
    return stack_lines(Task.iter_await_frames(SimpleNamespace(coro=coroutine)), indent)


def stack_lines(frames: Iterable[tuple[FrameType, int]], indent: str) -> list[str]:
    """Format frames, with their lines of source."""
    text = "".join(traceback.StackSummary.extract(iter(frames)).format())
    return [indent + line for line in text.splitlines()]


def child_processes() -> list[tuple[int, str]]:
    """List the descendants of this process, parents first; an empty list without `/proc`."""
    children = defaultdict(list)
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain spaces.
            _state, parent = file.read_text().rpartition(")")[2].split()[:2]
            words = (file.parent / "cmdline").read_text(errors="replace").split("\0")
        except OSError:  # It has exited.
            continue
        children[parent].append((file.parent.name, " ".join(words).strip() or "(ended)"))
    found, parents = [], ["self"]
    children["self"] = children[Path("/proc/self").resolve().name]
    while parents:
        for pid, command in children[parents.pop(0)]:
            found.append((int(pid), command))
            parents.append(pid)
    return found
