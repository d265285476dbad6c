#!/bin/bash
# Runs nghttpd. With each page of one picture that exists now, it pushes the picture to clients that accept pushes.
set -euo pipefail
shopt -s nullglob

pushes=()
for page in /srv/headwind/bytes/1-of-*.html; do
    name=${page##*/1-of-}
    pushes+=("-p/bytes/1-of-$name=/bytes/${name%.html}.png?1")
done
exec nghttpd -a 0.0.0.0 -d /srv/headwind -n "$HEADWIND_WORKERS" -m 1024 "${pushes[@]}" \
    443 /run/headwind/key.pem /run/headwind/certificate.pem
