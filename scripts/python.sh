#!/usr/bin/env bash
# The Python of the tests: .cache/venv, with the packages of bindings/python/requirements.txt, and older Redis clients beside it.
# PYTHON names another interpreter than `python3`; a change of interpreter makes the venv anew.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

PYTHON=${PYTHON:-python3}
WANTED='import sys; raise SystemExit(sys.version_info < (3, 10))'
IDENTITY='import sys; print(sys.version, sys.base_prefix)'
VENV=.cache/venv
CLIENTS=.cache/clients

# Debian's python3 comes without what makes a venv.
command -v "$PYTHON" >/dev/null 2>&1 && "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
  step "install python3-venv" apt_install python3-venv
"$PYTHON" -c "$WANTED" || {
  printf 'switchgear: `%s` is %s: install Python 3.10 or later, or name one: PYTHON=python3.12 make ...\n' \
    "$PYTHON" "$("$PYTHON" --version 2>&1)" >&2
  exit 1
}
# Without it a TZ is silently UTC, and the tests in other time zones would show nothing.
[ -e /usr/share/zoneinfo/Asia/Tokyo ] || step "install tzdata" apt_install tzdata

# `step` looks at a function's status, so each command says for itself that its failure ends it.
make_venv() {
  "$PYTHON" -m venv --clear "$VENV" || return 1
  pip_install --require-hashes -r bindings/python/requirements.txt || return 1
  # The package is used from where its sources are: an edit needs no install.
  local packages
  packages=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
  printf '%s\n' "$ROOT/bindings/python" >"$packages/switchgear.pth"
}

make_clients() {
  local pinned name version
  rm -rf "$CLIENTS"
  while read -r pinned; do
    name=${pinned%%==*} version=${pinned#*==}
    pip_install --no-deps --target "$CLIENTS/$name-${version%%.*}" "$pinned" || return 1
  done < <(grep -E '^[a-z]' bindings/python/requirements-clients.txt)
}

pip_install() { "$VENV/bin/pip" install --quiet --disable-pip-version-check "$@"; }

if [ "$("$VENV/bin/python" -c "$IDENTITY" 2>/dev/null)" != "$("$PYTHON" -c "$IDENTITY")" ]; then rm -rf "$VENV"; fi
once "python packages" "$VENV/bin/python" bindings/python/requirements.txt scripts/python.sh -- make_venv
once "older redis clients" "$CLIENTS" bindings/python/requirements-clients.txt scripts/python.sh -- make_clients
