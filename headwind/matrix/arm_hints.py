"""Hints for mistakes in `arms`, and in keys that name arms and protocols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwind.arm import ARM_NAME, BROWSER_CONNECTIONS, Protocol
from headwind.format import enumerated
from headwind.matrix.levels import Path
from headwind.matrix.mistakes import MissingKey, Slip, UnknownKey, value_at
from headwind.matrix.servers import OF_SERVERS, is_image, name_of_image
from headwind.matrix.shapes import PROTOCOLS, of_each, shown
from headwind.matrix.spelling import nearest, synonym
from headwind.matrix.units import harmless, listed, quoted
from headwind.matrix.values import QUIC_CONGESTION, TCP_CONGESTION
from headwind.servers import NGINX, SERVERS
from headwind.settings import Windows

UNENCRYPTED = {"h1c", "h2c"}
TLS = "every protocol of the lab runs over TLS"
NAMING = ("compare", "selfcheck", "find")


def of_arm(slip: Slip, tree: Mapping[str, Any]) -> str:
    """Hint for a mistake in `arms` or in the name of an arm or a protocol; empty without a better one."""
    path = slip.path
    written = value_at(tree, path)
    if path[0] == "protocols" and isinstance(written, dict | str):
        return _of_protocol(written, tree) if isinstance(written, str) and len(path) == 2 else _by_server(written)
    is_name = path[0] in NAMING and len(path) > 1 and path != ("find", "crossover")
    if is_name and isinstance(written, str) and (found := _of_name(slip, written, tree)):
        return found
    is_by_protocol = isinstance(written, dict) and written and written.keys() <= set(PROTOCOLS)
    if path[0] == "workloads" and len(path) == 3 and is_by_protocol:
        return _of_each_protocol(path, written, tree)
    if path[-2:-1] == ("congestion",) and path[-1] in PROTOCOLS:
        return f"did you mean `{Protocol(path[-1]).transport}`? {path[-1]} runs over it"
    if found := _of_congestion(path, written, tree):
        return found
    if path == ("server",) or (path[0] == "servers" and (len(path) == 1 or slip.at_key)):
        return _of_servers(path, written, tree)
    if path == ("arms",) and isinstance(written, list):
        return _of_names(written, tree)
    if path[0] != "arms" or len(path) < 2:
        return ""
    name, arm = str(path[1]), value_at(tree, path[:2])
    return _of_entry(slip, name, arm, tree) if len(path) == 2 else _of_key(slip, name, arm, tree)


def _by_server(written: Any) -> str:
    """Hint for `{h1: nginx, h3: caddy}` in place of the protocols: another server than nginx is an arm's."""
    if not isinstance(written, dict) or not written or not {*written} <= {*PROTOCOLS}:
        return ""
    if not all(isinstance(value, str) and value in SERVERS for value in written.values()):
        return ""
    plain = [name for name, server in written.items() if server == NGINX.name]
    arms = {f"{name}-{server}": {"protocol": name, "server": server} for name, server in written.items()
            if server != NGINX.name}  # fmt: skip
    protocols = f"protocols: [{', '.join(plain)}]" if plain else ""
    return f"a server is an arm's: {' and '.join(filter(None, [protocols, f'arms: {shown(arms)}' if arms else '']))}"


def _of_each_protocol(path: Path, written: Mapping[str, Any], tree: Mapping[str, Any]) -> str:
    """Hint for a workload's key with a value for each protocol."""
    kind = value_at(tree, (*path[:2], "kind"))
    if (kind, path[2]) == ("objects", "connections") and written == {
        name: str(BROWSER_CONNECTIONS[name]) for name in written
    }:
        return "remove it: `objects` opens 6 connections over h1, and 1 over h2 and h3"
    arms = {f"{name}-{value}": {"protocol": name, path[2]: value} for name, value in written.items()}
    return f"settings that differ between protocols belong to arms: arms: {shown(arms)}"


