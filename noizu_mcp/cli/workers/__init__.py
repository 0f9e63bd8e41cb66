"""`run --workers`: a supervisor, and several processes that serve one server on one socket."""

from ._health import Health as Health
from ._health import merge as merge
from ._process import Program as Program
from ._process import WorkerProcess as WorkerProcess
from ._supervisor import Supervisor as Supervisor
from ._supervisor import WorkerOptions as WorkerOptions
from ._supervisor import supervise as supervise
