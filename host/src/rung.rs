//! A GPU kernel or a rung of the CPU's ladder, behind one interface.

use std::sync::Arc;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Call, Choice, Chooser, DataType, Device, Plan, Variant};

use crate::cpu::{self, Algorithm, Team};
use crate::data::{Number, Problem};
use crate::run::{Resident, Run, RunError, several};
use crate::verify::ErrorModel;

/// The name for whichever kernel suits the shape.
pub const AUTO: &str = "auto";

/// Something that multiplies, and is checked, timed and reported. `auto` has with it what it chose.
#[derive(Clone, Copy, Debug)]
pub enum Rung<Auto = Choice> {
    /// A GPU kernel, on whatever device was opened.
    Gpu(Choice),
    /// `auto`: the GPU kernel that suits the shape.
    Auto(Auto),
    /// A CPU rung, which runs natively whatever the device.
    Cpu(&'static Algorithm),
}

/// The meaning of a name on the command line, before shape and device are known: `auto` has not
/// chosen yet.
pub type Asked = Rung<()>;

impl<Auto> Rung<Auto> {
    /// Its name on the command line and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Rung::Gpu(choice) => choice.variant.name,
            Rung::Auto(_) => AUTO,
            Rung::Cpu(algorithm) => algorithm.name,
        }
    }

    /// Whether it multiplies matrices of a type.
    pub fn multiplies(&self, data_type: DataType) -> bool {
        match self {
            Rung::Gpu(choice) => choice.variant.types.data_type() == data_type,
            // There is a kernel for every type.
            Rung::Auto(_) => true,
            Rung::Cpu(algorithm) => {
                data_type == DataType::of(data_type.c) && algorithm.types().contains(&data_type.c)
            }
        }
    }

    /// Whether no GPU kernel is meant.
    pub fn is_native(&self) -> bool {
        matches!(self, Rung::Cpu(_))
    }

    /// The GPU kernel, if it is the same whatever the shape: not for `auto`.
    pub fn fixed_choice(&self) -> Option<Choice> {
        match self {
            Rung::Gpu(choice) => Some(*choice),
            Rung::Auto(_) | Rung::Cpu(_) => None,
        }
    }
}

impl Asked {
    /// The rung that multiplies matrices of this layout, one of the `fused` kernels if there are
    /// any; `None` if no kernel can.
    pub fn rung(
        self,
        chooser: &Chooser,
        data_type: impl Into<DataType>,
        call: Call,
        fused: Option<&'static [Variant]>,
    ) -> Option<Rung> {
        let data_type = data_type.into();
        Some(match (self, fused) {
            (Rung::Gpu(choice), None) => Rung::Gpu(choice),
            (Rung::Gpu(choice), Some(fused)) => {
                let is_it = |one: &&Variant| {
                    one.name == choice.variant.name && one.types.data_type() == data_type
                };
                let variant = fused.iter().find(is_it)?;
                Rung::Gpu(Choice { variant, ..choice })
            }
            (Rung::Auto(()), None) => Rung::Auto(chooser.choose_for(data_type, call)?),
            (Rung::Auto(()), Some(fused)) => {
                Rung::Auto(chooser.choose_fused(fused, data_type, call)?)
            }
            (Rung::Cpu(algorithm), None) => Rung::Cpu(algorithm),
            (Rung::Cpu(_), Some(_)) => return None,
        })
    }
}

impl Rung {
    /// The sizes at which its work is cut, where mistakes are likely.
    pub fn tile(self) -> Tile {
        match self {
            Rung::Gpu(choice) | Rung::Auto(choice) => choice.variant.tile,
            Rung::Cpu(algorithm) => algorithm.tile,
        }
    }

    /// How its errors are bounded.
    pub fn error_model(self, team: &Team) -> ErrorModel {
        match self {
            Rung::Gpu(choice) | Rung::Auto(choice) => ErrorModel::of(choice.variant.rounding),
            Rung::Cpu(algorithm) => (algorithm.error_model)(team.settings()),
        }
    }

    /// Its tile and its error model: a check of its results depends on both.
    pub fn rounding(self, team: &Team) -> (Tile, ErrorModel) {
        (self.tile(), self.error_model(team))
    }

    /// The GPU kernel, if it is one.
    pub fn choice(self) -> Option<Choice> {
        match self {
            Rung::Gpu(choice) | Rung::Auto(choice) => Some(choice),
            Rung::Cpu(_) => None,
        }
    }

    /// For `auto`, what it runs.
    pub fn chosen(self) -> Option<String> {
        match self {
            Rung::Auto(choice) => Some(choice.description()),
            Rung::Gpu(_) | Rung::Cpu(_) => None,
        }
    }

    /// Runs it on `problem`, once: see [`Rung::run_on`].
    pub fn run<T: Number>(
        self,
        device: &Device,
        team: &Team,
        problem: &Problem<T>,
        step: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, RunError> {
        self.run_on(&mut Resident::new(device, problem), &mut None, team, step)
    }

    /// Runs it, a GPU kernel on the device and a CPU rung on `team`, and returns C. A kernel uses
    /// `plan` if that is the plan of this product; otherwise it makes one and stores it there.
    /// `step` is called after each CTA on the simulator, from any thread, and once after a run on
    /// anything else.
    ///
    /// # Errors
    ///
    /// It does not multiply this type, the device fails, or it writes where it must not.
    pub fn run_on<T: Number>(
        self,
        resident: &mut Resident<'_, T>,
        plan: &mut Option<Arc<Plan>>,
        team: &Team,
        step: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, RunError> {
        let (device, problem) = (resident.device, resident.problem);
        let run = match (self, device.several()) {
            (Rung::Cpu(algorithm), _) => cpu::run(algorithm, problem, team),
            (_, Some(devices)) => several::run(devices, self.fixed_choice(), problem, plan),
            (Rung::Gpu(choice) | Rung::Auto(choice), None) => {
                return resident.run(choice, plan, step);
            }
        };
        step();
        run
    }
}

impl<Auto: PartialEq> PartialEq for Rung<Auto> {
    /// Whether both are the same entry of the same table.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Rung::Gpu(one), Rung::Gpu(other)) => one == other,
            (Rung::Auto(one), Rung::Auto(other)) => one == other,
            (Rung::Cpu(one), Rung::Cpu(other)) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }
}
