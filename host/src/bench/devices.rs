//! The devices of a benchmark. Of several, each runs every kernel that it can, and the rows of a
//! kernel stand beside each other: `bench --device cuda,opencl`.
//!
//! At each shape the contenders of one device alternate with each other, and then those of the
//! next device do.
//!
//! A joined device can also run each kernel with its matrices at several starts, whose rows stand
//! beside each other in the same way: `bench --device cuda:all --start spread,first-b`.

use std::rc::Rc;

use gpu_gemm::{Chooser, DataType, Device, DeviceChoice, Opened};

use super::results::{Machine, Size};
use crate::measure::Origin;
use crate::prove::Baseline;
use crate::report::{Record, Report};
use crate::select::Asked;
use crate::spelled;

/// A device, and what it runs.
#[derive(Clone)]
pub struct OnDevice {
    pub opened: Rc<Opened>,
    pub chooser: Rc<Chooser>,
    /// Where matrices lie before a timed product on several devices.
    pub origin: Origin,
    /// What tells its rows from those of others; none for the only device with the only start.
    pub label: Option<String>,
    /// The kernels that it can run. CPU rungs are the first device's.
    pub asked: Vec<Asked>,
    pub baseline: Baseline,
}

impl OnDevice {
    /// The only device, with each of these starts. With several, the label is the start's name.
    pub fn with_origins(self, origins: &[Origin]) -> Vec<OnDevice> {
        let with = |(index, &origin): (usize, &Origin)| OnDevice {
            origin,
            label: (origins.len() > 1).then(|| spelled(origin)),
            // CPU rungs start nowhere else: once is enough.
            asked: {
                let asked = self.asked.iter().copied();
                asked
                    .filter(|asked| index == 0 || !asked.is_native())
                    .collect()
            },
            ..self.clone()
        };
        origins.iter().enumerate().map(with).collect()
    }

    /// What it is, with its peak for an element type.
    pub(super) fn machine(&self, data_type: DataType) -> Machine {
        Machine {
            device_label: self.label.clone(),
            ..Machine::of(&self.opened.device, data_type)
        }
    }

    /// Adds what was found on it at a size.
    pub(super) fn add(&self, report: Report, size: &mut Size) {
        size.gpu_state = size.gpu_state.take().or(report.gpu_state);
        size.stages.extend(report.stages);
        for mut yardstick in report.yardsticks {
            yardstick.device_label = self.label.clone();
            size.yardsticks.push(yardstick);
        }
        for mut record in report.results {
            record.device_label = self.label.clone().filter(|_| !record.is_native());
            size.results.push(record);
        }
    }
}

/// What tells devices apart: `opencl`, or `opencl:1` where there are two of a kind. `None` if there
/// is only one device.
///
/// # Errors
///
/// A device is there twice: its name.
pub fn labels(devices: &[(DeviceChoice, &Device)]) -> Result<Vec<Option<String>>, String> {
    // What `auto` has become.
    let choices = devices
        .iter()
        .map(|(choice, device)| match (choice, device) {
            (DeviceChoice::Auto, Device::Cuda(_)) => DeviceChoice::Cuda(0),
            (DeviceChoice::Auto, _) => DeviceChoice::Simulator,
            (choice, _) => choice.clone(),
        });
    let choices: Vec<DeviceChoice> = choices.collect();
    let kind = |choice: &DeviceChoice| {
        let text = choice.to_string();
        text.split(':').next().unwrap_or_default().to_owned()
    };
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index].contains(choice) {
            return Err(choice.to_string());
        }
    }
    let label = |choice: &DeviceChoice| {
        let of_kind = choices.iter().filter(|other| kind(other) == kind(choice));
        match of_kind.count() {
            1 => kind(choice),
            _ => choice.to_string(),
        }
    };
    Ok(match choices.len() {
        1 => vec![None],
        _ => choices.iter().map(|choice| Some(label(choice))).collect(),
    })
}

