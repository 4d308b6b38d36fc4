#!/usr/bin/env bash
# The benchmark, with its own packages (bench/package.json, bench/python/requirements.txt), so that neither users nor tests install them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

scripts/setup.sh bench
scripts/build.sh
# The benchmark imports the package as a user does; a link does that without npm touching the root's node_modules.
ln -sfn ../.. bench/node_modules/switchgear
# What the guides to migrating say of other libraries.
step "opossum and cockatiel as the guides say" node bench/migrating.mjs
step "pybreaker and circuitbreaker as the guides say" .cache/bench-venv/bin/python bench/python/migrating.py
exec node bench/main.mjs "$@"
