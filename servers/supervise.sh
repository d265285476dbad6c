#!/bin/bash
# supervise.sh COMMAND...
# Runs the server again whenever it ends: servers/supervised.py ends it between trials. HEADWIND_WORKERS is the number of
# CPUs that it may use.
set -uo pipefail

echo $$ >/run/headwind/supervisor.pid
while true; do
    read -r HEADWIND_WORKERS </run/headwind/workers
    export HEADWIND_WORKERS
    GOMAXPROCS=$HEADWIND_WORKERS "$@" 2>>/dev/shm/error.log &
    wait $!
    [ $? = 137 ] || sleep 0.2 # it was not killed, so it may end at once again
done
