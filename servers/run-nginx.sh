#!/bin/bash
# run-nginx.sh ARGUMENTS...
# Becomes an nginx that can start its workers as another user, end them, and listen on port 443. The container's other
# rights are the agent's.
set -euo pipefail

readonly needed=chown,+kill,+setgid,+setuid,+net_bind_service
exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,+$needed" nginx "$@"
