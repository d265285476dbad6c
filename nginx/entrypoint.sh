#!/bin/bash
# Makes a certificate that lives as long as the container, then becomes nginx.
set -euo pipefail

ulimit -n "$(ulimit -H -n)" # one descriptor per connection; some daemons start containers with 1024
mkdir -p /run/headwind
openssl req -quiet -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 30 -subj /CN=server \
    -addext "subjectAltName=DNS:server,IP:$(hostname -i | cut -d ' ' -f 1)" \
    -keyout /run/headwind/key.pem -out /run/headwind/certificate.pem
echo "worker_processes 1;" >/run/headwind/workers.conf
cp /opt/headwind/nginx/offer-always.conf /run/headwind/offer.conf
exec /opt/headwind/servers/run-nginx.sh -c /opt/headwind/nginx/nginx.conf -g "daemon off;"
