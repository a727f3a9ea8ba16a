#!/usr/bin/env bash
# Measures the figures of the book and the README. Each line is one run of `rust-gemm bench`, and writes one file of
# this folder: all contenders of a file alternate in one process. To be run on an idle machine, from a release build:
#
#     results/measure.sh fp32 16-bits tensor-cores others 8-bits epilogues     # on one H200, about 25 minutes
#     results/measure.sh h100                                 # the shapes, on one H100
#     results/measure.sh two-gpus                             # on two GPUs of one host
#     results/measure.sh cpu                                  # the CPU's rungs, by OpenCL, the simulator, ranks over MPI
#     results/measure.sh stalls                               # why warps wait: a profile by Nsight Compute
#     results/measure.sh ideas                                # the ideas of a kernel, one by one
#
# RUST_GEMM names the program, if it is not to be built here (for `ideas`, one with ideas.patch); FOLDER the
# folder to write to.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sections="fp32 16-bits tensor-cores others 8-bits epilogues h100 two-gpus cpu stalls ideas"
for section in "${@:-}"; do
    if [[ " $sections " != *" $section "* ]]; then
        sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
        exit 2
    fi
done
program=${RUST_GEMM:-$here/../target/release/rust-gemm}
folder=${FOLDER:-$here}
if [ -z "${RUST_GEMM:-}" ]; then
    cargo build --release --locked --manifest-path "$here/../Cargo.toml" -p host
fi

# `bench FILE ARGUMENTS`: measures, and says how long that took. If it fails, the others are still measured.
failed=0
bench() {
    local file=$1 began=$SECONDS log
    shift
    log=$("$program" bench "$@" --json "$folder/$file.json" 2>&1) || {
        echo "FAILED: $file: $(tail -n 1 <<<"$log")"
        failed=1
    }
    echo "$file: $((SECONDS - began)) s"
}

# `ranks FILE ARGUMENTS`: the same by `gemm-mpi`, on two cores, with its plots.
ranks() {
    local file=$1
    shift
    cargo build --release --locked --manifest-path "$here/../Cargo.toml" -p distributed &&
        mpirun -n 2 "$here/../target/release/gemm-mpi" "$@" --json "$folder/$file.json" \
            --plots "${FOLDER:-$here/../docs/src/pictures}" >/dev/null || failed=1
}

# The ladder in fp32, the fast kernels at 8192, the speed at the power limit, and shapes that programs multiply.
fp32() {
    bench h200 --kernel all,auto --sizes 1024,2048,4096
    bench h200-large --kernel double-buffer,warp-tiled,async-pipeline,wide-thread-tile,auto --sizes 8192 --runs 10
    bench h200-sustained --kernel auto --sizes 4096,8192 --sustained 2
    bench h200-shapes --preset shapes
}

16-bits() {
    bench h200-bf16 --kernel warpgroup-nt,warp-specialized-nt,auto --dtype bf16 --transpose-b --sizes 2048,4096,8192 --sustained 5
    bench h200-bf16-nn --kernel warpgroup,warp-specialized,auto --dtype bf16 --sizes 4096,8192 --sustained 2
    bench h200-f16 --kernel warpgroup-nt,warp-specialized-nt,auto --dtype f16 --transpose-b --sizes 4096,8192 --sustained 2
    bench h200-bf16-tn --kernel warpgroup-tn --dtype bf16 --transpose-a --sizes 4096 --sustained 2
    bench h200-bf16-tt --kernel warpgroup-tt --dtype bf16 --transpose-a --transpose-b --sizes 4096 --sustained 2
    bench h200-bf16-f32 --kernel warp-specialized-nt,auto --dtype bf16-f32 --transpose-b --sizes 4096,8192 --sustained 2
    bench h200-persistent --kernel warp-specialized,persistent,auto --dtype bf16 --shape 16x4096x4096,128x4096x4096,512x512x8192,1024x1024x1024,768x2816x8192,1x512x500000
    bench h200-hopper-steps --kernel warpgroup-64x64,warpgroup,warp-specialized-step3,warp-specialized-step4,warp-specialized-step5,warp-specialized-step6,warp-specialized-step7,warp-specialized,warp-specialized-tiles,persistent --dtype bf16 --sizes 4096,8192 --sustained 2
    bench h200-bf16-shapes --preset shapes --dtype bf16
}

# f32 on tensor cores, rounded to tf32 or split into two f16, and f64.
tensor-cores() {
    bench h200-tf32 --kernel tensor-core,warp-specialized-tf32 --math tf32 --sizes 4096,8192 --sustained 2
    bench h200-tf32-nt --kernel warp-specialized-tf32-nt --math tf32 --transpose-b --sizes 4096,8192 --sustained 2
    bench h200-tf32-tn --kernel warp-specialized-tf32 --math tf32 --transpose-a --sizes 4096 --sustained 2
    bench h200-tf32-tt --kernel warp-specialized-tf32-tt --math tf32 --transpose-a --transpose-b --sizes 4096 --sustained 2
    bench h200-split --kernel split-fp32 --math split --sizes 2048,4096,8192 --sustained 2
    bench h200-fp64 --kernel fp64-tensor,warp-specialized-fp64 --dtype f64 --sizes 1024,2048,4096,8192 --sustained 2
}

