#!/bin/bash
# Makes a certificate, starts nginx, which has the files, then runs haproxy for good.
set -euo pipefail

ulimit -n "$(ulimit -H -n)" # one descriptor per connection; some daemons start containers with 1024
/opt/headwind/servers/prepare.sh
cat /run/headwind/certificate.pem /run/headwind/key.pem >/run/headwind/both.pem
chown www-data /run/headwind/both.pem
/opt/headwind/servers/run-nginx.sh -c /opt/headwind/servers/haproxy/behind.conf
exec /opt/headwind/servers/supervise.sh haproxy -db -f /opt/headwind/servers/haproxy/haproxy.cfg
