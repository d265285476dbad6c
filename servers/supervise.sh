#!/bin/bash
# supervise.sh COMMAND...
# Runs the server again whenever it ends: servers/supervised.py ends it between trials. HEADWIND_WORKERS is the number of
# CPUs that it may use. It runs as www-data. Of the container's capabilities it keeps NET_BIND_SERVICE, and
# HEADWIND_CAPABILITIES, such as +net_admin.
set -uo pipefail

kept=-all,+net_bind_service${HEADWIND_CAPABILITIES:+,$HEADWIND_CAPABILITIES}
readonly as="setpriv --reuid=www-data --regid=www-data --clear-groups --no-new-privs"
readonly without="$as --inh-caps=$kept --ambient-caps=$kept --bounding-set=$kept"
echo $$ >/run/headwind/supervisor.pid
while true; do
    read -r HEADWIND_WORKERS </run/headwind/workers
    export HEADWIND_WORKERS
    # shellcheck disable=SC2086 # several words
    GOMAXPROCS=$HEADWIND_WORKERS $without "$@" 2>>/dev/shm/error.log &
    wait $!
    [ $? = 137 ] || sleep 0.2 # it was not killed, so it may end at once again
done
