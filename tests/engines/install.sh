#!/usr/bin/env bash
# Installs what the engines run on and Python packages do not bring: Redis, and Java with Maven and Node for the others.
set -euo pipefail

declare -A packages=([redis-server]=redis-server [java]=default-jdk-headless [mvn]=maven [npm]="nodejs npm")
missing=()
for command in "${!packages[@]}"; do
    command -v "$command" >/dev/null || missing+=(${packages[$command]})
done
if ((${#missing[@]} == 0)); then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "Install these, then run this again: ${missing[*]}" >&2
    exit 1
fi
as_root=()
((EUID == 0)) || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}"
