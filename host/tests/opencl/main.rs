//! The program on a device of OpenCL: beside the simulator in one benchmark, and what its
//! compiler makes of a kernel. Ignored by their names where there is no such device.

#[allow(dead_code)] // this does not need all of it
#[path = "../program/common/mod.rs"]
mod common;
#[macro_use]
#[path = "../program/common/trials.rs"]
mod trials;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use gpu_gemm::OpenClDevice;
use host::bench::Results;
use tempfile::TempDir;

use common::run_in;

fn main() -> ExitCode {
    let tests = trials!["opencl::":
        two_devices_are_side_by_side_in_every_output,
        a_kernel_that_one_device_cannot_run_is_left_out_there,
        the_first_device_of_two_is_compared_with_it_alone,
        a_and_b_of_16_bits_have_a_c_of_16_bits_or_of_f32,
        a_binary_is_what_the_devices_compiler_made,
    ];
    trials::run(OpenClDevice::open(0).err(), tests)
}

fn a_and_b_of_16_bits_have_a_c_of_16_bits_or_of_f32() {
    let folder = TempDir::new().unwrap();
    for data_type in ["bf16", "bf16-f32"] {
        let run = format!(
            "--device opencl --kernel few-rows --dtype {data_type} --m 1 --n 70 --k 90 --runs 2"
        );
        let said = run_in(folder.path(), &run).succeeded();
        assert!(said.contains("few-rows-1: proven right"), "{said}");
        // What was timed, on copies of its own, is proven, too.
        assert!(!said.contains("NOT PROVEN"), "{said}");
    }
}

fn results(folder: &Path, name: &str) -> Results {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

fn two_devices_are_side_by_side_in_every_output() {
    let folder = TempDir::new().unwrap();
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    let files = "--json b.json --csv b.csv --markdown b.md --plots plots";
    let what = "bench --device sim,opencl --kernel naive,tiled-16,auto --sizes 48 --runs 2";
    let table = run_in(folder.path(), &format!("{what} --baseline none {files}")).succeeded();
    let titles = ["naive", "tiled-16", "auto"]
        .iter()
        .flat_map(|kernel| ["sim", "opencl"].map(|device| format!("{kernel} ({device})")));
    let titles: Vec<String> = titles.collect();
    let rows = table
        .lines()
        .filter(|line| line.contains("FLOP/s"))
        .filter_map(|line| line.split('|').nth(1));
    assert_eq!(rows.map(str::trim).collect::<Vec<_>>(), titles);
    for part in [
        "device  sim: simulator on ",
        "device  opencl: ",
        "| of sim ",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }

    let found = results(folder.path(), "b.json");
    assert!(found.all_proven());
    assert_eq!(found.kernels(), titles);
    let backends = found.all_machines().iter();
    let backends: Vec<&str> = backends.map(|machine| machine.backend.as_str()).collect();
    assert_eq!(backends, ["simulator", "opencl"]);
    for pair in found.sizes[0].results.chunks(2) {
        assert_eq!(pair[0].ratio_to_first_device, None);
        let times = pair[0].time_median_s.zip(pair[1].time_median_s);
        let (simulator, opencl) = times.unwrap();
        let ratio = pair[1].ratio_to_first_device.unwrap();
        assert!((ratio * opencl / simulator - 1.0).abs() < 1e-9);
    }
    let csv = read("b.csv");
    let head = csv.lines().next().unwrap_or_default();
    for column in ["device_label", "ratio_to_first_device"] {
        assert!(head.split(',').any(|name| name == column), "{head}");
    }
    assert!(read("b.md").contains("| `tiled-16 (opencl)` | "));
    for plot in ["plots/ladder.svg", "plots/roofline.svg"] {
        let svg = read(plot);
        for title in &titles[..4] {
            assert!(svg.contains(title.as_str()), "{plot} lacks {title}");
        }
    }
}

fn a_kernel_that_one_device_cannot_run_is_left_out_there() {
    let folder = TempDir::new().unwrap();
    let what = "bench --device sim,opencl --kernel naive,wide-thread-tile,cpu-ikj --sizes 16 --json b.json";
    let notes = run_in(folder.path(), &format!("{what} --baseline none")).err;
    let found = results(folder.path(), "b.json");
    let titles = found.kernels();
    let count = |kernel: &str| {
        let of_it = titles.iter().filter(|title| title.starts_with(kernel));
        of_it.count()
    };
    assert_eq!((count("naive ("), count("cpu-ikj")), (2, 1));
    let left_out: Vec<&str> = notes
        .lines()
        .filter(|line| line.contains("not run: "))
        .collect();
    for line in &left_out {
        assert!(line.starts_with("note: opencl: not run: "), "{line}");
    }
    let both = count("wide-thread-tile") == 2;
    assert_eq!(both, left_out.is_empty(), "{titles:?}, {notes}");
}

fn the_first_device_of_two_is_compared_with_it_alone() {
    let folder = TempDir::new().unwrap();
    let what = "--kernel naive --sizes 16 --runs 8 --baseline none";
    run_in(
        folder.path(),
        &format!("bench --device sim {what} --json a.json"),
    )
    .succeeded();
    let again = format!("bench --device sim,opencl {what} --compare a.json --json b.json");
    let table = run_in(folder.path(), &again).succeeded();
    let found = results(folder.path(), "b.json");
    let compared = found.comparison.iter();
    let compared: Vec<Option<&str>> = compared.map(|one| one.device_label.as_deref()).collect();
    assert_eq!(compared, [Some("sim")]);
    let only = "only in this benchmark: naive (opencl) at 16";
    assert!(table.contains(only), "{table}");
}

fn a_binary_is_what_the_devices_compiler_made() {
    let folder = TempDir::new().unwrap();
    run_in(folder.path(), "opencl tiled-16 --binary tiled.bin").succeeded();
    assert!(fs::metadata(folder.path().join("tiled.bin")).unwrap().len() > 0);
    for (arguments, said) in [
        (
            "opencl tiled-* --binary b",
            "--binary takes one kernel, but ",
        ),
        (
            "opencl tiled-16 --binary b --device sim",
            "`--binary` is made by OpenCL, but sim is no device of it",
        ),
        (
            "opencl tiled-16 --binary b --device opencl:1000",
            "There is no OpenCL device 1000: there are ",
        ),
    ] {
        let ended = run_in(folder.path(), arguments);
        assert!(
            ended.code > Some(0) && ended.err.contains(said),
            "{}",
            ended.err
        );
    }
}
