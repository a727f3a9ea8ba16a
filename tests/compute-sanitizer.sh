#!/usr/bin/env bash
# Runs NVIDIA's compute-sanitizer over every kernel on odd shapes, with all four of its tools, after making sure that each
# tool finds the error that is planted for it. Needs a GPU and the CUDA toolkit.
#
#   tests/compute-sanitizer.sh [FOLDER WITH rust-gemm AND probe, built before: target/debug]
set -euo pipefail
folder=${1:-target/debug}

for program in compute-sanitizer "$folder/rust-gemm" "$folder/probe"; do
    command -v "$program" >/dev/null || {
        echo "error: $program is missing; install the CUDA toolkit and run 'cargo build' first" >&2
        exit 2
    }
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# sanitize TOOL PROGRAM ARGUMENT... : 0 if the tool finds nothing and the program succeeds. A sharp failure for anything
# the tool reports; hazards of racecheck count from warnings on.
sanitize() {
    local tool=$1
    shift
    local options=(--tool "$tool" --error-exitcode 86)
    [ "$tool" = racecheck ] && options+=(--racecheck-report all)
    timeout 600 compute-sanitizer "${options[@]}" "$@" >"$log" 2>&1
}

failures=0
plant() {
    local tool=$1 error=$2
    if sanitize "$tool" "$folder/probe" "$error" cuda; then
        echo "FAILED  $tool did not find the planted error $error"
        failures=$((failures + 1))
    elif ! grep -q 'ERROR SUMMARY: [1-9]\|RACECHECK SUMMARY: [1-9]' "$log"; then
        echo "FAILED  $tool stopped on $error without finding it:"
        tail -n 5 "$log"
        failures=$((failures + 1))
    else
        echo "ok      $tool finds the planted error $error"
    fi
}

plant memcheck writes_out_of_bounds
plant racecheck misses_a_barrier
plant initcheck reads_uninitialized_memory
plant synccheck leaves_itself_out

if sanitize memcheck "$folder/probe" ragged_rows cuda; then
    echo "ok      memcheck: few rows, and a B whose last row ends within 16 bytes"
else
    echo "FAILED  memcheck: few rows, and a B whose last row ends within 16 bytes:"
    grep -m 5 'Invalid\|ERROR\|error' "$log" || tail -n 5 "$log"
    failures=$((failures + 1))
fi

for tool in memcheck racecheck initcheck synccheck; do
    for shape in "1 1 1" "17 33 129" "129 127 65" "256 128 64"; do
        read -r m n k <<<"$shape"
        for of in "--dtype f32" "--dtype f64" "--dtype i32" "--dtype bf16" "--dtype f16" "--dtype bf16-f32" "--dtype f16-f32" "--math tf32" "--math split"; do
            # shellcheck disable=SC2086 # two words
            if sanitize "$tool" "$folder/rust-gemm" --kernel all $of --device cuda --baseline none \
                --m "$m" --n "$n" --k "$k" --beta 1 --runs 1 --warmup 0; then
                echo "ok      $tool: all kernels with $of, $m x $n x $k"
            else
                echo "FAILED  $tool: all kernels with $of, $m x $n x $k:"
                grep -m 5 'Invalid\|ERROR\|hazard\|Uninitialized\|Barrier\|error' "$log" || tail -n 5 "$log"
                failures=$((failures + 1))
            fi
        done
    done
done

echo
if [ "$failures" -ne 0 ]; then
    echo "compute-sanitizer: $failures failures"
    exit 1
fi
echo "compute-sanitizer: clean"
