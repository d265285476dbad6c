"""Examines the router's container from outside its user-mode kernel: its interfaces are in the path, too.

It is started as `python3 -m impair.router.outside --client-subnet CIDR --server-subnet CIDR`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from impair import interface
from impair.baseline import deviations
from impair.fingerprint import fingerprint
from impair.wire import serve


def examine(names: Sequence[str], subnets: Sequence[str]) -> list[str]:
    """Deviations of this container, as text; TCP's settings and its way out do not matter."""
    plain = deviations(names, [*subnets, "0.0.0.0/0"], endpoint=True)
    return [*plain, *interface.odd_offloads(names, interface.GLUEING)]


def main() -> None:
    """Answer on standard input and output until the input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for side in ("client", "server"):
        parser.add_argument(f"--{side}-subnet", metavar="CIDR", required=True)
    subnets = list(vars(parser.parse_args()).values())
    names = [interface.interface_in(subnet) for subnet in subnets]
    serve({
        "fingerprint": lambda: fingerprint(transport=False), "examine": lambda: examine(names, subnets),
        "veth_peers": lambda: interface.veth_peers(names),
    })  # fmt: skip


if __name__ == "__main__":
    main()
