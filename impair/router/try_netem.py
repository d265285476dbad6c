"""Tries netem of the running kernel, with the networks of the matrix, without disturbing any traffic.

    python3 -m impair.router.try_netem

prints the result as a JSON object, each kind of impairment tried once. Versions and configurations do not determine
what works: kernels are built without netem, and distributions backport fixes to old versions.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict

from impair.capabilities import EVERY_KIND, NetemCapabilities
from impair.interface import InterfaceError
from impair.messages import DecisionCounters
from impair.profile import Direction, Link, Profile
from impair.router.bottleneck import Bottleneck, BottleneckRefused
from impair.router.netem import Netem, NetemRefused

CLONE_NEWNET = 0x40000000
DEVICE, TRIED_BOTTLENECK = "lo", "queue-try"
TRIED_SEED = 0x4845414457494E44  # any number that the kernel would not choose


def try_netem(profiles: Iterable[Profile] = EVERY_KIND, netem: Callable[[], Netem] = Netem) -> NetemCapabilities:
    """Try netem, and each of `profiles`, on the loopback interface of a throw-away network namespace.

    A container may not make one (that takes CAP_SYS_ADMIN); then its own loopback is used, which carries no
    traffic.
    """
    found: list[NetemCapabilities] = []

    def try_apart() -> None:
        apart = ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0  # of this thread only; gone when it ends
        found.append(
            _try_loopback(
                "in a throw-away namespace" if apart else "on a container's loopback interface", profiles, netem()
            )
        )

    thread = threading.Thread(target=try_apart)
    thread.start()
    thread.join()
    return found[0]


def _try_loopback(where: str, profiles: Iterable[Profile], netem: Netem) -> NetemCapabilities:
    kernel = os.uname().release
    try:
        reading = netem.apply(DEVICE, Link(), seed=None)
        refused = _refused(netem, profiles)
        return NetemCapabilities(
            True,
            f"tried {where}",
            kernel,
            _takes_seeds(netem),
            isinstance(reading.counters, DecisionCounters),
            refused,
        )
    except (OSError, NetemRefused) as error:
        return NetemCapabilities(False, f'"{_words(error)}" (tried {where})', kernel)
    finally:
        with suppress(OSError):
            netem.clear(DEVICE)
        netem.close()


def _refused(netem: Netem, profiles: Iterable[Profile]) -> dict[str, str]:
    """{profile: the kernel's error} of those with a direction that it does not accept as written."""
    refused = {}
    for profile in profiles:
        try:
            for link in dict.fromkeys(link for direction in Direction for link in profile.links(direction)):
                netem.apply(DEVICE, link, seed=None)
                if link.queue:
                    _try_bottleneck(link)
        except (OSError, NetemRefused, BottleneckRefused, InterfaceError) as error:
            refused[profile.name] = _words(error)
    return refused


def _try_bottleneck(link: Link) -> None:
    bottleneck = Bottleneck()
    try:
        bottleneck.apply(DEVICE, TRIED_BOTTLENECK, link)
    finally:
        with suppress(OSError):
            bottleneck.clear(DEVICE, TRIED_BOTTLENECK)
        bottleneck.close()


def _words(error: Exception) -> str:
    """The kernel's error, without the parts that readers of NetemCapabilities know."""
    cause = error.__cause__ or error
    return (isinstance(cause, OSError) and cause.strerror) or str(cause)


def _takes_seeds(netem: Netem) -> bool:
    try:
        return netem.apply(DEVICE, Link(), TRIED_SEED).options.seed == TRIED_SEED
    except NetemRefused:
        return False


def main() -> None:
    """Print the capabilities of this kernel."""
    print(json.dumps(asdict(try_netem())))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
