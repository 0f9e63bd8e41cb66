"""`run --workers`: a supervisor, and several processes that serve one server on one socket."""

from ._supervisor import WorkerOptions as WorkerOptions
from ._supervisor import supervise as supervise