/// Puts the rows of each kernel beside each other, in the order of `asked`, and compares each
/// with that of the device with the label `first`.
pub(super) fn side_by_side(size: &mut Size, asked: &[Asked], first: Option<&str>) {
    let place = |record: &Record| {
        let mut names = asked.iter().map(|asked| asked.name());
        names.position(|name| name == record.kernel)
    };
    size.results.sort_by_key(place);
    let ratios: Vec<Option<f64>> = size
        .results
        .iter()
        .map(|record| Some(time_on_first(size, record, first)? / record.time_median_s?))
        .collect();
    for (record, ratio) in size.results.iter_mut().zip(ratios) {
        record.ratio_to_first_device = ratio;
    }
}

/// The median time of the same kernel on the device with the label `first`, if the record is of
/// another device.
pub(super) fn time_on_first(size: &Size, record: &Record, first: Option<&str>) -> Option<f64> {
    let (own, first) = (record.device_label.as_deref()?, first?);
    let mut records = size.results.iter().filter(|_| own != first);
    let is_first = |other: &&Record| {
        other.kernel == record.kernel && other.device_label.as_deref() == Some(first)
    };
    records.find(is_first)?.time_median_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use crate::rung::Rung;
    use gpu_gemm::gpu_kernels::{naive, tiled};
    use gpu_gemm::{Choice, Simulator};

    fn labelled(choices: &[DeviceChoice]) -> Result<Vec<Option<String>>, String> {
        let simulator = Device::Simulator(Simulator::default());
        let devices = choices.iter().map(|choice| (choice.clone(), &simulator));
        labels(&devices.collect::<Vec<_>>())
    }

    #[test]
    fn a_label_is_as_short_as_it_can_be() {
        use DeviceChoice::{Auto, Cuda, OpenCl, Simulator};
        let some = |labels: &[&str]| {
            let labels = labels.iter().map(|label| Some(label.to_string()));
            Ok(labels.collect())
        };
        assert_eq!(labelled(&[Cuda(3)]), Ok(vec![None]));
        let two = [Cuda(3), OpenCl(0)];
        assert_eq!(labelled(&two), some(&["cuda", "opencl"]));
        let three = [OpenCl(0), Simulator, OpenCl(1)];
        assert_eq!(labelled(&three), some(&["opencl:0", "sim", "opencl:1"]));
        assert_eq!(labelled(&[Auto, OpenCl(1)]), some(&["sim", "opencl"]));
        for twice in [[Cuda(1), Cuda(1)], [Auto, Simulator]] {
            let name = twice[1].to_string();
            assert_eq!(labelled(&twice), Err(name));
        }
    }

    #[test]
    fn the_rows_of_a_kernel_are_beside_each_other_with_their_ratio() {
        let record = |kernel: &str, label: Option<&str>, seconds: Option<f64>| Record {
            kernel: kernel.into(),
            device_label: label.map(String::from),
            time_median_s: seconds,
            ..Record::default()
        };
        let mut size = sample().sizes.remove(0);
        size.results = vec![
            record("tiled-32", Some("cuda"), Some(2.0)),
            record("naive", Some("cuda"), None),
            record("cpu-ijk", None, Some(9.0)),
            record("tiled-32", Some("opencl"), Some(4.0)),
            record("naive", Some("opencl"), Some(3.0)),
            record("tiled-16", Some("opencl"), Some(3.0)),
        ];
        let kernels = [
            &naive::KERNEL.variants[0],
            &tiled::KERNEL.variants[0],
            &tiled::KERNEL.variants[1],
        ];
        let asked = kernels.map(|variant| Asked::Rung(Rung::Gpu(Choice::even(variant))));
        let cpu = Asked::Rung(Rung::Cpu(&crate::cpu::ijk::RUNG));
        let asked = [&asked[..], &[cpu]].concat();
        side_by_side(&mut size, &asked, Some("cuda"));
        let rows: Vec<(String, Option<f64>)> = size
            .results
            .iter()
            .map(|record| (record.title(), record.ratio_to_first_device))
            .collect();
        let expected = [
            ("naive (cuda)", None),
            ("naive (opencl)", None),
            ("tiled-32 (cuda)", None),
            ("tiled-32 (opencl)", Some(0.5)),
            ("tiled-16 (opencl)", None),
            ("cpu-ijk", None),
        ];
        let expected = expected.map(|(title, ratio)| (title.to_string(), ratio));
        assert_eq!(rows, expected);
    }
}