def _of_name(slip: Slip, written: str, tree: Mapping[str, Any]) -> str:
    """Hint for a protocol or an arm that the file does not have; empty if the name is close to one that it has."""
    if written in PROTOCOLS and not slip.at_key:
        named = tree["arms"] if isinstance(tree.get("arms"), dict) else {}
        alike = [str(name) for name in named if str(name).startswith(f"{written}-")]
        another = f"name {' or '.join(map(quoted, alike))}" if alike else "name another"
        return f"{quoted(written)} is not compared in this file: {another}, or add it to `protocols`"
    parts, arms = _split(written), tree.get("arms")
    if not parts or slip.path[1] in ("again", "slower") or (isinstance(arms, dict) and written in arms):
        return ""
    if "did you mean" in slip.mistake.hint and not _override(*parts, tree):
        return ""
    plain, word = parts
    usual = ("congestion", _usual_control(tree)), ("server", NGINX.name)
    if (override := _override(plain, word, tree)) in usual and plain in tree.get("protocols", ()):
        if _repeats(slip.path, plain, tree):
            return f"{quoted(written)} would be {quoted(plain)}, and this comparison is listed already: remove one"
        what = "server" if override == usual[1] else "congestion control"
        return f"did you mean `{plain}`? its {what} is {word}"
    own = f"name {enumerated(map(quoted, map(str, arms)), 'or')}, or " if isinstance(arms, dict) and arms else ""
    return f"{own}define it under `arms`: arms: {{{written}: {_pair(*parts, tree)}}}{_rest(*parts, tree)}"


def _repeats(path: Sequence[str | int], name: str, tree: Mapping[str, Any]) -> bool:
    """True if a pair of `compare` would be there twice with this name at its path."""
    pairs = tree.get("compare")
    if path[0] != "compare" or len(path) != 3 or not isinstance(pairs, list):
        return False
    written = {place: list(map(str, each)) for place, each in enumerate(pairs) if isinstance(each, list)}
    pair = {name if place == path[2] else each for place, each in enumerate(written.pop(int(path[1])))}
    return any(set(each) == pair for each in written.values())


def _usual_control(tree: Mapping[str, Any]) -> str:
    """The congestion control over TCP of arms without their own."""
    written = tree.get("congestion", TCP_CONGESTION[0])
    return str(written.get("tcp", TCP_CONGESTION[0]) if isinstance(written, dict) else written)


def _of_servers(path: tuple[str | int, ...], written: Any, tree: Mapping[str, Any]) -> str:
    """Hint for an arm's server at the top of the file, for servers of the lab under `servers`, or for a list there."""
    if path == ("server",) and written in list(Windows):
        return f"it belongs in `settings`: settings: {{server: {written}}}"
    if path == ("server",):
        if not isinstance(written, str):
            return ""
        own = tree.get("servers")
        is_known = written in SERVERS or (isinstance(own, dict) and written in own)
        name = harmless(written) if is_known else name_of_image(written)
        arms = f"{{h2-{name}: {{protocol: h2, server: {name}}}}}"
        if is_known:
            return f"a server is an arm's: arms: {arms}"
        return f"the lab has {enumerated(SERVERS)}; another one is {_own_image(written, 'h2')} and arms: {arms}"
    words = written if isinstance(written, list) else re.split(r"[\s,]+", written) if isinstance(written, str) else []
    names = [*path[1:2]] if len(path) == 2 else [
        name for each in words for name in (each if isinstance(each, dict) else [each]) if isinstance(name, str)
    ]  # fmt: skip
    shipped = sorted((name for name in names if name in SERVERS), key=lambda name: name == NGINX.name)
    if shipped:
        arm = f"arms: {shown({f'h3-{shipped[0]}': {'protocol': 'h3', 'server': shipped[0]}})}"
        if len(path) == 2:
            return f"arms name it as it is: {arm}; your own server needs another name"
        return f"{quoted(shipped[0])} is a server of the lab, which arms name: {arm}"
    if len(path) == 1 and names and all(isinstance(each, str) for each in words):
        server = {"my-app": {"image": names[0], "protocols": ["h1", "h2"]}}
        arm = "arms: {h2-my-app: {protocol: h2, server: my-app}}"
        return f"each needs a name, an image and its protocols, and an arm: servers: {shown(server)} and {arm}"
    return ""


