#!/bin/bash
# Makes a certificate, then runs nghttpd for good.
set -euo pipefail

ulimit -n "$(ulimit -H -n)" # one descriptor per connection; some daemons start containers with 1024
/opt/headwind/servers/prepare.sh
chown www-data /run/headwind/key.pem
exec /opt/headwind/servers/supervise.sh /opt/headwind/servers/nghttpd/start.sh
