"""TLS of a host, and errors in its files: OpenSSL reports most of them as `PEM lib`."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ._options import HostOptions, ListenError
from ._wire import TlsContext

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
#: Marks of a key that needs a password, in the old format and in PKCS#8.
_ENCRYPTED: Final = (b"Proc-Type: 4,ENCRYPTED", b"BEGIN ENCRYPTED PRIVATE KEY")
_MISMATCH: Final = "KEY_VALUES_MISMATCH"
#: TLS 1.2 with forward secrecy and authenticated encryption only, as TLS 1.3 always has.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


def make_context(options: HostOptions) -> TlsContext | None:
    """Make the TLS context; None without a certificate.

    Raises:
        ListenError: A file cannot be read, or has other content. The text names the file.
    """
    if options.certfile is None:
        return None
    context = TlsContext(ssl.PROTOCOL_TLS_SERVER)
    # BCP 195 (RFC 9325) section 3.1.1.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # TLS 1.2 lets a client renegotiate without limit, which costs the server more.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_ciphers(options.ciphers or _CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(options.certfile, options.keyfile, options.keyfile_password)
        if options.ca_certs is not None:
            context.load_verify_locations(options.ca_certs)
    except OSError as error:
        raise _explain(options, error) from None
    if options.verify_mode is not None:
        context.verify_mode = options.verify_mode
    return context


def _explain(options: HostOptions, error: OSError) -> ListenError:
    """Explain an error of `load_cert_chain`: which file, and what it should contain.

    Args:
        options: The options that caused it; with a certificate.
        error: The error.
    """
    files = ", ".join(filter(None, (options.certfile, options.keyfile, options.ca_certs)))
    said = f"{error.strerror or error}, with {files}"
    return ListenError(error.errno, f"cannot set up TLS: {next(_faults(options, error), said)}")


def _faults(options: HostOptions, error: OSError) -> Iterator[str]:
    chain, key = str(options.certfile), str(options.keyfile or options.certfile)
    files = [("certificate", chain, _CERTIFICATE), ("private key", key, _KEY)]
    if options.ca_certs is not None:
        files.append(("certificate", options.ca_certs, _CERTIFICATE))
    for what, file, mark in files:
        fault = _fault_of(what, file, mark)
        if fault is not None:
            yield fault
    if getattr(error, "reason", None) == _MISMATCH:
        yield f"the private key in {key} does not belong to the certificate in {chain}"
    if any(mark in (_read(key) or b"") for mark in _ENCRYPTED):
        yield f"keyfile_password does not open the private key in {key}"


def _fault_of(what: str, file: str, mark: bytes) -> str | None:
    try:
        text = _read(file)
    except OSError as error:
        return f"cannot read {file}: {error.strerror}"
    return None if text is None or mark in text else f"there is no {what} (PEM) in {file}"


def _read(file: str) -> bytes | None:
    """Read a file; None for a pipe, which can be read only once."""
    path = Path(file)
    return path.read_bytes() if path.is_file() or not path.exists() else None
