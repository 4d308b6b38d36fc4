#!/usr/bin/env bash
# Every check of the project, from a fresh clone on. Three lanes for two cores, as tests wait for servers now and then.
# The first step that fails stops all, and is named with its whole output.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
rm -f "$LOGS"/*.log
BIN=.cache/venv/bin
NODE_SOURCES=(Cargo.toml Cargo.lock core lua bindings/node bindings/wasm package.json package-lock.json 'tsconfig*.json' tests/support)

rust_checks() {
  step "rustfmt" cargo fmt --all --check
  step "clippy" cargo clippy --workspace --all-targets --all-features -- -D warnings
  step "clippy, core without features" cargo clippy -p switchgear-core --all-targets -- -D warnings
  step "no_std probe" scripts/no-std.sh
  step "rust tests" cargo nextest run --workspace --all-features --no-fail-fast
  step "rust tests, core without features" cargo nextest run -p switchgear-core --no-fail-fast
  step "rust doc examples" cargo test --workspace --all-features --doc
  step "rustdoc" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
  step "cargo package" cargo package -p switchgear-core -p switchgear-lua --allow-dirty --offline
}

python_lane() {
  scripts/build-component.sh # the documents have examples of it
  step "ruff" $BIN/ruff check
  step "ruff format" $BIN/ruff format --check
  step "mypy" $BIN/mypy
  step "stubtest" $BIN/stubtest --mypy-config-file pyproject.toml switchgear._native
  step "python tests" $BIN/pytest
  step "component" $BIN/pytest bindings/component/tests
  step "python package" $BIN/pytest tests/pack
  both_languages
}

# By then the other lane has built the Node package.
both_languages() {
  scripts/build-node.sh
  step "demo" node --test --test-reporter=spec demo/demo.test.mjs
  step "shop" node --test --test-reporter=spec tests/examples/
  step "fleet and faults" node --test --test-reporter=spec tests/fleet/fleet.test.mjs
  step "benchmark, a few calls of everything" scripts/bench.sh --quick
}

# Neither another Python nor another time zone nor other threads may matter, so two runs show them all.
other_pythons() {
  step "python tests, oldest Python, TZ=America/New_York" env TZ=America/New_York .cache/venv-oldest/bin/pytest -m 'not once'
  step "python tests, newest Python, TZ=Asia/Tokyo, each in four threads" \
    env TZ=Asia/Tokyo .cache/venv-newest/bin/pytest -m 'not once' --parallel-threads=4
}

rust_lane() {
  rust_checks
  other_pythons
}

node_lane() {
  scripts/build-node.sh
  step "typecheck" npm run --silent typecheck
  step "lint" npm run --silent lint
  step "node tests" npm test --silent
  # What of the suite is about NestJS, on its other version.
  once "node tests on NestJS 10" dist "${NODE_SOURCES[@]}" tests/nestjs10 -- npm run --silent test:nestjs10
  # The suite that has just run, on the other module; and builds by each toolchain. Skipped where nothing of it changed.
  once "node tests on WebAssembly" dist "${NODE_SOURCES[@]}" -- npm run --silent test:wasm
  once "WebAssembly modules" dist "${NODE_SOURCES[@]}" tests/vectors -- \
    node --test --test-reporter=spec --test-concurrency=1 bindings/wasm/test/*.test.mjs
  once "build the playground" site/dist "${NODE_SOURCES[@]}" site tests/vectors -- npm run --silent site
  once "playground" site/dist "${NODE_SOURCES[@]}" site tests/vectors -- npm run --silent test:site
  step "browser" node --test --test-reporter=spec tests/browser/
  step "repo rules" node --test --test-reporter=spec tests/repo/rules.test.mjs
  step "package" node --test --test-reporter=spec tests/pack/pack.test.mjs
  step "examples in the docs" node --test --test-reporter=spec tests/docs/docs.test.mjs
  step "typescript docs" npm run --silent docs
}

# By process id.
declare -A RUNNING=()

# Starts a lane in a process group of its own, so that it can be ended with all it started.
lane() {
  set -m
  "$1" &
  set +m
  RUNNING[$!]=$1
}

stop_lanes() {
  local pid
  for pid in "${!RUNNING[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}

finish() {
  local status=$1
  say ""
  node scripts/closing-lines.mjs "$LOGS"/*.log
  exit "$status"
}

scripts/setup.sh all
need cargo-nextest "cargo install cargo-nextest"
scripts/build-python.sh # two lanes need it

trap stop_lanes EXIT
lane rust_lane
lane node_lane
lane python_lane
while [ "${#RUNNING[@]}" -gt 0 ]; do
  wait -n -p ended "${!RUNNING[@]}" || { stop_lanes; finish 1; }
  unset "RUNNING[$ended]"
done
step "vectors" scripts/vectors.sh || finish 1
step "runners of the vectors" node --test --test-reporter=spec tests/runners/ || finish 1
finish 0
