"""`lab.py try-server`: shows what a server is and has, and whether every protocol gets the same bytes from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwind.arm import Protocol
from headwind.cli.dependencies import Dependencies
from headwind.errors import UsageError
from headwind.format import counted
from headwind.matrix.units import meant, quoted
from headwind.servers import Server
from headwind.settings import UNLIMITED
from headwind.site import Site
from headwind.site_folder import snapshot_of
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import DockerError, Say, docker
from headwind.testbed.images import needed
from headwind.testbed.operations import FETCH
from headwind.testbed.path import Path
from impair.messages import Fetched
from servers.objects import content

OBJECT = "/1m"
FETCH_S = 10.0
UNKNOWN = "unknown"
# In the client's container: the certificate is trusted for this one connection, to have the library read it.
CERTIFICATE = """
import socket, ssl, sys
address = sys.argv[1], int(sys.argv[2])
context = ssl.create_default_context(cadata=ssl.get_server_certificate(address, timeout=5))
context.check_hostname, context.verify_flags = False, ssl.VERIFY_X509_PARTIAL_CHAIN
with socket.create_connection(address, 5) as plain, context.wrap_socket(plain, server_hostname="server") as secure:
    found = secure.getpeercert()
print(", ".join("=".join(pair) for part in found["subject"] for pair in part), "until", found["notAfter"])
"""


def try_server(
    name: str, servers: Mapping[str, Server], say: Say, dependencies: Dependencies, site: Site | None = None
) -> int:
    """Bring up a testbed with one of these servers, and print what it reports and what it sends, the site's files too.

    Returns 0 if every protocol that it speaks gets the expected bytes, else 1. Raises UsageError for an unknown server.
    """
    if name not in servers:
        hint = f"{meant(name, list(servers))}; `--matrix FILE` adds the servers of a matrix"
        raise UsageError(f"try-server: {quoted(name)} is not a server; {hint}")
    dependencies.sweep(say, False)
    server = servers[name]
    own = {name: dependencies.ensure_own_image(server, say)} if server.program else {}
    images = dependencies.ensure_images(say, needed([server.kind]))
    spec = BedSpec(images.tags, servers=(server,), own_images=own, content=snapshot_of(site) if site else None)
    with dependencies.up(spec, say) as testbed:
        path = testbed.path(name)
        for line in described(path.server.call("info")):
            say(line)
        say(f"certificate: {certificate(path)}")
        wrong = dict[tuple[str, str], list[str]]()  # protocols by path and fault
        for protocol in (each for each in Protocol if server.speaks(each.value)):
            for wanted in wanted_of(site):
                found = fetched(path, protocol, wanted)
                if wanted.path == OBJECT:
                    text = found.error or f"{found.alpn}, {found.bytes} bytes, sha256 {found.sha256}"
                    say(f"{protocol.value}: {text}")
                if fault := fault_of(found, protocol, wanted):
                    wrong.setdefault((wanted.path, fault), []).append(protocol.value)
    for (wrong_path, fault), protocols in wrong.items():
        say(f"{wrong_path} is wrong over {', '.join(protocols)}: {fault}")
    also = f" and of {counted(len(site.files), 'file')} of the content" if site else ""
    if not wrong:
        say(f"every protocol gives the bytes of {OBJECT}{also}")
    return 1 if wrong else 0


def described(info: dict[str, Any]) -> Iterator[str]:
    """The lines about a server's identity and settings (servers/contract.py, Info)."""
    behind = f", in front of {info['behind']}" if info.get("behind") else ""
    yield f"server: {info['name']} {info['version']}{behind}"
    yield f"TLS library: {info.get('tls_library') or UNKNOWN}"
    yield f"QUIC congestion control: {info.get('quic_congestion') or UNKNOWN}"
    yield f"features: {', '.join(info['offers']) or 'none'}"
    streams = ", ".join(f"{protocol} {most}" for protocol, most in info["streams"].items())
    yield f"streams per connection: {streams or UNKNOWN}"
    for port, windows in info["windows"].items():
        sizes = ", ".join(f"{key} {UNKNOWN if size is None else size}" for key, size in windows.items())
        yield f"windows of port {port}: {sizes}"


def certificate(path: Path) -> str:
    """Subject and end of validity of the certificate that the client gets, or the reason why they are unknown."""
    if "client" not in path.containers:
        return UNKNOWN
    port = str(path.port(UNLIMITED))
    try:
        return docker("exec", path.containers["client"], "python3", "-c", CERTIFICATE, path.server_ip, port).strip()
    except DockerError as error:
        return f"{UNKNOWN}: {str(error).splitlines()[-1].strip()}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object to fetch: the path to request, and the size and the hash that it must have."""

    path: str
    bytes: int
    sha256: str


def wanted_of(site: Site | None) -> Iterator[Wanted]:
    """OBJECT, then every file of a site."""
    data = content(OBJECT) or b""
    yield Wanted(OBJECT, len(data), hashlib.sha256(data).hexdigest())
    yield from (Wanted(file.url, file.bytes, file.sha256) for file in (site.files if site else ()))


def fault_of(found: Fetched, protocol: Protocol, wanted: Wanted) -> str:
    """The error of a fetch, another protocol than requested, or other bytes than expected; empty without a fault."""
    if found.error:
        return found.error
    if found.alpn != protocol.alpn:
        return f"the server negotiated {found.alpn or 'no protocol'} instead of {protocol.alpn}"
    if found.sha256 != wanted.sha256:
        received = f"{counted(found.bytes, 'byte')} with sha256 {found.sha256}"
        return f"expected {counted(wanted.bytes, 'byte')} with sha256 {wanted.sha256}, received {received}"
    return ""


def fetched(path: Path, protocol: Protocol, wanted: Wanted) -> Fetched:
    """The client's report of fetching an object over the unimpaired path."""
    return path.client.call(
        FETCH, FETCH_S + 5.0, path.agents, protocol=protocol.value, host=path.server_ip,
        port=path.port(UNLIMITED), path=wanted.path, first_byte=0, bytes_wanted=wanted.bytes, timeout_s=FETCH_S,
    )  # fmt: skip
