"""Keys and certificates of one cluster: one CA, ECDSA P-256, a week of life."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("local-cluster-ca", None)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        signed = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(constraints, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, file: str, name: str, group: str | None = None, sans: Iterable[str] = ()
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = _builder(_name(name, group), self._name, key.public_key()).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        names = [_san(text) for text in sans]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = Pair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def service_account_keys(self) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._folder / "sa.pub", self._folder / "sa.key")
        _write_key(pair.key, key)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        pair.certificate.write_bytes(public)
        return pair

    def kubeconfig(self, path: Path, server: str, pair: Pair) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
            "clusters": [
                {
                    "name": "local",
                    "cluster": {"server": server, "certificate-authority": str(self.ca)},
                }
            ],
            "users": [
                {
                    "name": "local",
                    "user": {
                        "client-certificate": str(pair.certificate),
                        "client-key": str(pair.key),
                    },
                }
            ],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)  # noqa: TID251 - a certificate is about the wall clock
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFE)
    )


def _name(common: str, group: str | None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _san(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
