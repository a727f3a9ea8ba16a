//! The program on an OpenCL device, compared with the simulator, and the binaries of its compiler.

use std::fs;
use std::sync::Once;

use gpu_gemm::OpenClDevice;
use gpu_gemm::device::compiled;
use host::bench::Results;
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

use crate::common::run_in;
use crate::trials;

/// What the programs run.
const KERNELS: [&str; 6] = [
    "double_buffer_k8_block8",
    "few_rows_1_bf16",
    "few_rows_1_bf16_f32",
    "naive",
    "pad_16",
    "tiled_16",
];

/// As that of `fake_gpu`, to OpenCL C.
fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if Arguments::from_args().filter.is_none() {
            let _ = compiled::prepare_opencl(&KERNELS);
        }
    });
}

pub fn trials() -> Vec<Trial> {
    let why_not = OpenClDevice::open(0).err();
    let tests = trials!["opencl::":
        a_benchmark_is_compared_with_that_of_another_device,
        a_and_b_of_16_bits_have_a_c_of_16_bits_or_of_f32,
    ];
    trials::ignored_if(why_not, tests)
}

fn a_and_b_of_16_bits_have_a_c_of_16_bits_or_of_f32() {
    prepare();
    let folder = TempDir::new().unwrap();
    for data_type in ["bf16", "bf16-f32"] {
        let run = format!(
            "--device opencl --kernel few-rows --dtype {data_type} --m 1 --n 70 --k 90 --runs 2"
        );
        let said = run_in(folder.path(), &run).succeeded();
        assert!(said.contains("few-rows-1: passed"), "{said}");
        // The timed result, on separate copies, passed, too.
        assert!(!said.contains("FAILED"), "{said}");
    }
}

fn a_benchmark_is_compared_with_that_of_another_device() {
    prepare();
    let folder = TempDir::new().unwrap();
    let what = "--kernel naive,tiled-16,auto --sizes 48 --runs 8 --baseline none";
    let bench = |options: &str| run_in(folder.path(), &format!("bench {options} {what}"));
    bench("--device sim --json a.json").succeeded();
    let ended = bench("--device opencl --compare a.json --json b.json");
    // A device may refuse a kernel, and a note then says why.
    let is_refused = ended.err.contains("not run: tiled-16");
    let head = "compared with `a.json` (simulator on ";
    let (_, compared) = ended.out.split_once(head).expect(&ended.out);
    let rows = compared.lines().filter(|line| line.contains(" | x "));
    let rows = rows.count();
    ended.succeeded();
    let text = fs::read_to_string(folder.path().join("b.json")).unwrap();
    let found: Results = serde_json::from_str(&text).unwrap();
    assert!(found.all_passed());
    assert_eq!(found.machine.backend, "opencl");
    assert_eq!(found.kernels().len(), 3 - usize::from(is_refused));
    assert_eq!(rows, found.kernels().len());
}
