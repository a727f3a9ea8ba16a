//! `rust-gemm explain`, run as a user runs it.

use std::path::Path;

use crate::common::{Ended, assert_contains, command};
use gpu_gemm::gpu_kernels::variants;
use serde_json::Value;

/// Without ptxas, for which the kernels would be compiled.
fn explain(arguments: &str) -> Ended {
    let mut command = command(Path::new("."), &format!("explain {arguments}"));
    command.env("LIBNVVM_PATH", "/no/such/folder");
    Ended::of(command)
}

#[test]
fn every_kernel_of_every_type_has_an_explanation() {
    // `tests/ptx.rs` assembles every kernel, which takes a while: here only those of one type.
    for (data_type, has_ptxas) in [("f32", false), ("i32", true)] {
        let arguments = format!("explain all --dtype {data_type} --gpu h200 --size 1000");
        let mut command = command(Path::new("."), &arguments);
        if !has_ptxas {
            command.env("LIBNVVM_PATH", "/no/such/folder");
        }
        let text = Ended::of(command).succeeded();
        let of_type = variants().filter(|variant| variant.types.data_type().name() == data_type);
        let count = of_type.count();
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
fn json_has_the_numbers_of_the_requested_shape() {
    let shape = "--m 64 --n 96 --k 128 --beta 1";
    let text = explain(&format!("tiled-32 {shape} --gpu a100 --format json")).succeeded();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["launches"][0]["grid_x"], 3);
    assert_eq!(found["launches"][0]["grid_y"], 2);
    let moved = found["traffic"].as_array().unwrap().iter();
    let elements: Vec<(&str, &str, &str, u64)> = moved
        .map(|moved| {
            let text = |key: &str| moved[key].as_str().unwrap();
            let elements = moved["elements"].as_u64().unwrap();
            (text("memory"), text("direction"), text("matrix"), elements)
        })
        .collect();
    let product = 64 * 96 * 128;
    let expected = [
        ("global", "read", "A", product / 32),
        ("global", "read", "B", product / 32),
        ("global", "read", "C", 64 * 96),
        ("global", "write", "C", 64 * 96),
        ("shared", "write", "A", product / 32),
        ("shared", "write", "B", product / 32),
        ("shared", "read", "A", product),
        ("shared", "read", "B", product),
    ];
    assert_eq!(elements, expected);
    assert_eq!(found["roofline"]["compute_capability"], "8.0");
    assert_eq!(found["roofline"]["gpu_is_here"], false);
    // The values from ptxas, or the reason why there are none.
    let unknown = |key: &str| found[key].is_null();
    assert_eq!(unknown("resources"), unknown("occupancy"));
    assert_ne!(unknown("resources"), unknown("no_resources"));
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
            "| predicted time |",
            "| async-pipeline (",
            "\nwide-thread-tile: ",
            "\nroofline ",
        ],
    );
    // The choice depends on the GPU: the T4 has no asynchronous copies.
    let text = explain("auto --gpu t4 --m 100 --n 200 --k 3000").succeeded();
    assert!(!text.contains("async-pipeline"), "{text}");
    let text = explain("auto --gpu h200 --m 3 --n 4096 --k 4096 --format json").succeeded();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["kernel"], "few-rows-4x32");
    assert_eq!(found["auto"]["by"], "predicted");
    let candidates = found["auto"]["candidates"].as_array().unwrap();
    let times: Vec<f64> = candidates
        .iter()
        .map(|candidate| candidate["predicted_s"].as_f64().unwrap())
        .collect();
    assert!(times.len() > 5 && times.is_sorted() && times[0] > 0.0);
    assert_eq!(found["auto"]["chosen"], candidates[0]["plan"]);
}

#[test]
fn a_cpu_rung_is_explained_as_its_file_does() {
    let text = explain("cpu-ikj --size 512").succeeded();
    assert_contains(
        &text,
        &[
            "cpu-ikj: the loops in another order",
            "host/src/cpu/ikj.rs; 512 x 512 x 512 of f32",
            "Cache lines fetched for B: M*N*K / L",
        ],
    );
    let all = explain("cpu").succeeded();
    assert_eq!(all.matches("\nthreads    ").count(), host::cpu::RUNGS.len());
    let text = explain("cpu-rows --dtype f64 --format json").succeeded();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["threads"], "--threads, --schedule");
    assert_eq!(found["operations"], 2.0 * 4096f64.powi(3));
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

#[test]
fn a_product_on_several_devices_is_explained_with_its_split_and_one_of_its_parts() {
    let text = explain("tiled-32 --size 4096 --devices 4 --gpu h200").succeeded();
    let parts = [
        "split      4096 x 4096 x 4096 on 4 devices, 2 x 2: each computes 2048 x 2048 of C in 4 products",
        "sent       each receives up to 33554432 bytes, M K/p (q-1)/q + K N/q (p-1)/p elements",
        "hidden     a product takes ",
        "1024 x 1024 x 4096 of f32",
    ];
    assert_contains(&text, &parts);
    let one = explain("tiled-32 --size 64 --devices 1 --format json").succeeded();
    assert!(!one.contains("\"split\""), "{one}");
    explain("tiled-32 --devices 0").refused(2);
}
