"""The key `congestion` of matrix.yaml: congestion control of both transports."""

from __future__ import annotations

from typing import Annotated

from headwind.arm import Congestion
from headwind.matrix import values
from headwind.matrix.direction import Keys, key
from headwind.matrix.values import Short


class CongestionKeys(Keys):
    """Congestion control of TCP and of QUIC, on both endpoints."""

    tcp: values.TcpCongestion = key("the kernel's, for h1 and h2", "cubic")
    quic: values.QuicCongestion = key("nginx's, for h3", "cubic")

    @property
    def written(self) -> dict[str, str]:
        """What was said: of both or of one."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def to_model(self) -> Congestion:
        """Of both."""
        return Congestion(self.tcp, self.quic)


OneOrBoth = Annotated[CongestionKeys, Short(("tcp", "quic"))]
