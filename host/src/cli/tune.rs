//! `rust-gemm tune`: measures on this GPU which kernels `--kernel auto` should run.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::{PASSED, Stop, failed, finish, note, usage};
use super::sizes::{self, Sizes, shape};
use crate::bench::shapes::SHAPES;
use crate::measure::Effort;
use crate::output::{Output, make_folder};
use crate::progress::Progress;
use crate::report::{duration, new_table};
use crate::tune::{self, Measured, Settings};
use gpu_gemm::choose::tuned::Entry;
use gpu_gemm::choose::{Found, Key, Tuned};
use gpu_gemm::device::driver;
use gpu_gemm::{Choice, Chooser, Device, DeviceChoice, DeviceError, Opened, Shape};

/// Measures on this GPU which kernels `--kernel auto` and the library should run, for f32 matrices
/// of the given shapes, and stores the result in the cache folder, for this GPU, driver and build.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Values of m = n = k: numbers such as 1000 or 4k (k is 1024), and ranges FROM:TO:STEP
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<Sizes>,

    /// Shapes, as 4096x64x512 (m x n x k), after the sizes [default, if there are no sizes:
    /// those of `bench --preset shapes`]
    #[arg(long, value_name = "MxNxK", value_delimiter = ',', value_parser = shape)]
    shapes: Vec<Shape>,

    /// The largest number of plans to measure at each shape, the most promising first
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    plans: u16,

    /// Show earlier measurements, and measure nothing
    #[arg(long, conflicts_with_all = ["sizes", "shapes", "plans"])]
    list: bool,

    /// The GPU: `auto`, `cuda` or `cuda:NUMBER`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,

    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    seed: u64,

    /// Timed runs of each plan [default: up to 20]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,
}

pub(super) fn tune(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    if arguments.list {
        return list(out, notes);
    }
    let opened = Device::open(arguments.device.clone()).map_err(for_gpus)?;
    let key = Key::of(tune::gpu_of(&opened).map_err(usage)?.properties());
    let mut tuned = match Tuned::find(&key) {
        Found::Usable(tuned) => tuned,
        Found::Nothing => Tuned::new(key.clone()),
        Found::Useless(why) => {
            note(notes, why);
            Tuned::new(key.clone())
        }
    };
    // Before anything that takes long: a folder that cannot be written fails at once.
    let path = keep(&tuned, &key).map_err(failed)?;
    let mut measured: Vec<Measured> = Vec::new();
    let code = match measure(arguments, &opened, &key, &mut tuned, &mut measured) {
        Ok(()) => PASSED,
        Err(stop) => stop.tell(notes),
    };
    let written = match measured.is_empty() {
        true => Ok(()),
        false => writeln!(
            out,
            "device  {}\nkept in {}\n\n{}",
            opened.device.description(),
            path.display(),
            table(&measured)
        ),
    };
    Ok(finish(written, notes, code))
}

/// The error without the advice to use the simulator, which `tune` does not measure.
fn for_gpus(error: DeviceError) -> Stop {
    failed(DeviceError::without_simulator(&error.to_string()))
}

/// Measures at every shape, and stores the results in `tuned` and `measured`.
fn measure(
    arguments: &Arguments,
    opened: &Opened,
    key: &Key,
    tuned: &mut Tuned,
    measured: &mut Vec<Measured>,
) -> Result<(), Stop> {
    let chooser = Chooser::untuned(opened.device.facts());
    let settings = Settings {
        most: usize::from(arguments.plans),
        effort: Effort::of(arguments.runs, None),
        seed: arguments.seed,
    };
    let shapes = shapes(arguments);
    let progress = Progress::start(tune::STEPS * shapes.len() as u64);
    for shape in shapes {
        let found = tune::shape(opened, &chooser, shape, settings, &progress).map_err(failed)?;
        let model = Some(found.model.1);
        tuned.insert(Entry::new(found.call, found.choice, found.seconds, model));
        measured.push(found);
        // Written after each shape, so that an interruption loses only the current one.
        keep(tuned, key).map_err(failed)?;
    }
    Ok(())
}

/// Writes the tuned results in one step, and returns their path.
fn keep(tuned: &Tuned, key: &Key) -> Result<PathBuf, Box<dyn Error>> {
    let path = Tuned::path(key).ok_or(
        "There is no folder to keep measurements in: none of GEMM_CACHE_DIR, XDG_CACHE_HOME and HOME is set; set \
         GEMM_CACHE_DIR to a folder.",
    )?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    Output::open(&path)?.finish(|out| write!(out, "{tuned}"))?;
    Ok(path)
}

/// The shapes to measure.
fn shapes(arguments: &Arguments) -> Vec<Shape> {
    let asked = sizes::shapes(&arguments.sizes, &arguments.shapes);
    match asked.is_empty() {
        true => SHAPES.iter().map(|named| named.shape).collect(),
        false => asked,
    }
}

fn table(measured: &[Measured]) -> String {
    let mut table = new_table();
    table.set_header([
        "m x n x k",
        "plans",
        "fastest",
        "time (median)",
        "the model's choice",
        "time (median)",
        "gain",
    ]);
    for found in measured {
        let (of_model, seconds) = &found.model;
        table.add_row([
            found.call.shape.to_string(),
            found.plans.to_string(),
            found.choice.description(),
            duration(found.seconds),
            match *of_model == found.choice {
                true => "the same".to_string(),
                false => of_model.description(),
            },
            duration(*seconds),
            format!("x {:.3}", seconds / found.seconds),
        ]);
    }
    table.to_string()
}

/// Lists the stored results for each GPU of this machine.
fn list(out: &mut dyn Write, notes: &mut dyn Write) -> Result<u8, Stop> {
    let gpus = driver::probe().map_err(for_gpus)?;
    let mut text = String::new();
    let mut keys: Vec<Key> = gpus.iter().map(Key::of).collect();
    keys.dedup();
    for key in keys {
        text += &format!("device  {}, driver {}\n", key.device, key.driver);
        text += &match (Tuned::find(&key), Tuned::path(&key)) {
            (Found::Usable(tuned), Some(path)) => {
                format!("kept in {}\n\n{}\n", path.display(), entries(&tuned))
            }
            (Found::Useless(why), _) => format!("{why}\n"),
            _ => "Nothing was measured yet.\n".to_string(),
        };
    }
    Ok(finish(write!(out, "{text}"), notes, PASSED))
}

fn entries(tuned: &Tuned) -> String {
    let mut table = new_table();
    table.set_header(["m x n x k", "fastest", "time (median)"]);
    for entry in tuned.entries() {
        let plan = tuned.plan(entry.call);
        let choice = plan.map_or_else(
            || entry.kernel.clone(),
            |plan| Choice::of(&plan).description(),
        );
        let shape = entry.call.shape;
        table.add_row([shape.to_string(), choice, duration(entry.seconds)]);
    }
    table.to_string()
}
