#!/bin/sh
# fetch-nghttp2.sh DISTFILES TARGET
# Puts the source of nghttp2 at TARGET, from the first place that has exactly the right bytes: the directory DISTFILES,
# the upstream release, the pool of the Debian mirror that apt is configured with (the .orig tarball is the same file).
set -eu

version=1.70.0
sha256=aa317e2cf9dca6afa0aed68f8fad6ff303ec6982e25a78c75c0b65e2b9b3ded5
distfiles=$1
target=$2
PATH=$PATH:/usr/lib/apt # where apt-helper lives

say() {
    echo "nghttp2 $version: $*"
}

# Ends the script when the file has the right hash; removes nothing and returns otherwise.
take() {
    found=$(sha256sum "$1" | cut -d ' ' -f 1)
    if [ "$found" = "$sha256" ]; then
        cp "$1" "$target"
        say "sha256 is right"
        exit 0
    fi
    say "refused: sha256 is $found, expected $sha256"
}

# The short timeouts are for machines without internet: they lose seconds here, not minutes. Only the hash says whose
# bytes these are, so no certificate is looked at, and none has to be installed.
download() {
    say "trying $1"
    if timeout 120 apt-helper -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=5 -o Acquire::https::Timeout=5 \
        -o Acquire::https::Verify-Peer=false -o Acquire::https::Verify-Host=false download-file "$1" "$target.part"; then
        take "$target.part"
    else
        say "could not download it"
    fi
}

local_copy=$distfiles/nghttp2-$version.tar.gz
if [ -f "$local_copy" ]; then
    say "trying $local_copy"
    take "$local_copy"
fi
download "https://github.com/nghttp2/nghttp2/releases/download/v$version/nghttp2-$version.tar.gz"
for mirror in $(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/.*|\1|p" | sort -u); do
    download "$mirror/pool/main/n/nghttp2/nghttp2_$version.orig.tar.gz"
done
say "no source had it: put nghttp2-$version.tar.gz into a directory and name that in HEADWIND_DISTFILES" >&2
exit 1
