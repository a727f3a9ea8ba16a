//! What the command line runs by name: a GPU kernel or a rung of the CPU's ladder, behind one face.

use gpu_kernels::spec::{Tile, Variant};

use crate::blas::Sharing;
use crate::choose::Choice;
use crate::cpu::{self, Algorithm, Team};
use crate::device::{Device, DeviceError, Run};
use crate::element::{DataType, Element};
use crate::problem::Problem;
use crate::select::AUTO;
use crate::verify::Rounding;

/// Something that multiplies, and is proven, timed and reported.
#[derive(Clone, Copy, Debug)]
pub enum Rung {
    /// A GPU kernel, on whatever device was opened.
    Gpu(&'static Variant),
    /// `auto`: the GPU kernel that was chosen for the shape.
    Auto(Choice),
    /// A CPU rung, which runs natively whatever the device.
    Cpu(&'static Algorithm),
}

impl Rung {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rung::Gpu(variant) => variant.name,
            Rung::Auto(_) => AUTO,
            Rung::Cpu(algorithm) => algorithm.name,
        }
    }

    /// The sizes at which its work is cut, where mistakes would be.
    pub fn tile(self) -> Tile {
        match self {
            Rung::Gpu(variant) => variant.tile,
            Rung::Auto(choice) => choice.variant.tile,
            Rung::Cpu(algorithm) => algorithm.tile,
        }
    }

    /// Whether it multiplies elements of a type.
    pub fn multiplies(self, data_type: DataType) -> bool {
        match self {
            Rung::Gpu(variant) => DataType::of(variant) == data_type,
            Rung::Auto(choice) => DataType::of(choice.variant) == data_type,
            Rung::Cpu(algorithm) => algorithm.multiplies(data_type),
        }
    }

    /// How its errors are bounded.
    pub fn rounding(self, team: &Team) -> Rounding {
        match self {
            Rung::Gpu(_) | Rung::Auto(_) => Rounding::Elementwise,
            Rung::Cpu(algorithm) => (algorithm.rounding)(team.settings()),
        }
    }

    /// The GPU kernel, if it is one.
    pub fn variant(self) -> Option<&'static Variant> {
        match self {
            Rung::Gpu(variant) => Some(variant),
            Rung::Auto(choice) => Some(choice.variant),
            Rung::Cpu(_) => None,
        }
    }

    /// How its blocks share their steps, where that was chosen.
    pub fn sharing(self) -> Option<Sharing> {
        match self {
            Rung::Auto(choice) => choice.sharing,
            Rung::Gpu(_) | Rung::Cpu(_) => None,
        }
    }

    /// For `auto`, what it runs.
    pub fn chosen(self) -> Option<String> {
        match self {
            Rung::Auto(choice) => Some(choice.description()),
            Rung::Gpu(_) | Rung::Cpu(_) => None,
        }
    }

    /// Runs it on `problem`, a GPU kernel on `device` and a CPU rung by `team`, and returns C. `step` is called after each block
    /// on the simulator, from any thread, and after a run of a CPU rung.
    ///
    /// # Errors
    ///
    /// It does not multiply this type, the device fails, or it writes where it must not.
    pub fn run<T: Element>(
        self,
        device: &Device,
        team: &Team,
        problem: &Problem<T>,
        step: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        match self {
            Rung::Gpu(variant) => device.run_observed(variant, problem, step),
            Rung::Auto(choice) => device.run_shared(choice.variant, choice.sharing, problem, step),
            Rung::Cpu(algorithm) => {
                let run = cpu::run(algorithm, problem, team);
                step();
                run
            }
        }
    }
}

impl PartialEq for Rung {
    /// Whether both are the same entry of the same table.
    fn eq(&self, other: &Rung) -> bool {
        match (self, other) {
            (Rung::Gpu(one), Rung::Gpu(other)) => std::ptr::eq(*one, *other),
            (Rung::Cpu(one), Rung::Cpu(other)) => std::ptr::eq(*one, *other),
            (Rung::Auto(one), Rung::Auto(other)) => one == other,
            _ => false,
        }
    }
}
