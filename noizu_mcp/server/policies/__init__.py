"""Policies: who may call what, and when; and capabilities, which only narrow."""
