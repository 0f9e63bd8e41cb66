"""The version of the package, read by `setup.cfg` and sent as the default `clientInfo.version`."""

__version__ = "0.1.0"