def _own_image(name: str, protocol: str) -> str:
    """How to give the lab the user's own server of this name or image."""
    image = name if is_image(name) and re.search("[/:]", name) else "IMAGE"
    return f"your own image: servers: {{{name_of_image(name)}: {{image: {image}, protocols: [{protocol}]}}}}"


def _of_server(written: str, spoken: str, hint: str, tree: Mapping[str, Any]) -> str:
    """Hint for a server that the lab does not have: the user's own by its image, one that is close, or how to add it.

    `hint` is that of the name alone, which may be close to a server that does not speak the arm's protocol.
    """
    servers = tree.get("servers")
    own: Mapping[str, Any] = servers if isinstance(servers, dict) else {}
    if name := next(
        (name for name, keys in own.items() if isinstance(keys, dict) and keys.get("image") == written), ""
    ):
        return f"did you mean {quoted(name)}? {quoted(written)} is its image"
    if re.search("[/:]", written):
        server = {"my-app": {"image": written, "protocols": [spoken]}}
        return f"an image is a server under a name: servers: {shown(server)}, and here `server: my-app`"
    if (near := nearest(written, [*SERVERS])) and not SERVERS[near].speaks(Protocol(spoken)):
        hint = listed([name for name in (*SERVERS, *own) if name in own or SERVERS[name].speaks(Protocol(spoken))])
    here = "" if (name := name_of_image(written)) == written else f", and here `server: {name}`"
    return f"{hint}; another one is {_own_image(written, spoken)}{here}"


def _of_entry(slip: Slip, name: str, arm: Any, tree: Mapping[str, Any]) -> str:
    """Hint for the name of an arm, or for a value in place of its keys."""
    spoken = _protocol(name, arm)
    if slip.at_key and spoken and arm == {"protocol": spoken} and not _further_words(name, spoken):
        return _of_protocol_as_arm(name, spoken, tree)
    if slip.at_key and (better := _name(name, arm)):
        return f"did you mean {quoted(better)}? its protocol comes first, and dashes join letters and digits"
    if arm in PROTOCOLS:
        word = name.removeprefix(f"{arm}-")
        keys = _pair(arm, word, tree) if word != name and _override(arm, word, tree) else f"{{protocol: {arm}}}"
        return f"did you mean {keys}?"
    if not spoken or not isinstance(arm, str):
        return ""
    return f"did you mean {_pair(spoken, arm, tree)}{_rest(spoken, arm, tree)}?"


def _of_protocol_as_arm(name: str, spoken: str, tree: Mapping[str, Any]) -> str:
    """Hint for an arm of which the name is only its protocol, and which sets nothing."""
    if name == spoken and isinstance(measured := tree.get("protocols"), list) and spoken in measured:
        return f"{spoken} is one of the `protocols` already: remove the arm, or add to its name and keys what differs"
    return f"an arm that sets nothing is one of the `protocols`: protocols: [{spoken}]"


def of_empty_arm(name: str, tree: Mapping[str, Any]) -> str:
    """Hint for the name of an arm without any keys; empty if it begins with no protocol."""
    if name in PROTOCOLS:
        return _of_protocol_as_arm(name, name, tree)
    if not (parts := _split(name)):
        return ""
    if _override(*parts, tree):
        return f"did you mean `{name}: {_pair(*parts, tree)}`?"
    return f"write `{name}: {{protocol: {parts[0]}}}`, and in it what differs from {parts[0]}, such as `server: caddy`"


def _of_congestion(path: tuple[str | int, ...], written: Any, tree: Mapping[str, Any]) -> str:
    """Hint for several congestion controls at the top of the file, and for one in a profile; empty for others."""
    several = tree.get("congestion") if path[0] == "congestion" else None
    if isinstance(several, list) and several[1:]:
        return f"one value for all stands here: for several write arms: {_by_congestion(several, tree)}"
    if path[0] == "profiles" and len(path) > 2 and path[-1] == "congestion":
        return f"it belongs in an arm, or at the top of the file for all: arms: {_by_congestion([written], tree)}"
    return ""


