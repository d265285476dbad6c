"""The user's site on real servers: every file whole over every protocol, whatever its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product

import pytest

from headwind.arm import PLAIN, Arm
from headwind.model import Block, Condition, Outcome, Result
from headwind.servers import SERVERS
from headwind.settings import PORTS, TrialRules
from headwind.site import SiteFile
from headwind.site_folder import Snapshot, read_site
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import docker
from headwind.testbed.images import Images
from headwind.testbed.operations import FETCH
from headwind.testbed.path import Path
from headwind.testbed.site_copy import COPY
from headwind.trial.start import UnexpectedState, examine_start
from headwind.trial.trial import run_trial
from headwind.workloads.files import Files
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Direction, Link, Loss, Profile
from tests.net.builds import built

pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.pages]

SIZES = {
    "index.html": 12_000, "app.css": 300, "Über uns.html": 4_000, "docs/Größen und Maße.html": 3_000,
    "50% off.png": 20_000, "what?.js": 2_500, "#1.css": 700, "a+b & 'c'.js": 900, "日本.webp": 25_000,
    "~print.css": 310, "semi;colon.txt": 320, "back\\slash.txt": 330, "a%20b.txt": 340, "-rf": 350,
    "img/photo 1.jpg": 200_000, "empty.json": 0, f"long/{'n' * 200}.txt": 360, "1k": 1000, "bytes/15000": 10,
    "ticket": 20,
}  # fmt: skip
SPOKEN = [(name, plain) for name, server in SERVERS.items() for plain in PLAIN if server.speaks(plain.name)]
LOSSY = Profile("lossy", Link(Delay(0.01)), Link(Delay(0.01), Loss(0.02)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("site")
    for number, (name, size) in enumerate(SIZES.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes((number + place) % 251 for place in range(size)))
    return read_site(folder)


@pytest.fixture(scope="module")
def bed(images: Images, site: Snapshot) -> Iterator[testbeds.Testbed]:
    """All servers of the lab, with the site."""
    tags = built(SERVERS).tags
    with ExitStack() as stack:
        spec = BedSpec({**images.tags, **tags}, servers=tuple(SERVERS.values()), content=site)
        testbed = stack.enter_context(testbeds.Testbed.up(spec))
        for path in testbed.paths.values():
            examine_start(path)
        yield testbed


def files_of(site: Snapshot, name: str) -> tuple[SiteFile, ...]:
    """The files that a server delivers: nghttpd refuses paths with a backslash."""
    return tuple(file for file in site.site.files if name != "nghttpd" or "\\" not in file.path)


def page(site: Snapshot, name: str = "nginx") -> Files:
    files = files_of(site, name)
    return Files("page", len(files), 0, 0, path="/", paths=tuple(f"/{file.path}" for file in files), files=files)


def tried(path: Path, plain: Arm, workload: H2load, profile: Profile = LOSSY) -> Result:
    """A trial; again where the machine was so busy that its network could not be proven."""
    arm = plain if path.server_name == "nginx" else replace(
        plain, name=f"{plain}-{path.server_name}", server=SERVERS[path.server_name]
    )  # fmt: skip
    (trial,) = Block(Condition(profile, workload), 0, (arm,), dict.fromkeys(Direction, 3)).trials()
    for _ in range(3):
        if (result := run_trial(path, trial, TrialRules(30.0))).outcome is not Outcome.INVALID:
            return result
    return run_trial(path, trial, TrialRules(30.0))


def write(container: str, file: str, data: bytes) -> None:
    """Change a file in place: nginx keeps it open. It is only for reading, also for a root without capabilities."""
    program = f"import os; os.chmod({file!r}, 0o644); file = open({file!r}, 'r+b'); file.write(bytes({list(data)}))"
    docker("exec", container, "python3", "-c", program)


@pytest.mark.parametrize(("name", "plain"), SPOKEN)
def test_every_file_comes_whole_over_every_protocol_and_port(
    bed: testbeds.Testbed, site: Snapshot, name: str, plain: Arm
) -> None:
    path = bed.path(name)
    ports = [*PORTS.values()][: 1 if name == "nghttpd" else None]
    for port, file in product(ports, files_of(site, name)):
        found = path.client.call(
            FETCH, 20.0, protocol=plain.name, host=path.server_ip, port=port, path=file.url, first_byte=0,
            bytes_wanted=file.bytes, timeout_s=10.0,
        )  # fmt: skip
        assert (found.error, found.bytes, found.sha256) == ("", file.bytes, file.sha256), file.path


@pytest.mark.parametrize(("name", "plain"), SPOKEN)
def test_a_trial_has_every_file_with_its_hash_over_a_browsers_connections(
    bed: testbeds.Testbed, site: Snapshot, name: str, plain: Arm
) -> None:
    result, files = tried(bed.path(name), plain, page(site, name)), files_of(site, name)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    delivered = [(each["bytes"], each["sha256"]) for each in result.samples["objects"]]
    assert delivered == [(file.bytes, file.sha256) for file in files]
    assert len(result.samples["samples"]["connect_s"]) == (6 if plain.name == "h1" else 1)
    assert result.metrics["bytes_body"] == sum(file.bytes for file in files)
    started, took = (result.samples["samples"][f"request_{name}_s"] for name in ("start", "took"))
    assert max(map(sum, zip(started, took, strict=True))) == pytest.approx(result.metrics["total_s"], abs=0.001)
    round_trips = 2 if plain.name == "h3" else 3  # handshakes, and the shortest answer
    assert result.metrics["total_s"] > round_trips * 0.02


@pytest.mark.parametrize("plain", PLAIN, ids=str)
def test_nginx_delays_every_file_whatever_its_name(bed: testbeds.Testbed, site: Snapshot, plain: Arm) -> None:
    result = tried(bed.path("nginx"), plain, replace(page(site), server_delay_s=0.05), Profile("clean"))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.samples["served"]["count"] == len(SIZES)


@pytest.mark.parametrize("name", SERVERS)
def test_a_file_that_h2load_fetches_is_compared_too(bed: testbeds.Testbed, site: Snapshot, name: str) -> None:
    file = site.site.file("/img/photo 1.jpg")
    assert file
    workload = H2load("one", 20, 2, 2, path="/img/photo 1.jpg", files=(file,))
    for plain in (each for each in PLAIN if SERVERS[name].speaks(each.name)):
        result = tried(bed.path(name), plain, workload, Profile("clean"))
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        assert result.metrics["bytes_body"] == 20 * file.bytes
        assert result.samples["content"]["sha256"] == file.sha256


@pytest.mark.parametrize("name", SERVERS)
def test_an_altered_copy_is_found_by_a_trial_and_by_the_next_start(
    bed: testbeds.Testbed, site: Snapshot, name: str
) -> None:
    path = bed.path(name)
    container, file = path.server_container, f"{COPY}/app.css"
    try:
        write(container, file, bytes(SIZES["app.css"]))
        altered = tried(path, PLAIN[1], page(site, name), Profile("clean"))
        assert altered.outcome is Outcome.WRONG_CONTENT
        assert "app.css had other content" in altered.reason
        with pytest.raises(UnexpectedState, match=r"app\.css is not the content's"):
            examine_start(path)
    finally:
        write(container, file, site.data["app.css"])
    assert tried(path, PLAIN[1], page(site, name), Profile("clean")).outcome is Outcome.OK


@pytest.mark.parametrize("name", SERVERS)
def test_nobody_but_root_could_write_to_the_site(bed: testbeds.Testbed, name: str) -> None:
    container = bed.path(name).server_container
    found = docker("exec", container, "find", COPY, "(", "-perm", "/022", "-o", "-not", "-user", "root", ")")
    assert found == ""
