#!/usr/bin/env bash
# Multiplies random matrices of random shapes on this machine's GPU for some minutes, each product passed by a process of
# its own, with a time limit: a kernel that hangs is named with its shape and ended. Needs a GPU. The same seed draws the
# same products; how many there is time for depends on the machine.
#
#   tests/random-products.sh [MINUTES: 5] [SEED: 1] [PRODUCTS AT A TIME: 4] [rust-gemm, built before: target/debug/rust-gemm]
set -euo pipefail
minutes=${1:-5}
seed=${2:-1}
workers=${3:-4}
program=${4:-target/debug/rust-gemm}
# Seconds for one product. The slowest, on the oldest GPUs, take a few.
limit=120

command -v "$program" >/dev/null || {
    echo "error: $program is missing; run 'cargo build' first" >&2
    exit 2
}

# Options that name kernels, most of them for tensor cores: these wait for copies and for each other.
kernels=(
    "auto" "auto --dtype f64" "auto --dtype i32" "double-buffer" "async-pipeline"
    "auto --dtype bf16" "auto --dtype f16" "auto --math tf32" "auto --math split"
    "warpgroup --dtype bf16" "warpgroup --dtype f16"
    "warp-specialized --dtype bf16" "warp-specialized --dtype f16"
    "warp-specialized-tf32 --math tf32" "warp-specialized-fp64 --dtype f64" "fp64-tensor --dtype f64"
    "auto --dtype i8" "auto --dtype e4m3" "auto --dtype e4m3-bf16" "warp-specialized-int8-64x128 --dtype i8"
    "warp-specialized-fp8-64x64 --dtype e4m3-bf16" "warp-specialized-fp8-128x128 --dtype e4m3-bf16"
    "auto --epilogue bias+relu" "auto --dtype bf16 --epilogue bias+gelu" "auto --dtype f16 --epilogue bias+silu"
    "split-fp32 --math split" "tensor-core --math tf32" "auto --dtype bf16-f32" "auto --dtype f16-f32"
    "warp-specialized --dtype bf16-f32" "persistent-64x64 --dtype f16-f32" "warp-specialized-fp64-32x64 --dtype f64"
    "persistent --dtype bf16" "persistent-128x128 --dtype f16"
    "persistent-64x128 --dtype bf16" "persistent-64x64 --dtype f16"
    "tensor-core --dtype bf16" "tensor-core-nt --dtype f16" "tensor-core-tn --dtype bf16-f32" "tensor-core-tt --dtype f16-f32"
)

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
end=$((SECONDS + 60 * minutes))

# pick WORD... : one of them
pick() { local words=("$@"); echo "${words[RANDOM % $#]}"; }

# A length: half of them below 200, the others below 3000, and some at a multiple of what tiles measure.
length() {
    case $((RANDOM % 6)) in
        0 | 1 | 2) REPLY=$((1 + RANDOM % 200)) ;;
        3 | 4) REPLY=$((1 + RANDOM % 3000)) ;;
        5) REPLY=$((64 * (1 + RANDOM % 40))) ;;
    esac
}

# worker NUMBER : writes a line for each product that failed, and how many there were; after three it ends
worker() {
    local products=0 failed=0 m n k options status
    RANDOM=$((seed * 1000 + $1))
    while [ "$SECONDS" -lt "$end" ] && [ "$failed" -lt 3 ]; do
        length && m=$REPLY && length && n=$REPLY && length && k=$REPLY
        options=(--kernel $(pick "${kernels[@]}") --m "$m" --n "$n" --k "$k" --seed "$RANDOM"
            --alpha "$(pick 1 1 2 -0.5 0)" --beta "$(pick 0 0 1 -1 0.5)" $(pick "" "" --transpose-a)
            $(pick "" "" --transpose-b) --padding "$(pick 0 0 8 3)" --device cuda --baseline none --runs 1 --warmup 0)
        # Integers have whole factors alone.
        [[ " ${options[*]} " =~ \ (i32|i8)\  ]] && options=("${options[@]/0.5/3}")
        status=0
        timeout --signal KILL "$limit" "$program" "${options[@]}" >"$log/$1.out" 2>&1 || status=$?
        products=$((products + 1))
        if [ "$status" -ne 0 ]; then
            failed=$((failed + 1))
            [ "$status" -eq 137 ] && echo "HANGS   after $limit s: rust-gemm ${options[*]}" >>"$log/failures"
            [ "$status" -eq 137 ] || echo "FAILED  with $status: rust-gemm ${options[*]}: $(grep -m 1 error "$log/$1.out" ||
                tail -n 1 "$log/$1.out")" >>"$log/failures"
        fi
    done
    echo "$products $failed" >"$log/$1.count"
}

for ((number = 0; number < workers; number++)); do worker "$number" & done
while [ -n "$(jobs -r)" ]; do
    sleep 1
    [ -t 2 ] && printf '\r%d of %d s' "$SECONDS" "$((60 * minutes))" >&2
done
[ -t 2 ] && printf '\r\033[K' >&2
wait

[ -f "$log/failures" ] && cat "$log/failures"
awk -v minutes="$minutes" '{ products += $1; failed += $2 }
    END { printf "%d random products in %s minutes: %d failed\n", products, minutes, failed; exit failed > 0 }' "$log"/*.count