def _by_congestion(written: list[Any], tree: Mapping[str, Any]) -> str:
    """Arms as YAML, one for each congestion control that a measured protocol may have and does not have anyway."""
    measured, names = tree.get("protocols"), [str(each) for each in written]
    by_choice = sorted(PROTOCOLS, key=lambda each: (len(_controls(each)), each), reverse=True)
    spoken = [each for each in by_choice if each in (measured if isinstance(measured, list) else PROTOCOLS)]
    arms = {
        f"{protocol}-{name}": {"protocol": protocol, "congestion": name}
        for name in names
        for protocol in [each for each in spoken if name in _controls(each)][:1]
        if name != _controls(protocol)[0]
    }
    return shown(arms or {"h2-bbr": {"protocol": "h2", "congestion": "bbr"}})


def _controls(protocol: str) -> list[str]:
    """Congestion controls that an arm of a protocol may have, the usual one first."""
    return [*(QUIC_CONGESTION if Protocol(protocol).transport == "quic" else TCP_CONGESTION)]


def _of_key(slip: Slip, name: str, arm: Any, tree: Mapping[str, Any]) -> str:
    key, spoken, named = str(slip.path[2]), _protocol(name, arm), name.partition("-")[0]
    written = value_at(tree, slip.path)
    if isinstance(slip.mistake, UnknownKey) and key in OF_SERVERS:
        return _of_own_server(name, arm, spoken)
    if isinstance(slip.mistake, MissingKey) and key == "protocol" and named in PROTOCOLS:
        return f"add `protocol: {spoken}`, which the name {quoted(name)} begins with"
    if key == "protocol" and isinstance(written, str) and (over := _over(written)):
        return over
    if key == "protocol" and isinstance(written, str) and (meant := _split(written)):
        override = _override(*meant, tree)
        return f"did you mean {_pair(*meant, tree)}?" if override and override[0] not in arm else ""
    if key == "server" and spoken and "allowed: " in slip.mistake.hint and isinstance(written, str):
        return _of_server(written, spoken, slip.mistake.hint, tree)
    if slip.path[3:] or key not in ("congestion", "tcp", "quic") or not spoken:
        return ""
    if named != spoken and named in PROTOCOLS:
        return f"its name begins with {named}: did you mean `protocol: {named}`?"
    return _congestion(key, written, spoken)


def _of_own_server(name: str, arm: Mapping[str, Any], spoken: str) -> str:
    """Hint for keys of a server in an arm, such as `image`: the entry of `servers`, and the arm that names it."""
    moved = {key: value for key, value in arm.items() if key in OF_SERVERS}
    rest = "-".join(_further_words(name, spoken))
    own = rest if rest and rest not in SERVERS else "my-app"
    needed = {"image": "IMAGE", **moved, "protocols": [spoken or "h2"]}
    verb = "belong" if len(moved) > 1 else "belongs"
    named = enumerated(map(quoted, moved))
    return f"{named} {verb} in an entry of `servers`: servers: {{{own}: {shown(needed)}}}, and here `server: {own}`"


def _of_names(written: list[Any], tree: Mapping[str, Any]) -> str:
    """Hint for arms that are listed by name without keys."""
    names = {name: ARM_NAME.fullmatch(name) for name in written if isinstance(name, str)}
    if not names or not all(names.values()):
        return ""
    if all(name in PROTOCOLS for name in names):
        return f"arms that set nothing are `protocols: [{', '.join(names)}]`"
    parts = {name: _split(name) for name in names}
    arms = {name: _pair(*own, tree) if own else f"{{protocol: {name}}}" for name, own in parts.items()}
    unclear = next((_rest(*own, tree) for own in parts.values() if own and _rest(*own, tree)), "")
    return f"each arm needs a name and keys: arms: {of_each(arms)}{unclear}"


def _split(name: str) -> tuple[str, str] | None:
    """Protocol and further words of a name such as `h2-bbr`; None for other names."""
    found = ARM_NAME.fullmatch(name)
    return (found[1], found[2][1:]) if found and found[2] else None


