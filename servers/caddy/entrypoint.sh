#!/bin/bash
# Makes a certificate, then runs caddy for good.
set -euo pipefail

ulimit -n "$(ulimit -H -n)" # one descriptor per connection; some daemons start containers with 1024
/opt/headwind/servers/prepare.sh
export QUIC_GO_DISABLE_GSO=true # one datagram is one frame: a segmented super-packet would be lost as a whole
export XDG_DATA_HOME=/run/headwind XDG_CONFIG_HOME=/run/headwind
exec /opt/headwind/servers/supervise.sh caddy run --config /opt/headwind/servers/caddy/caddy.json
