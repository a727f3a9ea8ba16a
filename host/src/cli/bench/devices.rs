//! The devices of a benchmark, each with what runs there.

use std::io::Write;
use std::rc::Rc;

use super::Arguments;
use crate::bench::{self, OnDevice};
use crate::cli::exit::{Stop, failed, noted, usage};
use crate::cli::running;
use crate::measure::Origin;
use crate::prove::NATIVE;
use crate::select::Asked;
use gpu_gemm::{Chooser, Device, DeviceChoice, DeviceError, Opened};

/// The devices, each with what runs there. A kernel that one cannot run is left out there; if a
/// device can run none, that is an error.
pub(super) fn on_devices(
    arguments: &Arguments,
    asked: &[Asked],
    choices: &[DeviceChoice],
    is_native: bool,
    notes: &mut dyn Write,
) -> Result<Vec<OnDevice>, Stop> {
    let opened = choices.iter().cloned().map(Device::open);
    let opened: Result<Vec<Opened>, DeviceError> = opened.collect();
    let opened = opened.map_err(failed)?;
    let of_choice = choices.iter().cloned();
    let of_choice = of_choice.zip(opened.iter().map(|opened| &opened.device));
    let labels = bench::labels(&of_choice.collect::<Vec<_>>()).map_err(|name| {
        usage(format!(
            "`--device` names `{name}` twice: name each device once."
        ))
    })?;
    let running = &arguments.running;
    let mut devices = Vec::new();
    for (index, (mut opened, label)) in opened.into_iter().zip(labels).enumerate() {
        if is_native {
            opened.reason = NATIVE.to_string();
        }
        let chooser = noted(Chooser::of(&opened.device), notes);
        // CPU rungs need no device: once is enough.
        let asked = asked.iter().copied();
        let asked = asked.filter(|asked| index == 0 || !asked.is_native());
        devices.push(OnDevice {
            chooser: Rc::new(running.math.chooser(chooser)),
            asked: running::runnable(asked.collect(), &opened.device, label.as_deref(), notes)?,
            origin: Origin::default(),
            baseline: match choices.len() {
                1 => running.baseline,
                _ => running.baseline.for_device(&opened.device),
            },
            opened: Rc::new(opened),
            label,
        });
    }
    with_origins(arguments, devices)
}

/// The same, with matrices where they are to start.
fn with_origins(arguments: &Arguments, devices: Vec<OnDevice>) -> Result<Vec<OnDevice>, Stop> {
    let Some(first) = devices.first() else {
        return Ok(devices);
    };
    let origins = arguments.running.origins(&first.opened.device)?;
    match (&origins[..], devices.len()) {
        (_, 1) => Ok(first.clone().with_origins(&origins)),
        ([origin], _) => {
            let with = |on| OnDevice {
                origin: *origin,
                ..on
            };
            Ok(devices.into_iter().map(with).collect())
        }
        (several, count) => Err(usage(format!(
            "`--start` names {} starts, and `--device` {count} devices: name one start or one \
             device, which may be joined of several, as in `--device cuda:0+1`.",
            several.len()
        ))),
    }
}

/// Why these devices, for people.
pub(super) fn reason(devices: &[OnDevice]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for on in devices {
        if !reasons.contains(&&*on.opened.reason) {
            reasons.push(&on.opened.reason);
        }
    }
    reasons.join("; ")
}
