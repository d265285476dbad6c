"""The specification of a testbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwind.arm import CUBIC, Congestion
from headwind.engines import AUTO
from headwind.servers import NGINX, Server
from headwind.site_folder import Snapshot
from headwind.testbed.own_server import OwnImage
from impair.profile import Profile


@dataclass(frozen=True, slots=True)
class BedSpec:
    """A testbed to be started: the images' tags by name, the usual congestion control, the engine and the servers.

    `engine` is AUTO or the name of one (headwind/engines.py). `profiles` are the networks that it must be able to
    provide. `own_images` are those of the user's servers, by server. `browsers` run next to the client. `content`
    is the user's site, if there is one.
    """

    tags: Mapping[str, str]
    congestion: Congestion = CUBIC
    engine: str = AUTO
    profiles: tuple[Profile, ...] = ()
    servers: tuple[Server, ...] = (NGINX,)
    own_images: Mapping[str, OwnImage] = field(default_factory=dict)
    browsers: tuple[str, ...] = ()
    content: Snapshot | None = None
