"""The bodies of the tools in `seeded_mcp.py` and `seeded_noizu.py`, with one fault."""

import os
import threading
import traceback


class Tools:
    """The work of the tools; `fault` names a fault, `error` is the exception for a model."""

    def __init__(self, fault, error):
        self.fault = fault
        self.error = error
        self.notes = {}

    def say(self, text):
        if self.fault == "crash":
            return text[0]
        if self.fault == "leak":
            try:
                return text[0]
            except IndexError:
                raise self.error(traceback.format_exc()) from None
        if self.fault == "hang" and any(ord(letter) > 0xFFFF for letter in text):
            threading.Event().wait()
        if self.fault == "exit" and "\0" in text:
            os._exit(3)
        return text

    def pick(self, index):
        return ("abcdefghij" if self.fault == "bound" else "abcdefghijk")[index]

    def keep_note(self, title):
        self.notes[title] = title
        return "kept"

    def drop_note(self, title):
        # The fault: a dropped note stays, as None.
        if self.fault == "sequence" and title in self.notes:
            self.notes[title] = None
        else:
            self.notes.pop(title, None)
        return "dropped"

    def read_note(self, title):
        if title not in self.notes:
            raise self.error("no such note")
        return self.notes[title].upper()
