#!/bin/bash
# run.sh RESULTS   on the GPU machine, from the repository's root, with SGLang on PYTHONPATH.
# Leaves logs, results and traces in RESULTS. Each part has its own time limit.
OUT=${1:?a folder for the results}
HERE=$PWD/benchmarks/sglang_gpu
[ -d "$HERE" ] || HERE=$(cd "$(dirname "$0")" && pwd)
PACKAGE=/tmp/slotscope_package
rm -rf "$PACKAGE"; mkdir -p "$PACKAGE/slotscope" "$OUT"
cp instrument/_root/*.py "$PACKAGE/slotscope/"; cp -r instrument kernels "$PACKAGE/slotscope/"
named() {  # NAME VALUE: an entry point of SGLang's, without an installation
  mkdir -p "$PACKAGE/$1-0.1.0.dist-info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: 0.1.0\n' "$1" > "$PACKAGE/$1-0.1.0.dist-info/METADATA"
  printf '[sglang.srt.plugins]\n%s = %s\n' "$1" "$2" > "$PACKAGE/$1-0.1.0.dist-info/entry_points.txt"
}
named slotscope slotscope.instrument.sglang.plugin:register
named drive plugin:register
export PYTHONPATH=$PYTHONPATH:$PACKAGE:$HERE PYTHONUNBUFFERED=1
SMALL='{"max_running_requests": 16, "max_mamba_cache_size": 120, "max_total_tokens": 60000, "cuda_graph_bs_decode": [1, 2, 4, 8], "mem_fraction_static": 0.2, "port": PORT}'
alias_run() {  # NAME KIND PORT [VARIABLE=VALUE ...]
  local name=$1 kind=$2 small=${SMALL/PORT/$3}; shift 3
  env -u DRIVE_COMMANDS "$@" SLOTSCOPE_TRACE=/tmp/traces/$name SGLANG_PLUGINS=drive,slotscope timeout -k 5 "${ALIAS_S:-200}" \
    python3 "$HERE/drive.py" "$kind" alias "$OUT/$name.json" "$small" > "$OUT/$name.log" 2>&1
  echo "$name: rc $?"; tail -n 3 "$OUT/$name.log" | cut -c1-300; grep -E "engine started|first token differs|^done|slotscope" "$OUT/$name.log" | cut -c1-300 | tail -20
}
cost_run() {  # NAME KIND [VARIABLE=VALUE ...]
  local name=$1 kind=$2; shift 2
  env "$@" DRIVE_COMMANDS=/tmp/drive-$name SLOTSCOPE_TRACE=/tmp/traces/$name SGLANG_PLUGINS=drive timeout -k 5 "${COST_S:-150}" \
    python3 "$HERE/drive.py" "$kind" cost "$OUT/$name.json" > "$OUT/$name.log" 2>&1
  echo "$name: rc $?"; tail -n 3 "$OUT/$name.log" | cut -c1-300; grep -E "engine started|^\[\{|^strict|^decode|^churn|^done|Error" "$OUT/$name.log" | cut -c1-1500 | tail -20
}
for part in ${PARTS:-alias cost}; do
  case $part in
  alias)
    alias_run alias-plain plain 31000 & sleep 2
    alias_run alias-nextn nextn 32000 & sleep 2
    alias_run alias-nextn-no-spare nextn 33000 SGLANG_TEST_MAMBA_LAZY_ALLOC_FAIL=1 &
    wait ;;
  cost) cost_run cost-plain plain; cost_run cost-nextn nextn ;;
  esac
done
mkdir -p "$OUT/traces"; cd /tmp/traces && for trace in alias-*; do tar cJf "$OUT/traces/$trace.tar.xz" "$trace"; done
