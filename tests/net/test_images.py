"""Every image, with this tree's files in it. They are built while other tests run, so that none has to wait."""

from __future__ import annotations

import hashlib
import json

import pytest

from headwind.testbed.docker import docker
from headwind.testbed.images import IMAGES, Images, Sources
from tests.net.builds import built
from tests.net.kernels import KERNELS, with_kernel_of

pytestmark = [pytest.mark.timeout(900, func_only=True), pytest.mark.images, pytest.mark.usefixtures("images")]

READ = """
import hashlib, json, pathlib
root = pathlib.Path("/opt/headwind")
files = {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}
print(json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in files.items()}))
"""


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_has_the_files_of_this_tree(name: str) -> None:
    image = built([name]).reference(name)
    there = json.loads(docker("run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-c", READ))
    ours = {file.path: hashlib.sha256(file.content).hexdigest() for file in Sources.read(IMAGES[name]).files}
    assert {path: there.get(path) for path in ours} == ours


@pytest.mark.parametrize("suite", KERNELS)
def test_the_router_takes_an_older_kernel_with_its_modules_and_no_other(images: Images, suite: str) -> None:
    router = with_kernel_of(suite, images).reference("impair")
    modules = docker("run", "--rm", "--network", "none", router, "ls", "/usr/lib/uml/modules").split()
    assert [name.startswith(f"{KERNELS[suite]}.") for name in modules] == [True]