def _override(protocol: str, word: str, tree: Mapping[str, Any]) -> tuple[str, str] | None:
    """The key and its value that a word in an arm's name stands for; None if no key of this protocol has the word."""
    own = tree.get("servers")
    if word in SERVERS or (isinstance(own, dict) and word in own):
        return "server", word
    if word in list(Windows):
        return "settings", word
    return ("congestion", word) if word in _controls(protocol) else None


def _pair(protocol: str, word: str, tree: Mapping[str, Any]) -> str:
    """Keys of an arm as YAML; dots stand for an override that its name does not tell."""
    override = _override(protocol, word, tree)
    more = f"{override[0]}: {harmless(override[1])}" if override else "..."
    return f"{{protocol: {protocol}, {more}}}"


def _rest(protocol: str, word: str, tree: Mapping[str, Any]) -> str:
    """Meaning of the dots in an arm's keys; empty without dots."""
    if _override(protocol, word, tree):
        return ""
    no_other = f" (nginx's QUIC has only {QUIC_CONGESTION[0]})" if word in TCP_CONGESTION else ""
    return f" with what differs from {protocol} in place of the dots, such as `connections: 6`{no_other}"


def _congestion(key: str, written: Any, spoken: str) -> str:
    """Hint for the congestion control of an arm, which runs over one transport only."""
    transport = Protocol(spoken).transport
    if isinstance(written, dict):
        value = written.get(transport) or written.get("congestion") or written.get(spoken) or "cubic"
        return f"an arm of {spoken} has one congestion control, {transport.upper()}'s: `congestion: {shown(value)}`"
    if key == transport:
        return f"did you mean `congestion: {shown(written)}`?"
    if key in ("tcp", "quic"):
        return f"an arm of {spoken} runs over {transport.upper()} only: remove it"
    return ""


def _of_protocol(written: str, tree: Mapping[str, Any]) -> str:
    arms = tree.get("arms")
    if over := _over(written):
        is_there = written.casefold() in UNENCRYPTED and written.casefold()[:-1] in tree["protocols"]
        return f"remove it: {TLS}" if is_there else over
    name = written if _split(written) else re.sub(r"[\s+/_:]+", "-", written.casefold())
    if isinstance(arms, dict) and name in arms:
        return f"{quoted(name)} is already one of the `arms`: remove it here"
    parts = _split(name)
    if not parts or (name != written and not _override(*parts, tree) and parts[1] not in TCP_CONGESTION):
        return ""
    arm = f"{{{name}: {_pair(*parts, tree)}}}{_rest(*parts, tree)}"
    return f"a protocol with overrides is an arm: remove it here, and write arms: {arm}"


def _over(written: str) -> str:
    """Hint for the name of a transport in place of a protocol, or for a protocol without TLS."""
    if written.casefold() in UNENCRYPTED:
        return f"did you mean `{written.casefold()[:-1]}`? {TLS}"
    over = [protocol for protocol in PROTOCOLS if Protocol(protocol).transport == written.casefold()]
    return f"did you mean `{over[-1]}`? it runs over {written.upper()}" if over else ""


def _name(name: str, arm: Any) -> str:
    """Name with its protocol in front; empty if there is no protocol, or no other word."""
    spoken = _protocol(name, arm)
    own = [each for key, each in arm.items() if key != "protocol"] if isinstance(arm, dict) and name != spoken else []
    better = "-".join(map(str, [spoken, *(rest := _further_words(name, spoken) or own[:1])]))
    return better if spoken and rest and ARM_NAME.fullmatch(better) and better != name else ""


def _further_words(name: str, spoken: str) -> list[str]:
    """Words of a name that say something else than its protocol."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    return [word for word in words if word.casefold() != spoken and synonym(word, PROTOCOLS) != spoken]


def _protocol(name: str, arm: Any) -> str:
    """Protocol of an arm's keys, or of its name; empty without any."""
    written = arm.get("protocol") if isinstance(arm, dict) else None
    words = [word.casefold() for word in re.findall(r"[A-Za-z0-9]+", name)]
    return written if written in PROTOCOLS else next((word for word in words if word in PROTOCOLS), "")
