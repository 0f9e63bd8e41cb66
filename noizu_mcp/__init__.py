"""A trio-native framework for the Model Context Protocol: tools are classes, checked at import."""

from ._version import __version__ as __version__
