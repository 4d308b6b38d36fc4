#!/usr/bin/env bash
# Everything a fresh clone needs before it can be built: tools that must be there, redis-server, Python and npm packages.
# A second run finds it done. Arguments: `all` adds what only the tests need (more Pythons), `bench` what only the benchmark does.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

need cargo "install Rust 1.88 or later with rustup"
need node "install Node 20.19 or later"
need npm "it comes with Node"

node bindings/wasm/toolchain.mjs >/dev/null 2>&1 ||
  step "install Rust for WebAssembly" apt_install rustc-web cargo-web rust-web-src
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || step "install chromium" apt_install chromium
command -v redis-server >/dev/null 2>&1 || step "install redis-server" apt_install redis-server
scripts/python.sh "${1:-}"
[ ! -f package-lock.json ] || once "npm ci" node_modules/.package-lock.json package-lock.json -- npm ci
if [ "${1:-}" = bench ]; then
  once "npm ci (bench)" bench/node_modules/.package-lock.json bench/package-lock.json -- npm ci --prefix bench
fi
