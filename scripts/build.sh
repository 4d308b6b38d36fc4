#!/usr/bin/env bash
# Both packages, ready to import: dist/ and its native module for Node, the native module of the Python package.
# What was made from the same sources is not made again.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

once "build the Node package" dist Cargo.toml Cargo.lock core lua bindings/node package.json package-lock.json 'tsconfig*.json' -- \
  npm run build
scripts/build-python.sh
