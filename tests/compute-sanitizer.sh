#!/usr/bin/env bash
# Runs NVIDIA's compute-sanitizer over every kernel on odd shapes, with all four of its tools or
# those that are named, after making sure that each tool finds the errors that are planted for it.
# Needs a GPU and the CUDA toolkit.
#
#   tests/compute-sanitizer.sh [FOLDER WITH rust-gemm AND probe, built before: target/debug]
#                              [CHECKS AT A TIME: 1] [TOOL..]
set -euo pipefail
# Names of kernels with an asterisk are rust-gemm's to match.
set -o noglob
folder=${1:-target/debug}
at_a_time=${2:-1}
tools=("${@:3}")
[ ${#tools[@]} -eq 0 ] && tools=(memcheck racecheck initcheck synccheck)

for program in compute-sanitizer "$folder/rust-gemm" "$folder/probe"; do
    command -v "$program" >/dev/null || {
        echo "error: $program is missing; install the CUDA toolkit and run 'cargo build' first" >&2
        exit 2
    }
done

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
checks=0

# sanitize LOG TOOL PROGRAM ARGUMENT... : 0 if the tool finds nothing and the program succeeds. A sharp failure for anything
# the tool reports; hazards of racecheck count from warnings on.
sanitize() {
    local log=$1 tool=$2
    shift 2
    local options=(--tool "$tool" --error-exitcode 86)
    [ "$tool" = racecheck ] && options+=(--racecheck-report all)
    timeout 600 compute-sanitizer "${options[@]}" "$@" >"$log" 2>&1
}

# check NAME ARGUMENT... : calls it with a log of its own before the arguments, beside others, as soon as there is room.
check() {
    while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do
        wait -n
    done
    checks=$((checks + 1))
    local name=$1
    shift
    "$name" "$logs/$checks" "$@" &
}

finds_planted() {
    local log=$1 tool=$2 error=$3
    if sanitize "$log" "$tool" "$folder/probe" "$error" cuda; then
        echo "FAILED  $tool did not find the planted error $error"
    elif ! grep -q 'ERROR SUMMARY: [1-9]\|RACECHECK SUMMARY: [1-9]' "$log"; then
        echo "FAILED  $tool stopped on $error without finding it:"
        tail -n 5 "$log"
    else
        echo "ok      $tool finds the planted error $error"
        return
    fi
    touch "$log.failed"
}

# finds_nothing LOG TOOL WHAT PROGRAM ARGUMENT...
finds_nothing() {
    local log=$1 tool=$2 what=$3
    shift 3
    if sanitize "$log" "$tool" "$@"; then
        echo "ok      $tool: $what"
    else
        touch "$log.failed"
        echo "FAILED  $tool: $what:"
        grep -m 5 'Invalid\|ERROR\|hazard\|Uninitialized\|Barrier\|error' "$log" || tail -n 5 "$log"
    fi
}

check finds_planted memcheck writes_out_of_bounds
check finds_planted racecheck misses_a_barrier
check finds_planted initcheck reads_uninitialized_memory
check finds_planted synccheck leaves_itself_out
check finds_planted racecheck misses_an_mbarrier_wait
check finds_planted racecheck overwrites_a_stage
check finds_nothing racecheck "two warps that hand over a stage, and wait" "$folder/probe" hands_over_in_phases cuda
check finds_nothing memcheck "few rows, and a B whose last row ends within 16 bytes" "$folder/probe" ragged_rows cuda

# All kernels that multiply the type as asked; where f32 is rounded or split, those that do it.
asked=(
    "--kernel all --dtype f32" "--kernel all --dtype f64" "--kernel all --dtype i32" "--kernel all --dtype bf16"
    "--kernel all --dtype f16" "--kernel all --dtype bf16-f32" "--kernel all --dtype f16-f32" "--kernel all --dtype i8"
    "--kernel all --dtype e4m3"
    "--kernel tensor-core*,*-tf32* --math tf32" "--kernel split* --math split"
)

for tool in "${tools[@]}"; do
    for shape in "1 1 1" "17 33 129" "129 127 65" "256 128 64"; do
        read -r m n k <<<"$shape"
        for of in "${asked[@]}"; do
            # shellcheck disable=SC2086 # several words
            check finds_nothing "$tool" "$of, $m x $n x $k" "$folder/rust-gemm" $of --device cuda --baseline none \
                --m "$m" --n "$n" --k "$k" --beta 1 --runs 1 --warmup 0
        done
    done
done
wait

failures=$(find "$logs" -name '*.failed' | wc -l)
echo
if [ "$failures" -ne 0 ]; then
    echo "compute-sanitizer: $failures of $checks checks failed"
    exit 1
fi
echo "compute-sanitizer: clean, $checks checks"
