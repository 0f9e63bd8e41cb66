"""Policies: who may call what, and when. Capabilities, which can only be narrowed."""
