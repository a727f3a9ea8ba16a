//! Which kernel multiplies these matrices fastest, here: what `--kernel auto` and the library's call run.
//!
//! | file | what it does |
//! | --- | --- |
//! | `rates.rs` | how fast kernels were measured to be, and how other GPUs differ |
//! | `model.rs` | how long a plan will take, by those numbers |
//! | `candidates.rs` | the plans that might be the fastest, and the one that is predicted to be |
//! | `tune.rs` | measuring them |
//! | `tuning.rs` | the plans that `host tune` measured to be the fastest, in a file |
//!
//! A call gets what was tuned for exactly its shape and layout on exactly this GPU, driver and build, else what the model says.

mod candidates;
pub mod model;
pub mod rates;
pub mod tune;
pub mod tuning;

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Kernel, Variant};

use crate::blas::{Call, Plan, Processor, Sharing, Transpose};
use crate::device::{CudaDevice, Device, DeviceError};
use crate::element::DataType;
use crate::problem::Shape;

pub use candidates::{best, candidates};
pub use rates::Rates;
pub use tuning::{Key, Tuning};

/// A kernel, and how its blocks share their steps if it streams.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub variant: &'static Variant,
    /// None for a kernel that does not stream.
    pub sharing: Option<Sharing>,
}

impl Choice {
    /// What a plan runs.
    pub fn of(plan: &Plan<'static>) -> Choice {
        Choice {
            variant: plan.variant(),
            sharing: plan.sharing(),
        }
    }

    /// For people and files: `async-pipeline`, or `async-pipeline (264 blocks share after 3 rounds)`.
    pub fn description(&self) -> String {
        let name = self.variant.name;
        match self.sharing {
            None => name.to_string(),
            Some(Sharing {
                streams,
                whole_waves: 0,
            }) => format!("{name} ({streams} blocks)"),
            Some(Sharing {
                streams,
                whole_waves,
            }) => format!("{name} ({streams} blocks, {whole_waves} whole rounds)"),
        }
    }
}

impl PartialEq for Choice {
    /// Whether both are the same entry of the same table, shared alike.
    fn eq(&self, other: &Choice) -> bool {
        std::ptr::eq(self.variant, other.variant) && self.sharing == other.sharing
    }
}

/// What a call of matrices of f32 runs: as tuned, else as predicted. A tuned plan that needs more than `workspace` elements does not
/// count.
///
/// # Errors
///
/// The elements of workspace that the most modest plan needs, if that is more.
pub fn choose(
    call: Call,
    processor: &Processor,
    rates: &Rates,
    tuning: Option<&Tuning>,
    workspace: usize,
) -> Result<Plan<'static>, usize> {
    let tuned = tuning.and_then(|tuning| tuning.plan(call));
    match tuned.filter(|plan| plan.workspace_elements() <= workspace) {
        Some(plan) => Ok(plan),
        None => best(call, processor, rates, workspace),
    }
}

/// What chooses on one device: what is known of it, and what was tuned there.
#[derive(Debug)]
pub struct Chooser {
    processor: Processor,
    rates: Rates,
    tuning: Option<Tuning>,
    /// What was chosen before, for so much workspace: a choice takes longer than a small product.
    known: Mutex<HashMap<(Call, usize), Plan<'static>>>,
}

/// Calls whose plans are remembered.
const MOST_KNOWN: usize = 1024;

impl Chooser {
    /// For a device. What is of no use in the file of measurements is said in `notes`.
    ///
    /// # Errors
    ///
    /// The device fails.
    pub fn of(device: &Device, notes: &mut dyn Write) -> Result<Chooser, DeviceError> {
        match device {
            Device::Simulator(_) => Ok(Chooser::simulator()),
            Device::Cuda(device) => {
                device.enter()?;
                Chooser::of_gpu(device, notes)
            }
        }
    }

