#!/bin/bash
# Makes the certificate that the program can use, then keeps the host for it.
set -euo pipefail

/opt/headwind/servers/prepare.sh
cp /run/headwind/certificate.pem /certs/cert.pem
# The program may run as any user, and the key is worth nothing outside this testbed.
install --mode 0644 /run/headwind/key.pem /certs/.priv.key
mv /certs/.priv.key /certs/priv.key # last: the agent waits for it
exec sleep infinity
