"""A user at a pseudo terminal."""

import os
import select
import signal
import threading

#: Typed as Ctrl-C: a signal, since the terminal of the tests controls no process.
CTRL_C = "\x03"


class Person:
    """A user who waits for words and types others, in a thread.

    `text` is what the terminal showed.
    """

    def __init__(self, master, exchange):
        self.text = ""
        self._master = master
        self._exchange = exchange
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(20)

    def _run(self):
        seen = 0
        waiting = [*self._exchange]
        while True:
            while waiting and (at := self.text.find(waiting[0][0], seen)) >= 0:
                seen = at + len(waiting[0][0])
                typed = waiting.pop(0)[1]
                if typed == CTRL_C:  # the terminal of the tests controls no process
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    os.write(self._master, typed.encode())
            if not select.select([self._master], [], [], 10)[0]:
                self.text += f" ... where is {waiting[:1]}?"
                os.write(self._master, b"\x04")
            try:
                self.text += os.read(self._master, 4096).decode()
            except OSError:  # the terminal is closed
                return
