"""A certificate that signs itself, for https between machines of one network: ``serve --tls auto``."""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..errors import UsageError

# Browsers accept 398 days at most.
_VALID = timedelta(days=397)
_RENEWED = timedelta(days=30)
_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "speech-translate serve")])


def self_signed(names: Iterable[str], folder: Path) -> tuple[Path, str]:
    """A PEM file with a private key and its certificate, which only the owner of the process can read.

    It is kept, so that browsers ask only once whether to trust it, until a name is missing or it is about to expire.

    Args:
        names: of hosts, in ASCII, and addresses.
        folder: where the file is kept.

    Returns:
        The file, and the SHA-256 fingerprint of the certificate in hexadecimal.
    """
    path, wanted = folder / "self-signed.pem", {_general_name(name) for name in names}
    certificate = _kept(path)
    if (
        certificate is None
        or not wanted <= _names_in(certificate)
        or certificate.not_valid_after_utc - datetime.now(UTC) < _RENEWED
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _made(key, wanted)
        try:
            _write(path, key, certificate)
        except OSError as error:
            raise UsageError(
                f"cannot keep the certificate of --tls auto in {path}: {error.strerror}; give the right to write, set HF_HOME "
                "to another folder, or give --tls-cert and --tls-key"
            ) from None
    return path, certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _kept(path: Path) -> x509.Certificate | None:
    try:
        data = path.read_bytes()
        serialization.load_pem_private_key(data, None)
        return x509.load_pem_x509_certificate(data)
    except (OSError, ValueError):
        return None


def _names_in(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _made(key: ec.EllipticCurvePrivateKey, names: set[x509.GeneralName]) -> x509.Certificate:
    made_at = datetime.now(UTC)
    return (
        x509.CertificateBuilder(_NAME, _NAME, key.public_key(), x509.random_serial_number())
        .not_valid_before(made_at - timedelta(days=1))  # clocks of other machines may be behind
        .not_valid_after(made_at + _VALID - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(sorted(names, key=repr)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )


def _write(path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    number, temporary = tempfile.mkstemp(dir=path.parent)  # for its owner alone
    with os.fdopen(number, "wb") as file:
        file.write(private + certificate.public_bytes(serialization.Encoding.PEM))
    os.replace(temporary, path)
