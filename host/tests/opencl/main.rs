//! The program on a device of OpenCL: beside the simulator in one benchmark, and what its
//! compiler makes of a kernel. Ignored by their names where there is no such device.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

use gpu_gemm::OpenClDevice;
use host::bench::Results;
use host::report::Record;
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

fn main() -> ExitCode {
    let why_no_device = OpenClDevice::open(0).err();
    if let Some(error) = &why_no_device {
        println!("all tests are ignored here: {error}");
    }
    let on_opencl = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(format!("opencl::{name}"), test).with_ignored_flag(why_no_device.is_some())
    };
    let trials = vec![
        on_opencl(
            "two_devices_are_side_by_side_in_every_output",
            all_outputs_of_two_devices,
        ),
        on_opencl(
            "a_kernel_that_one_device_cannot_run_is_left_out_there",
            left_out_on_one,
        ),
        on_opencl(
            "the_first_device_of_two_is_compared_with_it_alone",
            compared_with_earlier,
        ),
        on_opencl(
            "a_and_b_of_16_bits_have_a_c_of_16_bits_or_of_f32",
            sixteen_bits,
        ),
        on_opencl("a_binary_is_what_the_devices_compiler_made", binary),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs the program in a folder.
fn program(
    folder: &Path,
    arguments: &str,
    variable: Option<(&str, &OsStr)>,
) -> Result<Output, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rust-gemm"));
    command
        .args(arguments.split(' '))
        .envs(variable)
        .current_dir(folder);
    Ok(command.output()?)
}

/// Its standard output, if it succeeds.
fn succeeded(folder: &Path, arguments: &str) -> Result<String, Failed> {
    let output = program(folder, arguments, None)?;
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    match output.status.success() {
        true => Ok(out),
        false => Err(format!("{arguments}: {err}").into()),
    }
}

fn sixteen_bits() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    for data_type in ["bf16", "bf16-f32"] {
        let run = format!(
            "--device opencl --kernel few-rows --dtype {data_type} --m 1 --n 70 --k 90 --runs 2"
        );
        let said = succeeded(folder.path(), &run)?;
        assert!(said.contains("few-rows-1: proven right"), "{said}");
        // What was timed, on copies of its own, is proven, too.
        assert!(!said.contains("NOT PROVEN"), "{said}");
    }
    Ok(())
}

/// What it says, if it ends with an exit code of 1 or 2.
fn refused(
    folder: &Path,
    arguments: &str,
    variable: Option<(&str, &OsStr)>,
) -> Result<String, Failed> {
    let output = program(folder, arguments, variable)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(1 | 2) => Ok(said),
        code => Err(format!("{arguments}: {code:?}, {said}").into()),
    }
}

fn results(folder: &Path, name: &str) -> Result<Results, Failed> {
    let results: Results = serde_json::from_str(&fs::read_to_string(folder.join(name))?)?;
    Ok(results)
}

fn all_outputs_of_two_devices() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    let read = |name| fs::read_to_string(folder.path().join(name));
    let files = "--json b.json --json-lines b.jsonl --csv b.csv --markdown b.md --plots plots";
    let what = "bench --device sim,opencl --kernel naive,tiled-16,auto --sizes 48 --runs 2";
    let table = succeeded(folder.path(), &format!("{what} --baseline none {files}"))?;
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

    let found = results(folder.path(), "b.json")?;
    assert!(found.all_proven());
    assert_eq!(found.kernels(), titles);
    let backends = found.all_machines().iter();
    let backends: Vec<&str> = backends.map(|machine| machine.backend.as_str()).collect();
    assert_eq!(backends, ["simulator", "opencl"]);
    for pair in found.sizes[0].results.chunks(2) {
        assert_eq!(pair[0].ratio_to_first_device, None);
        let times = pair[0].time_median_s.zip(pair[1].time_median_s);
        let (simulator, opencl) = times.ok_or("no times")?;
        let ratio = pair[1].ratio_to_first_device.ok_or("no ratio")?;
        assert!((ratio * opencl / simulator - 1.0).abs() < 1e-9);
    }
    let lines = read("b.jsonl")?;
    let lines: Result<Vec<serde_json::Value>, _> =
        lines.lines().map(serde_json::from_str).collect();
    let lines = lines?;
    assert_eq!(lines.len(), titles.len());
    for (line, title) in lines.iter().zip(&titles) {
        let record: Record = serde_json::from_value(line.clone())?;
        assert_eq!(record.title(), *title);
        let device = line["device"].as_str().unwrap_or_default();
        let is_simulated = record.device_label.as_deref() == Some("sim");
        assert_eq!(
            device.starts_with("simulator on "),
            is_simulated,
            "{device}"
        );
    }
    let csv = read("b.csv")?;
    let head = csv.lines().next().unwrap_or_default();
    for column in ["device_label", "ratio_to_first_device"] {
        assert!(head.split(',').any(|name| name == column), "{head}");
    }
    assert!(read("b.md")?.contains("| `tiled-16 (opencl)` | "));
    for plot in ["plots/ladder.svg", "plots/roofline.svg"] {
        let svg = read(plot)?;
        for title in &titles[..4] {
            assert!(svg.contains(title.as_str()), "{plot} lacks {title}");
        }
    }
    Ok(())
}

fn left_out_on_one() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    let what = "bench --device sim,opencl --kernel naive,wide-thread-tile,cpu-ikj --sizes 16 --json b.json";
    let output = program(folder.path(), &format!("{what} --baseline none"), None)?;
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = results(folder.path(), "b.json")?;
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
    Ok(())
}

fn compared_with_earlier() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    let what = "--kernel naive --sizes 16 --runs 8 --baseline none";
    succeeded(
        folder.path(),
        &format!("bench --device sim {what} --json a.json"),
    )?;
    let again = format!("bench --device sim,opencl {what} --compare a.json --json b.json");
    let table = succeeded(folder.path(), &again)?;
    let found = results(folder.path(), "b.json")?;
    let compared = found.comparison.iter();
    let compared: Vec<Option<&str>> = compared.map(|one| one.device_label.as_deref()).collect();
    assert_eq!(compared, [Some("sim")]);
    let only = "only in this benchmark: naive (opencl) at 16";
    assert!(table.contains(only), "{table}");
    Ok(())
}

fn binary() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    succeeded(folder.path(), "opencl tiled-16 --binary tiled.bin")?;
    assert!(fs::metadata(folder.path().join("tiled.bin"))?.len() > 0);
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
        let message = refused(folder.path(), arguments, None)?;
        assert!(message.contains(said), "{message}");
    }
    Ok(())
}
