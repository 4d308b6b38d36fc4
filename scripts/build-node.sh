#!/usr/bin/env bash
# The Node package, ready to import: the native module, the WebAssembly modules and dist/. Skipped when none of its sources changed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

once "build the Node package" dist Cargo.toml Cargo.lock core lua bindings/node bindings/wasm package.json package-lock.json 'tsconfig*.json' -- \
  npm run build