    /// [`Chooser::of`] a GPU, whose context is current.
    pub(crate) fn of_gpu(
        device: &CudaDevice,
        notes: &mut dyn Write,
    ) -> Result<Chooser, DeviceError> {
        let properties = device.properties();
        Ok(Chooser {
            processor: device.processor()?.clone(),
            rates: Rates::of_device(properties),
            tuning: Tuning::find(&Key::of(properties)).or_note(notes),
            known: Mutex::default(),
        })
    }

    /// The same, as if nothing had been tuned.
    pub fn untuned(self) -> Chooser {
        Chooser {
            tuning: None,
            known: Mutex::default(),
            ..self
        }
    }

    /// For the simulator.
    pub fn simulator() -> Chooser {
        Chooser {
            processor: Processor::simulator(),
            rates: Rates::H200,
            tuning: None,
            known: Mutex::default(),
        }
    }

    /// What is known of the device.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The plan of a call, with no more than `workspace` elements of workspace.
    ///
    /// # Errors
    ///
    /// As [`choose`].
    pub fn plan(&self, call: Call, workspace: usize) -> Result<Plan<'static>, usize> {
        // A table of plans is whole, whatever panicked beside it.
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known().get(&(call, workspace)) {
            return Ok(*plan);
        }
        let tuning = self.tuning.as_ref();
        let plan = choose(call, &self.processor, &self.rates, tuning, workspace)?;
        let mut known = known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert((call, workspace), plan);
        Ok(plan)
    }

    /// What multiplies matrices without gaps that are not transposed; none if no memory has so much.
    pub fn choose(&self, data_type: DataType, shape: Shape) -> Option<Choice> {
        match data_type {
            DataType::F32 => {
                let call = Call::compact(shape, Transpose::No, Transpose::No);
                let plan = self.plan(call, usize::MAX).ok()?;
                Some(Choice::of(&plan))
            }
            DataType::F64 | DataType::I32 => Some(Choice {
                variant: of_type(data_type)?,
                sharing: None,
            }),
        }
    }

    /// Whether a kernel is ever chosen here.
    pub fn may_choose(&self, variant: &Variant) -> bool {
        candidates::is_usable(variant, &self.processor)
    }

    /// What the model predicts, whatever was tuned.
    pub fn predicted(&self, plan: &Plan<'_>) -> Option<f64> {
        model::seconds(plan, &self.processor, &self.rates)
    }
}

