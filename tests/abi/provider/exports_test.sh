#!/bin/bash
# exports_test.sh PROVIDER.so: it exports the data symbol aon_provider_v1 and nothing else of its
# own, imports nothing named aon*, and needs no library of ours.
set -euo pipefail
exports=$(nm -D --defined-only "$1" |
  awk '$2 ~ /[A-Z]/ && $2 !~ /[VWu]/ {print $2, $3}' | grep -v __odr_asan || true)
[[ $exports =~ ^[RD]\ aon_provider_v1$ ]] || { echo "exports: $exports"; exit 1; }
imports=$(nm -D --undefined-only "$1" | awk '$2 ~ /^_?Z?N?3?aon/ {print $2}')
[[ -z $imports ]] || { echo "imports: $imports"; exit 1; }
needed=$(readelf -d "$1" | grep NEEDED | grep -i aon || true)
[[ -z $needed ]] || { echo "needs: $needed"; exit 1; }
