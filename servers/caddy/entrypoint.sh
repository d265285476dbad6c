#!/bin/bash
# Makes a certificate, then runs caddy for good.
set -euo pipefail

ulimit -n "$(ulimit -H -n)" # one descriptor per connection; some daemons start containers with 1024
/opt/headwind/servers/prepare.sh
mkdir /run/headwind/caddy
chown www-data /run/headwind/caddy /run/headwind/key.pem
export QUIC_GO_DISABLE_GSO=true # one datagram is one frame: a segmented super-packet would be lost as a whole
export XDG_DATA_HOME=/run/headwind/caddy XDG_CONFIG_HOME=/run/headwind/caddy
export HEADWIND_CAPABILITIES=+net_admin # as in Debian's unit: for UDP buffers above net.core.rmem_max
exec /opt/headwind/servers/supervise.sh caddy run --config /opt/headwind/servers/caddy/caddy.json
