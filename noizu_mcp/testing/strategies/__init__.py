"""Strategies of Hypothesis for values that a JSON Schema allows, or forbids.

Hypothesis is an extra, `testing`; the files that need it load with the first strategy:

    _violation     what the strategies draw and raise
    _case          limits on one value
    _keywords, _parts, _combined, _expand   keywords into cases
    _texts, _numbers, _plan, _containers, _build, _checked   cases into strategies
    _schemas       the public functions for schemas
    _tools         the public functions for tools
    _messages      the public functions for messages of clients
    _machine, _session_machine   a client as a state machine
"""
