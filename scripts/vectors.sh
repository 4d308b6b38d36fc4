#!/usr/bin/env bash
# Runs vectors on every runner: scripts/vectors.sh [file or folder], by default tests/vectors.
# All of them run, whatever one of them finds; the exit is 1 if any found a difference, if one is missing, or if they did
# not run the same number of vectors and steps, and 2 if there is nothing to run. The Node and the Python package must
# have been built.
set -uo pipefail

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
path=${1:-$ROOT/tests/vectors}
if [ ! -e "$path" ]; then
  printf 'vectors: %s: no such file or folder\n' "$path" >&2
  exit 2
fi
path=$(realpath "$path")
cd "$ROOT" || exit 2

cargo build --quiet -p switchgear-tests --bins || exit 2
scripts/build-component.sh >&2 || exit 2

counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
status=0

# run COMMAND...: shows what it says, keeps its count lines, and remembers the worst exit.
run() {
  "$@" "$path" | tee -a "$counts"
  local exit=${PIPESTATUS[0]}
  if [ "$exit" -gt "$status" ]; then status=$exit; fi
}

run cargo run --quiet -p switchgear-tests --bin vectors-core --
run cargo run --quiet -p switchgear-tests --bin vectors-lua --
run node bindings/node/test/vectors.mjs
run .cache/venv/bin/python bindings/python/tests/vectors.py
run node bindings/wasm/test/vectors.mjs
run node bindings/wasm/test/vectors-browser.mjs
run .cache/venv/bin/python bindings/component/tests/vectors_component.py

RUNNERS=(core core-hints lua node node-hints python python-hints wasm wasm-hints browser browser-hints component component-hints)
for runner in "${RUNNERS[@]}"; do
  if ! grep -q "^$runner: " "$counts"; then
    printf 'vectors: the runner `%s` did not finish\n' "$runner" >&2
    [ "$status" -gt 0 ] || status=1
  fi
done
if [ "$(sed -n 's/^[a-z-]*: //p' "$counts" | sort -u | wc -l)" -gt 1 ]; then
  printf 'vectors: the runners did not run the same vectors and steps\n' >&2
  [ "$status" -gt 0 ] || status=1
fi
exit "$status"
