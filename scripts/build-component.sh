#!/usr/bin/env bash
# The WebAssembly component. Skipped when none of its sources changed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

SOURCES=(bindings/component/{Cargo.toml,build.mjs,src,wit,encoder} bindings/wasm/{cargo,toolchain}.mjs)
once "build the component" bindings/component/dist/switchgear.wasm Cargo.toml Cargo.lock core lua "${SOURCES[@]}" -- \
  node bindings/component/build.mjs
