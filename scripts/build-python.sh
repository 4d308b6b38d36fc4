#!/usr/bin/env bash
# The native module, where the Python package's sources are. Skipped when none of its sources changed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

# maturin tells pyo3 its Python by other means than plain cargo does: in one target folder each would have pyo3 built anew.
export CARGO_TARGET_DIR=$CACHE/target-python
export VIRTUAL_ENV=$CACHE/venv
once "build the Python module" bindings/python/switchgear/_native.abi3.so \
  Cargo.toml Cargo.lock core lua bindings/python/Cargo.toml bindings/python/src pyproject.toml scripts/build-python.sh -- \
  "$VIRTUAL_ENV/bin/maturin" develop --profile python --locked --skip-install
