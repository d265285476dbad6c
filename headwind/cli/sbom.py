"""The bill of materials of the lab: CycloneDX 1.6 as JSON, of the images' Debian packages and the Python packages."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headwind.report.files import write_page
from headwind.testbed.docker import Docker, docker
from headwind.testbed.images import Images
from headwind.testbed.packages import Package, packages_of

LOCK = "requirements.lock"
NGHTTP2 = "client/fetch-nghttp2.sh"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
Component = dict[str, Any]


def write_sbom(images: Images, into: Path, root: Path, docker: Docker = docker) -> int:
    """Write the bill of materials of these images and of the lab itself; return the number of its components.

    It has no date, and its serial number is a hash of its content: equal inputs give equal files. Raises DockerError,
    UsageError.
    """
    of_images = {name: packages_of(images.reference(name), docker) for name in images.tags}
    debian = [_debian(package, where) for package, where in sorted(_places(of_images).items())]
    components = [*debian, *python_packages((root / LOCK).read_text()), nghttp2((root / NGHTTP2).read_text())]
    described = [_image(name, images.ids[name], images.reference(name)) for name in images.tags]
    document = bill([*described, *components])
    write_page(into, json.dumps(document, indent=1) + "\n")
    return len(document["components"])


def bill(components: Iterable[Component]) -> Component:
    """A CycloneDX document of components."""
    ordered = sorted(components, key=lambda each: str(each["bom-ref"]))
    digest = hashlib.sha256(json.dumps(ordered).encode()).digest()
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": uuid.UUID(bytes=digest[:16], version=5).urn,
        "metadata": {"component": {"type": "application", "name": "headwind", "bom-ref": "headwind"}},
        "components": ordered,
    }  # fmt: skip


def _places(of_images: Mapping[str, Iterable[Package]]) -> dict[Package, list[str]]:
    """The images that have each package."""
    found: dict[Package, list[str]] = {}
    for name, packages in of_images.items():
        for package in packages:
            found.setdefault(package, []).append(name)
    return found


def _debian(package: Package, images: Iterable[str]) -> Component:
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}?arch={package.architecture}"
    return {
        "type": "library", "bom-ref": purl, "name": package.name, "version": package.version, "purl": purl,
        "licenses": [{"license": {"name": name}} for name in package.licences],
        "properties": [{"name": "headwind:image", "value": image} for image in sorted(images)],
    }  # fmt: skip


def _image(name: str, identity: str, reference: str) -> Component:
    digest = {"alg": "SHA-256", "content": identity.removeprefix("sha256:")}
    return {"type": "container", "bom-ref": f"image:{name}", "name": reference, "hashes": [digest]}


def python_packages(lock: str) -> Iterator[Component]:
    """The components of a lock file, with their hashes, and the licences of those that are installed here."""
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        found = PINNED.match(entry)
        if not found:
            continue
        name, version = found.groups()
        purl = f"pkg:pypi/{name}@{version}"
        yield {
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [{"license": {"name": licence}} for licence in _python_licences(name)],
            "hashes": [{"alg": "SHA-256", "content": each} for each in sorted(HASH.findall(entry))],
        }  # fmt: skip


def nghttp2(script: str) -> Component:
    """The component nghttp2, whose sources h2load is built from, as the script that fetches them pins it."""
    pinned = dict(re.findall(r"^(version|sha256)=(\S+)$", script, re.MULTILINE))
    purl = f"pkg:github/nghttp2/nghttp2@v{pinned['version']}"
    return {
        "type": "application", "bom-ref": purl, "name": "nghttp2", "version": pinned["version"], "purl": purl,
        "licenses": [{"license": {"id": "MIT"}}], "hashes": [{"alg": "SHA-256", "content": pinned["sha256"]}],
        "properties": [{"name": "headwind:image", "value": "client"}],
    }  # fmt: skip


def _python_licences(name: str) -> list[str]:
    try:
        about = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return []
    fields: Any = about
    classifiers = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or () if "License ::" in each]
    text = fields.get("License-Expression") or ", ".join(classifiers) or (fields.get("License") or "").split("\n")[0]
    return [text[:80]] if text else []
