"""Images that stay on the host: listed with what removes them, and removed unless a container uses them."""

from __future__ import annotations

from headwind.own_command import lab_command
from headwind.testbed.docker import DockerError
from headwind.testbed.kept_images import KeptImage, kept_images, remove_images, staying

LEFT, FOREIGN = (f"sha256:{digit * 64}" for digit in "01")


class Daemon:
    """A Docker with two images of the lab, of which one is used, and a nameless layer of a build."""

    def __init__(self) -> None:
        self.images = {"headwind-client:abc": "141000000", "headwind-nginx:def": "427000000", LEFT: "5"}
        self.used = {"headwind-nginx:def"}

    def __call__(self, *arguments: str, **_: object) -> str:
        match arguments:
            case ("image", "ls", "-q", *rest):
                assert "dangling=true" in rest
                return f"{LEFT}\n{FOREIGN}\n"
            case ("history", *_, name):
                return "/bin/sh -c /build/build-h2load.sh /build\nCOPY" if name == LEFT else "/bin/sh -c make\nCOPY"
            case ("image", "ls", "--filter", "reference=headwind-*", *_):
                return "\n".join([*(name for name in self.images if name != LEFT), "headwind-client:<none>"])
            case ("image", "inspect", _, _, name):
                return self.images[name]
            case ("image", "rm", name) if name in self.used:
                raise DockerError("`docker image rm` failed with status 1:\n  conflict: container 77 is using it")
            case ("image", "rm", name):
                del self.images[name]
                return ""
        raise AssertionError(arguments)


def test_images_and_nameless_layers_of_builds_are_listed() -> None:
    found = kept_images(Daemon())
    assert [image.name for image in found] == ["headwind-client:abc", "headwind-nginx:def", LEFT]
    assert found[0].size_bytes == 141_000_000


def test_images_are_removed_unless_a_container_uses_them() -> None:
    daemon, said = Daemon(), list[str]()
    assert remove_images(said.append, daemon) == 2
    assert [*daemon.images] == ["headwind-nginx:def"]
    assert "headwind-nginx:def stays: conflict: container 77 is using it" in said


def test_the_commands_that_remove_what_stays_are_named() -> None:
    said = "\n".join(staying([KeptImage("headwind-client:abc", 141_000_000)]))
    assert "headwind-client:abc (141 MB" in said
    assert "1 image of the lab stays, so" in said
    assert f"`{lab_command('down', '--images')}` removes it\n" in said
    two = "\n".join(staying([KeptImage("a", 1), KeptImage("b", 1)]))
    assert "2 images of the lab stay, so" in two
    assert "removes them\n" in two
    assert "docker image rm debian:" in said
    assert "docker builder prune" in said
    assert [*staying([])] == ["no images of the lab are on this host"]
