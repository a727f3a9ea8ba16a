//! `host explain`, run as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_host"))
        .arg("explain")
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_kernel_of_every_type_has_an_explanation() {
    for data_type in ["f32", "i32"] {
        let output = explain(&[
            "all", "--dtype", data_type, "--gpu", "h200", "--size", "1000",
        ]);
        assert_eq!(output.status.code(), Some(0));
        let text = stdout(&output);
        let variants = gpu_gemm::gpu_kernels::KERNELS
            .iter()
            .flat_map(|kernel| kernel.variants);
        let of_type = variants
            .filter(|variant| variant.types.c.name() == data_type)
            .count();
        for part in [
            "\n| launch ",
            "\nintensity ",
            "\nroofline ",
            "\nregisters ",
            "\nshared ",
        ] {
            assert!(text.matches(part).count() >= of_type, "{part} in:\n{text}");
        }
    }
}

#[test]
fn json_has_the_numbers_of_the_shape_that_was_asked_for() {
    let output = explain(&[
        "tiled-32", "--m", "64", "--n", "96", "--k", "128", "--beta", "1", "--gpu", "a100",
        "--format", "json",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["launches"][0]["grid_x"], 3);
    assert_eq!(found["launches"][0]["grid_y"], 2);
    let elements: Vec<(&str, &str, &str, u64)> = found["traffic"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moved| {
            let text = |key: &str| moved[key].as_str().unwrap();
            let elements = moved["elements"].as_u64().unwrap();
            (text("memory"), text("direction"), text("matrix"), elements)
        })
        .collect();
    let product = 64 * 96 * 128;
    assert_eq!(
        elements,
        [
            ("global", "read", "A", product / 32),
            ("global", "read", "B", product / 32),
            ("global", "read", "C", 64 * 96),
            ("global", "write", "C", 64 * 96),
            ("shared", "write", "A", product / 32),
            ("shared", "write", "B", product / 32),
            ("shared", "read", "A", product),
            ("shared", "read", "B", product),
        ]
    );
    assert_eq!(found["roofline"]["compute_capability"], "8.0");
    assert_eq!(found["roofline"]["gpu_is_here"], false);
    // What ptxas knows, or why it does not.
    assert_eq!(found["resources"].is_null(), found["occupancy"].is_null());
    assert_ne!(
        found["resources"].is_null(),
        found["no_resources"].is_null()
    );
}

#[test]
fn what_there_is_not_is_a_usage_error() {
    for arguments in [
        &["tilde"][..],
        &[],
        &["naive", "--gpu", "voodoo"],
        &["naive", "--m", "0"],
        &["double-buffer", "--dtype", "i32"],
    ] {
        let output = explain(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}
