#!/usr/bin/env bash
# The Pythons of this machine that the package supports, one a line, oldest first: "<minor version> <interpreter>".
# Looks on PATH and among pyenv's versions; takes the first of each minor version that really runs and can make a venv.
set -euo pipefail

candidates() {
  command -v python3 || true
  local minor
  for minor in 10 11 12 13 14 15; do
    type -aP "python3.$minor" || true
    if command -v pyenv >/dev/null 2>&1; then
      find "$(pyenv root)/versions" -path "*/3.$minor.*/bin/python3.$minor" 2>/dev/null | sort -rV
    fi
  done
}

candidates | while read -r python; do
  "$python" -c 'import sys, venv; v = sys.version_info; assert v >= (3, 10); print(f"{v[0]}.{v[1]}", sys.executable)' 2>/dev/null || true
done | sort -sV -k1,1 -u
