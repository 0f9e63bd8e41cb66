"""The settings of hypercorn that follow from the options of a host."""

import logging
import ssl
import time
from typing import Final
from wsgiref.handlers import format_date_time

from hypercorn.config import Config

from ._application import logger
from ._options import HostOptions
from ._tls import explain


class HostConfig(Config):
    """Settings of hypercorn: every limit ours, its log in ours, no line about single requests.

    Args:
        options: The options of the host.
    """

    def __init__(self, options: HostOptions) -> None:
        self.options: Final = options
        # By itself hypercorn would write to stderr.
        self.errorlog = logger
        # h2's codec writes every header at DEBUG, with the tokens in them.
        codec = logging.getLogger("hpack")
        codec.setLevel(max(codec.level, logging.INFO))
        self.certfile = options.certfile
        self.keyfile = options.keyfile or options.certfile
        self.keyfile_password = options.keyfile_password
        self.ca_certs = options.ca_certs
        self.verify_mode = options.verify_mode
        self.ciphers = options.ciphers or Config.ciphers
        self.h11_max_incomplete_size = options.max_header_size
        self.h2_max_header_list_size = options.max_header_size
        self.h2_max_concurrent_streams = options.max_streams
        self.keep_alive_max_requests = options.max_requests
        self._second = -1
        self._headers: list[tuple[bytes, bytes]] = []

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:  # noqa: ARG002 - hypercorn's signature
        """Give the headers of every answer: the date, made once a second."""
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._headers = [(b"date", format_date_time(now).encode())]
        return self._headers

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """Make the context of TLS; None without a certificate.

        Raises:
            OSError: A file cannot be read, or is not what it should be; the text says which one.
        """
        try:
            context = super().create_ssl_context()
        except OSError as error:
            raise explain(self.options, error) from None
        if context is not None:
            # TLS 1.2 lets a client ask for it for ever, and each one costs the server more.
            context.options |= ssl.OP_NO_RENEGOTIATION
        return context
