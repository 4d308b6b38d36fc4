#!/usr/bin/env bash
# Proves that the core and the Lua table link no std, and that the proof can fail.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build -p no-std-probe --profile no-std
cargo clippy -p no-std-probe --profile no-std -- -D warnings

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if cargo build -p no-std-probe --profile no-std --features link-std >"$log" 2>&1; then
  echo "no-std: the probe built although it links std, so it proves nothing" >&2
  exit 1
fi
grep -q 'duplicate lang item `panic_impl`' "$log" || {
  echo "no-std: the probe that links std failed, but not for that reason:" >&2
  cat "$log" >&2
  exit 1
}
echo "no-std: builds without std, and does not build with it"
