#!/usr/bin/env bash
# Everything a fresh clone needs before it can be built: tools that must be there, redis-server, npm packages.
# A second run finds it done. Arguments: `bench` adds what only the benchmark needs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

need cargo "install Rust 1.88 or later with rustup"
need node "install Node 20.19 or later"
need npm "it comes with Node"

install_redis() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || { need sudo "run as root, or install redis-server by hand" && as_root=(sudo); }
  need apt-get "install redis-server 6.2 or later by hand"
  export DEBIAN_FRONTEND=noninteractive
  local install=("${as_root[@]}" apt-get install -y --no-install-recommends redis-server)
  # A new machine has no package lists yet, an old one has stale ones: fetch them only when the install needs them.
  "${install[@]}" || { "${as_root[@]}" apt-get update && "${install[@]}"; }
}

command -v redis-server >/dev/null 2>&1 || step "install redis-server" install_redis
[ ! -f package-lock.json ] || once "npm ci" node_modules/.package-lock.json package-lock.json -- npm ci
if [ "${1:-}" = bench ]; then
  once "npm ci (bench)" bench/node_modules/.package-lock.json bench/package-lock.json -- npm ci --prefix bench
fi
