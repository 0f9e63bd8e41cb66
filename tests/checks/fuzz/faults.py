"""The faults of these servers, and how each is found."""

import json
import re

#: An astral letter; which one is drawn does not matter.
ASTRAL = "\U00010000"


def say(text, **more):
    return {"name": "say", "arguments": {"text": text, **more}}


def least_steps(report, check):
    """Return the params of the steps of each finding; one astral letter stands for all."""
    found = []
    for finding in report.findings:
        if finding.check == check:
            params = [json.dumps(step.params, ensure_ascii=False) for step in finding.case.steps]
            found.append([json.loads(re.sub("[^\0-\uffff]", ASTRAL, each)) for each in params])
    return found


def note(tool):
    return {"name": tool, "arguments": {"title": "a"}}


#: The check that fails, and the params of the smallest steps, by the name of a fault.
FAULTS = {
    "crash": ("crash", [say("")]),
    "leak": ("leak", [say("")]),
    "bound": ("accepts-invalid", [{"name": "add", "arguments": {"numbers": [], "times": 11}}]),
    "max-items": (
        "accepts-invalid",
        [{"name": "add", "arguments": {"numbers": [0, 0, 0, 0, 0], "times": 1}}],
    ),
    "enum": ("accepts-invalid", [say("", tone="")]),
    "output": ("output", [{"name": "add", "arguments": {"numbers": [0, 0, 0], "times": 1}}]),
    "hang": ("silence", [say(ASTRAL)]),
    "exit": ("crash", [say("\0")]),
    "form": ("message", [say(" ")]),
    "twice": ("one-answer", [say("")]),
    "eras": ("eras", [{"name": "add", "arguments": {"numbers": [], "times": 6}}]),
    "progress": ("progress", [say("", tone="loud")]),
    "log": ("log", [say("")]),
    "older": ("revisions", []),
    "lists": ("revisions", []),
    "order": ("order", [{}]),
    "cursors": ("cursors", [{}]),
    "cancel": ("cancel", [{"name": "wait", "arguments": {}}]),
    "notice": ("notice", [{"name": "keep_note", "arguments": {"title": "aaaa"}}]),
    "sequence": ("crash", [note("keep_note"), note("drop_note"), note("read_note")]),
    "fragile": ("protocol", [{}]),
}
