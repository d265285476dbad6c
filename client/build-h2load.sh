#!/bin/sh
# build-h2load.sh SOURCES
# Leaves h2load and h2load-as-shipped in /usr/local/bin, built in an image that is thrown away afterwards. SOURCES has what
# client/ has; nothing else is left, because a storage driver that compares trees looks at every file.
set -eu

cd "$1"
./fetch-nghttp2.sh . nghttp2.tar.gz &
fetching=$!
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ libev-dev libnghttp3-dev libngtcp2-crypto-ossl-dev libngtcp2-dev libssl-dev make patch
wait "$fetching"
tar -xzf nghttp2.tar.gz --strip-components=1 --wildcards '*/lib/*' '*/src/*' '*/third-party/llhttp/*' \
    '*/third-party/urlparse/*'
patch -p0 --fuzz=0 <h2load.patch
make -s -j "$(nproc)" -f h2load.mk
mv h2load h2load-as-shipped /usr/local/bin/
rm -rf "$PWD" /var/lib/apt/lists/* /usr/include /usr/lib/gcc /usr/libexec/gcc /usr/lib/*-linux-gnu/*.a
