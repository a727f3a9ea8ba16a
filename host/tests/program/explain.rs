//! `rust-gemm explain`, run as a user runs it.

use std::path::Path;

use crate::common::{Ended, assert_contains, command};
use gpu_gemm::DataType;
use gpu_gemm::gpu_kernels::spec::Variant;
use gpu_gemm::gpu_kernels::variants;

/// Without ptxas, for which the kernels would be compiled.
fn explain(arguments: &str) -> Ended {
    let mut command = command(Path::new("."), &format!("explain {arguments}"));
    command.env("LIBNVVM_PATH", "/no/such/folder");
    Ended::of(command)
}

#[test]
fn every_kernel_of_every_type_has_an_explanation() {
    // `tests/ptx.rs` assembles every kernel, which takes a while: here only one.
    for (kernels, has_ptxas) in [("all", false), ("naive", true)] {
        let arguments = format!("explain {kernels} --gpu h200 --size 1000");
        let mut command = command(Path::new("."), &arguments);
        if !has_ptxas {
            command.env("LIBNVVM_PATH", "/no/such/folder");
        }
        let text = Ended::of(command).succeeded();
        let is_explained = |variant: &&Variant| {
            let is_named = ["all", variant.entry.name].contains(&kernels);
            is_named && variant.types.data_type() == DataType::F32
        };
        let count = variants().filter(is_explained).count();
        for part in [
            "| launch ",
            "intensity ",
            "roofline ",
            "registers ",
            "shared ",
        ] {
            let found = text.matches(&format!("\n{part}")).count();
            assert!(found >= count, "{part} in:\n{text}");
        }
        let unknown = text.matches("\nregisters  unknown").count();
        assert!(has_ptxas || unknown == count, "{text}");
    }
}

#[test]
fn the_numbers_are_those_of_the_requested_shape() {
    let shape = "--m 64 --n 96 --k 128 --beta 1";
    let text = explain(&format!("tiled-32 {shape} --gpu a100")).succeeded();
    assert_contains(
        &text,
        &[
            "| tiled_32 | 3 x 2 | 6 ",
            "| global read  | A  | M*N*K / 32 | 24 576 ",
            "| global read  | C  | M*N        | 6 144 ",
            "| shared write | B  | M*N*K / 32 | 24 576 ",
            "| shared read  | A  | M*N*K      | 786 432 ",
            "NVIDIA A100 80GB SXM (not here: figures from its data sheet): 108 SMs",
        ],
    );
}

/// Only Hopper has wgmma; Ampere and Ada have the tensor cores of a warp, a T4 has none for bf16.
#[test]
fn no_kernel_is_said_to_run_where_it_does_not() {
    for gpu in ["a100", "rtx4090", "rtx4070"] {
        let auto = explain(&format!("auto --dtype bf16 --size 4096 --gpu {gpu}")).succeeded();
        assert!(auto.starts_with("auto: runs tensor-core "), "{auto}");
        assert!(!auto.contains("warp-specialized"), "{auto}");
        let named = explain(&format!("persistent --dtype bf16 --size 4096 --gpu {gpu}")).refused(1);
        let why =
            "Kernel `persistent` needs tensor cores of compute capability 9.0, which `NVIDIA ";
        assert!(named.contains(why), "{named}");
    }
    let none = explain("auto --dtype bf16 --size 4096 --gpu t4").refused(1);
    assert!(none.contains("compute capability 8.0 or newer"), "{none}");
}

#[test]
fn counts_that_are_not_what_their_formulas_give_are_explained() {
    // The formula, for tiles of 256 columns, gives 6250; the count is 400 000 elements.
    let cut = explain("row-shared --m 4 --n 4 --k 100000 --gpu h200").succeeded();
    let note = "Tiles do not divide this shape: ";
    assert_contains(&cut, &["M*N*K / ", note]);
    // A C of five rows has two thread tiles of four.
    let rows = explain("few-rows-4 --m 5 --n 1024 --k 1024 --gpu h200").succeeded();
    assert_contains(&rows, &[note]);
    let divided = explain("row-shared --size 1024 --gpu h200").succeeded();
    assert!(!divided.contains("Tiles do not divide"), "{divided}");
}

#[test]
fn auto_is_explained_by_what_it_chooses_and_why() {
    let text = explain("auto --gpu h200 --size 4096").succeeded();
    assert!(text.starts_with("auto: runs wide-thread-tile ("), "{text}");
    assert_contains(
        &text,
        &[
            " on NVIDIA H200\nwhy   it is predicted to be the fastest",
            "| predicted |",
            "| async-pipeline (",
            "\nwide-thread-tile: ",
            "\nroofline ",
        ],
    );
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{text}");
    // The choice depends on the GPU: the T4 has no asynchronous copies.
    let text = explain("auto --gpu t4 --m 100 --n 200 --k 3000").succeeded();
    assert!(!text.contains("async-pipeline"), "{text}");
    let text = explain("auto --gpu h200 --m 3 --n 4096 --k 4096").succeeded();
    assert!(text.starts_with("auto: runs few-rows-4x32 ("), "{text}");
}

#[test]
fn a_cpu_rung_is_explained_as_its_file_does() {
    let text = explain("cpu-ikj --size 512").succeeded();
    assert_contains(
        &text,
        &[
            "cpu-ikj: the loops in another order",
            "crates/verification/src/cpu/ikj.rs; 512 x 512 x 512 of f32",
            "Cache lines fetched for B: M*N*K / L",
        ],
    );
    let all = explain("cpu").succeeded();
    assert_eq!(
        all.matches("\nthreads    ").count(),
        verification::cpu::RUNGS.len()
    );
    let text = explain("cpu-rows --dtype f64").succeeded();
    let parts = [
        "4096 x 4096 x 4096 of f64",
        "\nthreads    --threads, --schedule\n",
    ];
    assert_contains(&text, &parts);
}

#[test]
fn what_does_not_exist_is_a_usage_error() {
    for arguments in [
        "tilde",
        "",
        "naive --gpu voodoo",
        "naive --m 0",
        "warp-tiled --dtype i32",
    ] {
        explain(arguments).refused(2);
    }
}
