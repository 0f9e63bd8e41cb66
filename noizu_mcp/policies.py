"""Policies, which allow or refuse calls, and audits, which record them."""

from ._errors import Denied
from .components import Capability
from .server import AllowTools, DenyTools, Policy, PolicyCall, RateLimit, TimeWindow
from .telemetry import AuditLog, AuditTable

__all__ = [
    "AllowTools",
    "AuditLog",
    "AuditTable",
    "Capability",
    "Denied",
    "DenyTools",
    "Policy",
    "PolicyCall",
    "RateLimit",
    "TimeWindow",
]
