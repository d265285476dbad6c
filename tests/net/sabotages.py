"""What can be done to a testbed behind the lab's back; docs/trust.md lists every one with its detector."""

from __future__ import annotations

from dataclasses import dataclass

SHAPER = "root tbf rate 8mbit burst 5000 latency 50ms"
DROPS = (
    "{ type filter hook input priority 0; }; add rule ip sabotage door meta l4proto udp limit rate over 9/second drop"
)
INGRESS_DROP = (
    "nft add table netdev sabotage; add chain netdev sabotage door "
    "{ type filter hook ingress device eth0 priority 0; policy drop; }"
)


@dataclass(frozen=True)
class Sabotage:
    """Commands with their words; how the first one runs says `way`: "in" the container, in its network "net"work
    namespace from the host (as root), or on the "host" itself."""

    name: str
    host: str  # service of compose.yaml
    way: str
    do: tuple[str, ...]
    undo: tuple[str, ...]
    start: str  # what a refused start says; empty: the lab mends it itself when it joins the hosts
    changed: str  # which topic the trial names
    needs: str = ""  # a program of this host


def inside(name: str, host: str, do: str, undo: str, start: str, changed: str) -> Sabotage:
    return Sabotage(name, host, "in", (do,), (undo,), start, changed)


SABOTAGES = (
    inside("a shaper on the server", "server", f"tc qdisc add dev eth0 {SHAPER}", "tc qdisc del dev eth0 root",
           "server: eth0 with the queueing discipline tbf", "server's links, server's qdiscs"),
    inside("a shaper on the client", "client", f"tc qdisc add dev eth0 {SHAPER}", "tc qdisc del dev eth0 root",
           "client: eth0 with the queueing discipline tbf", "client's qdiscs"),
    inside("a shaper on the router's container", "impair", f"tc qdisc add dev eth1 {SHAPER}",
           "tc qdisc del dev eth1 root", "eth1 with the queueing discipline tbf", "qdiscs"),
    inside("a hook for filters and policers", "server", "tc qdisc add dev eth0 clsact", "tc qdisc del dev eth0 clsact",
           "server: eth0 with filters at the hook clsact", "server's qdiscs"),
    inside("an ingress hook on the router's container", "impair", "tc qdisc add dev eth0 ingress",
           "tc qdisc del dev eth0 ingress", "eth0 with filters at the hook ingress", "qdiscs"),
    inside("offloads", "server", "ethtool -K eth0 gso on gro on", "ethtool -K eth0 gso off gro off",
           "server: eth0 with generic-", "server's offloads"),
    inside("a lower MTU", "client", "ip link set eth0 mtu 1400", "ip link set eth0 mtu 1500",
           "client: eth0 with an MTU of 1400", "client's links"),
    inside("a second route", "client", "ip route add 10.99.0.0/24 dev eth0", "ip route del 10.99.0.0/24",
           "client: a route that is not the lab's", "client's routes"),
    inside("a routing rule", "server", "ip rule add from all lookup main priority 7", "ip rule del priority 7",
           "server: a routing rule with priority 7", "server's rules"),
    inside("a blackhole on the router's container", "impair", "ip route add blackhole 10.99.0.0/24",
           "ip route del blackhole 10.99.0.0/24", "a blocking route", "routes"),
    inside("an additional interface", "server", "sh -c 'ip link add hw7 type veth peer name hw8; ip link set hw7 up'",
           "ip link del hw7", "server: a further interface", "server's links"),
    inside("an IPsec policy", "client", "ip xfrm policy add dir out dst 10.99.0.0/24 action block",
           "ip xfrm policy flush", "client: an IPsec policy", "client's firewall"),
    Sabotage("a changed client", "client", "in",
             ("mv /usr/local/bin/h2load /usr/local/bin/real-h2load",
              "sh -c 'cp /usr/local/bin/real-h2load /usr/local/bin/h2load; echo >> /usr/local/bin/h2load'",
),
             ("mv /usr/local/bin/real-h2load /usr/local/bin/h2load",),
             "client: /usr/local/bin/h2load is not the image's", "client's programs"),
    Sabotage("a limit in nginx", "server", "in",
             ("cp -p /opt/headwind/nginx/nginx.conf /tmp/nginx.conf",
              "sed -i 's|root /srv/headwind;|root /srv/headwind; limit_rate 100k;|' /opt/headwind/nginx/nginx.conf"),
             ("sh -c 'cat /tmp/nginx.conf > /opt/headwind/nginx/nginx.conf; rm /tmp/nginx.conf'",),
             "server: /opt/headwind/nginx/nginx.conf is not the image's", "server's programs"),
    Sabotage("a CPU quota", "server", "host", ("docker update --cpus 0.3 {id}",),
             ("docker update --cpu-quota -1 {id}",), "server: a quota of CPU time", "server's limits"),
    Sabotage("smaller CPU shares", "client", "host", ("docker update --cpu-shares 2 {id}",),
             ("docker update --cpu-shares 1024 {id}",), "different shares of the machine", "client's limits"),
    Sabotage("a firewall on the server", "server", "net",
             ("nft add table ip sabotage; add chain ip sabotage door " + DROPS,), ("nft delete table ip sabotage",),
             "server: an nftables rule in table sabotage", "server's firewall", "nft"),
    Sabotage("a firewall on the router's container", "impair", "net",
             (INGRESS_DROP,),
             ("nft delete table netdev sabotage",), "an nftables chain that drops by default", "firewall", "nft"),
    Sabotage("an older firewall on the client", "client", "net",
             ("iptables-legacy -A INPUT -p udp -m udp --dport 9 -j DROP",), ("iptables-legacy -F INPUT",),
             "client: an iptables rule in table filter", "client's firewall", "iptables-legacy"),
    Sabotage("no connection tracking", "client", "net", ("iptables -t raw -A PREROUTING -j CT --notrack",),
             ("iptables -t raw -F",), "client: an nftables rule in table raw", "client's firewall", "iptables"),
    Sabotage("TCP without SACK", "server", "net", ("sysctl -w net.ipv4.tcp_sack=0",),
             ("sysctl -w net.ipv4.tcp_sack=1",), "server: net.ipv4.tcp_sack = 0 instead of 1", "server's sysctls",
             "sysctl"),
    Sabotage("tiny TCP buffers", "client", "net", ("sysctl -w 'net.ipv4.tcp_rmem=4096 4096 4096'",),
             ("sysctl -w 'net.ipv4.tcp_rmem={rmem}'",), "different settings of the network", "client's sysctls",
             "sysctl"),
    Sabotage("an XDP program", "server", "net", ("python3 -c {xdp}",), ("ip link set dev eth0 xdpgeneric off",),
             "server: eth0 with an XDP program", "server's links", "python3"),
    Sabotage("a shaper on the host's side", "server", "host", (f"tc qdisc add dev {{far}} {SHAPER}",),
             ("tc qdisc del dev {far} root",), "this host: {far} with the queueing discipline tbf",
             "this host's links, this host's qdiscs", "tc"),
    # What the lab sets itself when it joins the hosts, and would only be found later.
    inside("changed congestion control", "server", "ip route change {peer} via {gateway} dev eth0 congctl reno",
           "ip route change {peer} via {gateway} dev eth0 congctl cubic", "", "server's congestion"),
    inside("a larger initial window", "server",
           "ip route change {peer} via {gateway} dev eth0 congctl cubic initcwnd 40",
           "ip route change {peer} via {gateway} dev eth0 congctl cubic", "a route with its own settings",
           "server's routes"),
    inside("an additional neighbour", "client",
           "ip neighbour add 10.99.0.9 lladdr 02:00:00:00:00:99 nud permanent dev eth0",
           "ip neighbour del 10.99.0.9 dev eth0", "", "client's neighbours"),
)  # fmt: skip