/// The kernel of a type without kernels that stream: the highest of the ladder that multiplies it and keeps no compensation.
pub fn of_type(data_type: DataType) -> Option<&'static Variant> {
    let of_type = |kernel: &&'static Kernel| {
        let mut variants = kernel.variants.iter();
        variants.find(|variant| DataType::of(variant) == data_type)
    };
    let plain = KERNELS
        .iter()
        .copied()
        .filter(|kernel| !kernel.name.ends_with("-kahan"));
    plain.rev().find_map(|kernel| of_type(&kernel))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::blas::Role;
    use gpu_kernels::spec::Grid;

    use super::rates::Speed;

    /// By name.
    pub(crate) fn variant(name: &str) -> &'static Variant {
        let mut variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        variants.find(|variant| variant.name == name).unwrap()
    }

    /// An H200, with as many blocks on a multiprocessor as kernels' launch bounds say.
    pub(crate) fn h200() -> Processor {
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let resident = variants.map(|variant| {
            let blocks = match (variant.tile.m, variant.tile.n) {
                (64, 64) | (8, 128) => 6,
                (32, 32) => 8,
                (64, 128) => 3,
                (32, 128) => 4,
                (16, 128) => 5,
                _ => 2,
            };
            (variant.entry, blocks)
        });
        Processor::new(90, 132, resident.collect())
    }

    fn chosen(m: usize, n: usize, k: usize) -> Choice {
        let call = Call::compact(Shape { m, n, k }, Transpose::No, Transpose::No);
        let plan = choose(call, &h200(), &Rates::H200, None, usize::MAX).unwrap();
        Choice::of(&plan)
    }

    #[test]
    fn every_type_has_a_kernel_and_none_that_compensates() {
        for data_type in DataType::ALL {
            let variant = of_type(data_type).unwrap();
            assert_eq!(DataType::of(variant), data_type);
            assert!(!variant.name.contains("kahan"), "{}", variant.name);
        }
    }

    #[test]
    fn large_squares_go_to_large_tiles_of_copies() {
        for (size, name) in [
            (2048, "async-pipeline"),
            (4096, "wide-patch"),
            (8192, "wide-patch"),
            (16384, "wide-patch"),
            (4097, "wide-patch"),
        ] {
            assert_eq!(chosen(size, size, size).variant.name, name, "{size}");
        }
    }

    #[test]
    fn a_single_row_goes_to_a_flat_tile() {
        for (n, k) in [(2112, 7168), (24576, 1536), (7168, 16384)] {
            let choice = chosen(1, n, k);
            assert!(choice.variant.tile.m <= 16, "{}", choice.description());
            assert_eq!(choice.variant.tile.n, 128, "{}", choice.description());
        }
    }

    #[test]
    fn few_rows_go_to_the_kernel_for_them_and_more_never_do() {
        for (n, k) in [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384)] {
            for m in [1, 2, 3, 4] {
                let choice = chosen(m, n, k);
                let name = if m == 1 { "few-rows-1" } else { "few-rows-4" };
                assert_eq!(choice.variant.name, name, "{}", choice.description());
            }
        }
        for m in [5, 8, 9, 16, 64, 1000, 5000] {
            for (n, k) in [(1, 1), (16, 4096), (128, 128), (2112, 7168), (24576, 1536)] {
                let choice = chosen(m, n, k);
                let name = choice.variant.name;
                assert!(!name.starts_with("few-rows"), "{m} x {n} x {k}: {name}");
            }
        }
    }

    #[test]
    fn sums_of_half_a_million_products_are_shared_by_all_blocks() {
        let choice = chosen(8, 512, 500_000);
        assert!(choice.variant.tile.m <= 16, "{}", choice.description());
        // There are 4 tiles.
        let streams = choice.sharing.unwrap().streams;
        assert!(streams >= 132, "{}", choice.description());
    }

    #[test]
    fn thirty_two_rows_go_to_tiles_of_thirty_two() {
        assert_eq!(chosen(32, 4096, 4096).variant.tile.m, 32);
    }

    #[test]
    fn a_large_operand_is_not_copied_for_few_rows() {
        for (m, n, k) in [(16, 4096, 4096), (32, 2048, 2048), (1, 24576, 1536)] {
            let call = Call::compact(Shape { m, n, k }, Transpose::No, Transpose::No);
            let plan = choose(call, &h200(), &Rates::H200, None, usize::MAX).unwrap();
            let copied = plan.packed(Role::B);
            assert_eq!(copied, None, "{}", Choice::of(&plan).description());
        }
    }

    #[test]
    fn without_workspace_a_kernel_reads_in_place() {
        let call = Call::compact(Shape::cube(4096), Transpose::No, Transpose::No);
        let plan = choose(call, &h200(), &Rates::H200, None, 0).unwrap();
        assert_eq!(plan.workspace_elements(), 0);
        let name = plan.variant().name;
        assert!(
            Speed::of(plan.variant()).unwrap().flops_per_s > 40e12,
            "{name}"
        );
    }

    #[test]
    fn without_asynchronous_copies_no_kernel_that_streams_is_chosen() {
        let turing = Processor::new(75, 40, Vec::new());
        let call = Call::compact(Shape::cube(2048), Transpose::No, Transpose::No);
        let plan = choose(call, &turing, &Rates::H200, None, usize::MAX).unwrap();
        let variant = plan.variant();
        assert!(variant.grid != Grid::Streams, "{}", variant.name);
    }
}
