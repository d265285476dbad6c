#!/bin/bash
# prepare.sh
# Makes a certificate that lives as long as the container, and what else the shipped servers read when they start.
set -euo pipefail

mkdir -p /run/headwind
openssl req -quiet -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 30 -subj /CN=server \
    -addext "subjectAltName=DNS:server,IP:$(hostname -i | cut -d ' ' -f 1)" \
    -keyout /run/headwind/key.pem -out /run/headwind/certificate.pem
echo 1 >/run/headwind/workers
