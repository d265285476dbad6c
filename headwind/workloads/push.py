"""The workload kind `push`: a page and its only picture, which the server pushes or the client requests.

client/nghttp.py carries it out with nghttp: libcurl's Python module, h2load and browsers accept no pushes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from headwind.format import counted
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake
from headwind.matrix.workload import WorkloadKeys
from headwind.metric import Better, Metric, Rate, Use, Workload
from headwind.servers import Offer
from headwind.workloads.h2load import BODY, TOTAL
from headwind.workloads.transfer import HANDSHAKE
from servers.objects import LEAST_PICTURE_BYTES, document_path, picture_path, size_of

OBJECT = Metric("object_s", "time of the picture alone", "picture", "s", use=Use.COMPARED,
                meaning="from its request, or its announcement by the server, to its last byte")  # fmt: skip
PUSHED = Metric("pushed", "objects that the server pushed", "pushed", better=Better.MORE, use=Use.SHOWN)


class Delivery(StrEnum):
    """Reason why the server sends the picture."""

    REQUESTED = "requested"  # the client's request, once it has parsed the page; it refuses pushes
    PUSHED = "pushed"  # the request for the page (RFC 9113, section 8.4)


@dataclass(frozen=True, slots=True)
class Push(Workload):
    """Workload of a page of one picture over one connection."""

    kind: ClassVar[str] = "push"
    program: ClassVar[str] = "nghttp"
    metrics: ClassVar[tuple[Metric, ...]] = (TOTAL, OBJECT, replace(HANDSHAKE, use=Use.SHOWN), PUSHED, BODY)
    rates: ClassVar[tuple[Rate, ...]] = ()
    handshake: ClassVar[tuple[Metric, ...]] = (HANDSHAKE,)
    payload: ClassVar[Metric | None] = BODY
    has_client_windows: ClassVar[bool] = False  # those windows are nghttp's
    protocols: ClassVar[tuple[str, ...]] = ("h2",)

    size_bytes: int
    delivery: str = Delivery.REQUESTED.value

    @property
    def needs(self) -> frozenset[Offer]:
        """Features of the server without which the workload cannot be carried out."""
        return super(Push, self).needs | (frozenset({Offer.PUSH}) if self.delivery == Delivery.PUSHED else frozenset())

    def asked(self) -> dict[str, Any]:
        """The request as client/nghttp.py takes it."""
        return {"path": self.object_paths()[0], "pushed": self.delivery == Delivery.PUSHED}

    def object_path(self) -> str:
        """The path of the picture, whose content is compared, as the page has it."""
        return f"{picture_path(self.size_bytes)}?1"

    def object_paths(self) -> tuple[str, ...]:
        """The paths of the page and of the picture."""
        return document_path(1, self.size_bytes), self.object_path()

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """Mismatch of the bytes of the page or of the picture; empty if none, or if a request failed."""
        del object_bytes
        for each in answer.get("objects") or ():
            expected = size_of(each["path"])
            if each["status"] == 200 and each["bytes"] != expected:
                return f"{each['path']} had {each['bytes']} bytes instead of {expected}"
        return ""

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """The objects that did not arrive; empty if both did."""
        arrived = {each["path"] for each in answer.get("objects") or () if each["status"] == 200}
        missing = [path for path in self.object_paths() if path not in arrived]
        return f"{' and '.join(missing)} did not arrive" if missing else ""

    def contradiction(self, answer: Mapping[str, Any]) -> str:
        """Another delivery than the requested one; empty if there is none."""
        objects = answer["objects"]
        pushed, wanted = [each["path"] for each in objects if each["pushed"]], []
        if self.delivery == Delivery.PUSHED:
            wanted = [self.object_path()]
        if pushed != wanted or len(objects) != len(self.object_paths()):
            return f"pushed were {pushed or 'no objects'} instead of {wanted or 'none'}, of {len(objects)} in total"
        return ""

    def size(self) -> float:
        """Number of objects."""
        return 2.0

    def least(self) -> tuple[int, int]:
        """Rounds: the page, then the picture unless it is pushed. Bytes: those of the picture."""
        return 1 if self.delivery == Delivery.PUSHED else 2, self.size_bytes

    @classmethod
    def method(cls) -> str:
        """Definition of its times."""
        return (
            "The page and its picture are fetched by nghttp. The total time is from before the connection is opened to "
            "the last byte. A client that wants the picture pushed accepts pushes, the other one refuses them "
            "(SETTINGS_ENABLE_PUSH); server and page are the same. Each trial counts the objects that were pushed. "
            "Server push is history: browsers and nginx have given it up."
        )

    def brief(self) -> str:
        """The picture's size and its delivery as a text."""
        how = "the server pushes" if self.delivery == Delivery.PUSHED else "the client requests"
        return f"a page with one picture of {counted(self.size_bytes, 'byte')}, which {how}"

    def line(self, metrics: Mapping[str, float]) -> str:
        """Figures of a trial's line: `   0.812 s for page and picture`."""
        return f"{metrics[TOTAL.key]:8.3f} s for page and picture" if TOTAL.key in metrics else ""


DeliveryKey = Annotated[str, values.choice([each.value for each in Delivery], "a delivery")]


class PushKeys(WorkloadKeys):
    """A page and its only picture, which the server pushes or the client requests."""

    model: ClassVar[type[Workload]] = Push
    same_for_all: ClassVar[frozenset[str]] = WorkloadKeys.same_for_all | {"size"}

    kind: Literal["push"] = key("the kind of the workload")
    size: values.ObjectBytes = key(f"of the picture, at least {LEAST_PICTURE_BYTES} bytes")
    delivery: DeliveryKey = key(
        "`requested`, or `pushed`: sent with the page, by nghttpd only", "requested", "requested"
    )

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        if self.size < LEAST_PICTURE_BYTES:
            message = f"{counted(self.size, 'byte')} are too few for a picture"
            raise Slips([Slip(("size",), Mistake(message, f"at least {LEAST_PICTURE_BYTES}B"))])
        return self

    def to_model(self, name: str) -> Push:
        """Convert the keys to the workload of this name."""
        return Push(name, self.size, self.delivery)
