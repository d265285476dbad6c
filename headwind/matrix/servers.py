"""The keys under `servers` in matrix.yaml: the user's images that serve arms."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Self

from pydantic import field_validator, model_validator

from headwind.matrix import values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.units import Mistake, choose, quoted, scalar
from headwind.matrix.values import Written, whole
from headwind.servers import SERVERS, Contract, Fresh, Program, Server, own_server

LONGEST_NAME = 32  # characters
LONGEST_IMAGE = 255
LONGEST_TEXT = 4000  # of a variable, or of a word of a command
# Names of hosts and facts that every testbed has (headwind/testbed/testbed.py).
NOT_ALLOWED = ("ceiling", "choice", "client", "h2load", "impair", "outside", "router", "server", "start")
INTEROP_PORT, INTEROP_PROTOCOL = 443, "h3"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Docker's grammar of references (distribution/reference): registry/path:tag@digest
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REGISTRY = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:))(?::[0-9]+)?/"
_VERSION = r"(?::[A-Za-z0-9_][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
_IMAGE = re.compile(
    rf"(?:{_REGISTRY})?{_PART}(?:/{_PART})*{_VERSION}",
    re.ASCII,
)


def server_name(value: Any) -> str:
    """`my-app`: small letters, digits and dashes. Raises Mistake."""
    text = scalar(value, "`my-app`")
    if text in SERVERS:
        raise Mistake(
            f"{quoted(text)} is a server of the lab", "another name, such as `my-app`; arms can name it as it is"
        )
    if text in NOT_ALLOWED:
        raise Mistake(f"{quoted(text)} is a name that every testbed has", "another name, such as `my-app`")
    if not _NAME.fullmatch(text) or len(text) > LONGEST_NAME:
        near = _as_name(text)
        meant = f"did you mean {quoted(near)}? " if near and near != text else ""
        raise Mistake(
            f"{quoted(text)} cannot be the name of a server",
            f"{meant}small letters, digits and dashes, such as `my-app`; at most {LONGEST_NAME} characters",
        )
    return text


def _as_name(text: str) -> str:
    """Name of a server that a text becomes with dashes in place of other characters; empty if it is not allowed."""
    near = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:LONGEST_NAME].rstrip("-")
    return "" if near in (*SERVERS, *NOT_ALLOWED) else near


def name_of_image(image: str) -> str:
    """Name for a server with this image: `nginx-1-27` for `nginx:1.27`."""
    return _as_name(image.rpartition("/")[2]) or "my-app"


def is_image(text: str) -> bool:
    """True for what Docker takes as the name of an image."""
    return _IMAGE.fullmatch(text) is not None and len(text) <= LONGEST_IMAGE


def _image(value: Any) -> str:
    text = scalar(value, "`my/app:1.2`")
    if is_image(text):
        return text
    folder, _, last = text.rpartition("/")
    near = "/".join([*filter(None, [folder]), last.partition(":")[0]]).casefold() + "".join(last.partition(":")[1:])
    words = text.split()
    if "://" in text:
        hint = f"without the scheme: {quoted(text.partition('://')[2])}"
    elif len(words) > 1 and _IMAGE.fullmatch(words[0]):
        hint = f"did you mean {quoted(words[0])}? what it runs is its `command`: [{', '.join(words[1:])}]"
    elif _IMAGE.fullmatch(near):
        hint = f"did you mean {quoted(near)}? Docker's names have small letters"
    else:
        hint = "as `docker run` takes it: `my/app:1.2`, `registry.example:5000/app` or `app@sha256:...`"
    raise Mistake(f"{quoted(text)} is not the name of an image", hint)


def _text(value: Any) -> str:
    text = scalar(value, "`8443`")
    if "\0" in text or len(text) > LONGEST_TEXT:
        raise Mistake(
            f"{quoted(text[:40])} cannot be passed to a program", f"up to {LONGEST_TEXT} characters, none of them NUL"
        )
    return text


def _variable(value: Any) -> str:
    text = scalar(value, "`PORT`")
    if not _VARIABLE.fullmatch(text):
        hint = "letters, digits and underscores, such as `LOG_LEVEL`, and not first a digit"
        if "=" in text:
            name, _, rest = text.partition("=")
            hint = f"did you mean {{{name}: {rest}}}?"
        raise Mistake(f"{quoted(text)} cannot be the name of a variable", hint)
    return text


ServerName = Annotated[
    str, Written(server_name, {"type": "string", "pattern": f"^{_NAME.pattern}$", "maxLength": LONGEST_NAME})
]
Image = Annotated[
    str, Written(_image, {"type": "string", "minLength": 1, "maxLength": LONGEST_IMAGE, "examples": ["my/app:1.2"]})
]
Text = Annotated[str, Written(_text, {"type": "string", "maxLength": LONGEST_TEXT})]
Variable = Annotated[str, Written(_variable, {"type": "string", "pattern": f"^{_VARIABLE.pattern}$"})]


def _one_of(kind: type[Contract | Fresh], what: str) -> Written:
    words = [word.value for word in kind]
    return Written(lambda value: kind(choose(scalar(value, f"`{words[0]}`"), words, what)), {"enum": words})


class ServerKeys(Keys):
    """The user's server: an image that speaks HTTP over TLS 1.3 on one port."""

    image: Image = key("as `docker run` takes it; present here, or pulled")
    command: list[Text] = key("its program with arguments, in place of the image's own", [], minItems=1)
    env: dict[Variable, Text] = key("environment variables", {}, additionalProperties=False)
    port: Annotated[int, whole(1, 65535)] = key("which it listens on, for TCP and UDP", INTEROP_PORT, INTEROP_PORT)
    ready: values.UrlPath | None = key(
        "path that must be answered with status 2xx or 3xx before each trial, over h1; without it handshakes suffice",
        None,
    )
    protocols: list[values.Protocol] = key(
        "which it speaks; `contract: quic-interop` implies [h3]", [], minItems=1, uniqueItems=True
    )
    contract: Annotated[Contract, _one_of(Contract, "a contract")] = key(
        "`quic-interop`: it follows the convention of the QUIC interop runner", Contract.PLAIN, Contract.PLAIN.value
    )
    fresh: Annotated[Fresh, _one_of(Fresh, "`restart` or `keep`")] = key(
        "before each trial: `restart` its container, or `keep` it and end its TCP connections",
        Fresh.RESTART, Fresh.RESTART.value,
    )  # fmt: skip

    @field_validator("command", mode="before")
    @classmethod
    def _in_words(cls, command: Any) -> Any:
        if isinstance(command, str) and command.strip():
            raise Mistake(f"{quoted(command)} is a single text", f"a list of words: [{', '.join(_words(command))}]")
        return command

    @field_validator("protocols")
    @classmethod
    def _each_once(cls, protocols: list[values.Protocol]) -> list[values.Protocol]:
        if not protocols:
            raise Mistake("`protocols` is empty", "at least one is needed")
        raise_any([
            Slip((index,), Mistake(f"`{protocol}` appears twice", "each is listed once"))
            for index, protocol in enumerate(protocols) if protocol in protocols[:index]
        ])  # fmt: skip
        return protocols

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Check what goes together. Raises Slips."""
        interop = self.contract is Contract.QUIC_INTEROP
        if not self.protocols and not interop:
            hint = "protocols: which it speaks, such as [h1, h2]; only those are measured"
            raise Slips([Slip(("protocols",), Mistake("`protocols` is missing", hint), at_key=True)])
        slips = []
        if interop and self.port != INTEROP_PORT:
            message = f"a server with `contract: quic-interop` listens on port {INTEROP_PORT}"
            slips.append(Slip(("port",), Mistake(message, "remove `port`")))
        if interop and self.spoken != (INTEROP_PROTOCOL,):
            message = f"`contract: quic-interop` is a server of {INTEROP_PROTOCOL} only"
            slips.append(Slip(("protocols",), Mistake(message, "remove `protocols`")))
        if self.ready and "h1" not in self.spoken:
            hint = "remove it: without `ready` the lab waits for a handshake of each protocol"
            slips.append(Slip(("ready",), Mistake("`ready` is requested over h1, which is not in `protocols`", hint)))
        raise_any(slips)
        return self

    @property
    def spoken(self) -> tuple[str, ...]:
        """The protocols, by their names."""
        return tuple(protocol.value for protocol in self.protocols) or (INTEROP_PROTOCOL,)

    def to_model(self, name: str) -> Server:
        """The server of this name."""
        return own_server(name, Program(
            self.image, self.spoken, tuple(self.command), tuple(self.env.items()), self.port, self.ready or "",
            self.contract, self.fresh,
        ))  # fmt: skip


def _words(command: str) -> list[str]:
    """The words of a command line, without its quotes; as they stand if quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


OF_SERVERS = frozenset(ServerKeys.model_fields) - {"protocols"}  # keys that no arm has; `protocols` may be `protocol`