# Batches, integers, and a shape whose pitched rows are many and short.
others() {
    bench h200-i32 --kernel double-buffer --dtype i32 --sizes 1024,4096 --device cuda:0
    bench h200-batches --kernel auto --shape 64x64x64,256x256x256 --batch 512
    bench h200-batches-bf16 --kernel auto --dtype bf16 --shape 256x256x256 --batch 512 --runs 10
    bench h200-odd --kernel all --shape 70000x3x5
}

# Floats and integers of 8 bits.
8-bits() {
    bench h200-fp8 --kernel auto --dtype e4m3-bf16 --transpose-b --sizes 512,1024,2048,4096,8192 --shape 128x7168x2048,4096x7168x2048,4096x24576x1536,512x512x16384 --sustained 1
    bench h200-int8 --kernel auto --dtype i8 --transpose-b --sizes 512,1024,2048,4096,8192 --shape 128x7168x2048,4096x7168x2048,4096x24576x1536,512x512x16384 --sustained 1
}

# Products with an epilogue beside cublasLt's.
epilogues() {
    bench h200-bf16-bias-gelu --epilogue bias+gelu --dtype bf16 --transpose-b --shape 4096x4096x4096,8192x8192x8192,4096x14336x4096 --sustained 1
    bench h200-bf16-bias --epilogue bias --dtype bf16 --transpose-b --shape 4096x4096x4096,8192x8192x8192,4096x14336x4096 --sustained 1
    bench h200-bias-relu --epilogue bias+relu --shape 4096x4096x4096 --sustained 1
}

h100() {
    bench h100-shapes --preset shapes
}

two-gpus() {
    bench h200-two-gpus --device cuda:0+1 --kernel auto --sizes 16384
    bench h200-two-gpus-first-b --device cuda:0+1 --kernel auto --sizes 16384 --start first-b
    bench h200-two-gpus-bf16 --device cuda:0+1 --kernel auto --dtype bf16 --sizes 16384
    bench h200-two-gpus-bf16-first-b --device cuda:0+1 --kernel auto --dtype bf16 --sizes 16384 --start first-b
}

# `schedules FILE`: rungs of the CPU by schedule, threads and chunk: a list of what `bench` writes, in one file.
schedules() {
    local each schedule threads chunk
    each=$(mktemp -d)
    for schedule in static dynamic guided; do
        for threads in 1 2 4; do
            "$program" bench --kernel cpu-blocks --sizes 512,1024,2048 --schedule "$schedule" --threads "$threads" \
                --json "$each/threads-$threads-$schedule.json" >/dev/null || failed=1
        done
    done
    for schedule in dynamic guided; do
        for chunk in 1 2 4 8 16 32; do
            "$program" bench --kernel cpu-rows --sizes 2048 --schedule "$schedule" --threads 2 --chunk "$chunk" \
                --json "$each/chunk-$chunk-$schedule.json" >/dev/null || failed=1
        done
    done
    { printf '['; paste -s -d , <(cd "$each" && for run in *.json; do tr -d '\n' <"$run"; echo; done); printf ']\n'; } >"$folder/$1.json"
    rm -r "$each"
}

cpu() {
    bench cpu-serial-2-cores --kernel cpu-ijk,cpu-ikj,cpu-unrolled,cpu-vectorized,cpu-divide --sizes 128,256,512,1024 --threads 1
    bench cpu-strassen-2-cores --kernel cpu-divide,cpu-strassen --sizes 256,512,1024,2048 --threads 1 --cutoff 256
    schedules cpu-schedules-2-cores
    bench simulator-2-cores --device sim --kernel double-buffer-k8,register-blocked-k8 --sizes 1024
    bench opencl-2-cores --device opencl --kernel double-buffer-k8,register-blocked-k8 --sizes 1024
    ranks mpi-2-cores --layout all --scaling 1,2 --size 2048 --kernel cpu-divide --runs 21
}

stalls() {
    python3 "$here/stalls.py" "$program" "$folder/h200-stalls.json" || failed=1
}

# A variant for each step of `double-buffer`, and an `async-pipeline` whose loop is not rotated. Only a patch has
# them, so the program is built from a copy of the sources.
ideas() {
    local program=$program copy
    if [ -z "${RUST_GEMM:-}" ]; then
        copy=$(mktemp -d)
        git -C "$here/.." worktree add --quiet --detach "$copy"
        git -C "$copy" apply "$here/ideas.patch"
        cargo build --release --locked --manifest-path "$copy/Cargo.toml" -p host
        program=$copy/target/release/rust-gemm
    fi
    bench h200-ideas --kernel conflict-free-k8,double-buffer-k8-step1,double-buffer-k8-step2,double-buffer-k8-step3,double-buffer-k8-step4,double-buffer-k8,async-pipeline-unrotated,async-pipeline --sizes 4096
    if [ -n "${copy:-}" ]; then
        git -C "$here/.." worktree remove --force "$copy"
    fi
}

for section in "$@"; do
    "$section"
done
exit $failed
