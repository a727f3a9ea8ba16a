"""Why warps wait: profiles one launch of each rung with Nsight Compute, and writes its counts.

    results/stalls.py PROGRAM FILE           the ladder
    results/stalls.py PROGRAM FILE steps     the steps of docs/src/hopper-steps.md

Nsight Compute holds the SM clock at its base, and the program ends after the launch. The book's
page on the machine shows what comes out.
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SIZE = 4096
# Variant, type, and its shape where that is not a cube of SIZE.
KERNELS = [
    ("naive-1d", "f32"),
    ("naive", "f32"),
    ("naive-kahan", "f32"),
    ("row-shared", "f32"),
    ("pitched", "f32"),
    ("tiled-32", "f32"),
    ("tiled-kahan-32", "f32"),
    ("thread-coarsened", "f32"),
    ("register-blocked-k8", "f32"),
    ("vectorized-k8", "f32"),
    ("conflict-free-k8", "f32"),
    ("double-buffer-k8", "f32"),
    ("warp-tiled", "f32"),
    ("async-pipeline", "f32"),
    ("wide-thread-tile", "f32"),
    ("few-rows-1", "f32", (1, 24576, 1536)),
    ("fp64-tensor", "f64"),
    ("tensor-core", "f32"),
]
STEPS = [
    ("warpgroup-64x64", "bf16"),
    ("warpgroup", "bf16"),
    ("warp-specialized-step3", "bf16"),
    ("warp-specialized-step4", "bf16"),
    ("warp-specialized-step5", "bf16"),
    ("warp-specialized-step6", "bf16"),
    ("warp-specialized-step7", "bf16"),
    ("warp-specialized", "bf16"),
    ("persistent", "bf16"),
    ("warp-specialized-tiles", "bf16"),
]
STALLED = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio")
COUNTERS = {
    "time_ns": "gpu__time_duration.sum",
    "instructions": "smsp__inst_executed.sum",
    "issue_active_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_per_scheduler": "smsp__warps_active.avg.per_cycle_active",
}


def profile(program, variant, dtype, shape=(SIZE,) * 3):
    """What was counted in the first launch of a variant, by metric."""
    ncu = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--launch-count", "1", "--kill", "yes"]
    ncu += ["--section", "WarpStateStats", "--metrics", ",".join(COUNTERS.values())]
    ncu += ["--kernel-name", "regex:^" + variant.replace("-", "_")]
    m, n, k = map(str, shape)
    run = [program, "--kernel", variant, "--dtype", dtype, "--m", m, "--n", n, "--k", k]
    run += ["--math", "tf32"] if variant == "tensor-core" else []
    run += ["--runs", "1", "--warmup", "0", "--baseline", "none"]
    done = subprocess.run(ncu + run, capture_output=True, text=True, timeout=60)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        sys.exit(f"{variant}: ncu counted nothing:\n{done.stdout}{done.stderr}")
    names, _units, values = list(csv.reader(lines))[:3]
    return dict(zip(names, values))


def number(text):
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else round(value, 2)


def counts(program, variant, dtype, *shape):
    found = profile(program, variant, dtype, *shape)
    stalls = {}
    for metric, value in found.items():
        reason = STALLED.fullmatch(metric)
        if reason and not reason[1].endswith("_not_issued") and float(value.replace(",", "")) >= 0.005:
            stalls[reason[1]] = number(value)
    counted = {"variant": variant, "type": dtype}
    counted |= {"shape": list(*shape)} if shape else {}
    counted |= {name: number(found[metric]) for name, metric in COUNTERS.items()}
    ordered = sorted(stalls.items(), key=lambda stall: -stall[1])
    return counted | {"warps_per_issued_instruction": dict(ordered)}


def provenance(program, *others):
    """When and with which program: what a small benchmark of it says, with this command."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "made.json"
        run = [program, "bench", "--kernel", "naive", "--sizes", "1", "--device", "sim", "--json", file]
        subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
        made = json.loads(file.read_text())["provenance"]
    made["command"] = [pathlib.Path(word).name for word in (sys.argv[0], program, *others)]
    return made | {"profiler": "Nsight Compute, one launch of each kernel, SM clock held at its base"}


def main(program, file, *steps):
    made = provenance(program, file, *steps)
    kernels = []
    for kernel in STEPS if steps else KERNELS:
        kernels.append(counts(program, *kernel))
        print(kernel[0], flush=True)
    ask = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    device, capability, driver = gpu.split(", ")
    written = {
        "schema": 1,
        "provenance": made,
        "machine": {"device": device, "compute_capability": capability, "driver": driver},
        "size": SIZE,
        "kernels": kernels,
    }
    with open(file, "w") as out:
        json.dump(written, out, indent=1)
        out.write("\n")


main(*sys.argv[1:])
