//! The description of a CPU rung.

use std::any::Any;

use gpu_gemm::ElementType;
use gpu_gemm::gpu_kernels::spec::Tile;

use super::team::{Settings, Team};
use super::view::{View, ViewMut};
use crate::data::Number;
use crate::verify::ErrorModel;

/// Adds `A * B` to C. Their dimensions agree, and none is empty.
pub type Multiply<T> = fn(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, team: &Team);

/// A rung of the CPU's ladder.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name on the command line, such as `cpu-ikj`.
    pub name: &'static str,
    /// The idea, in one line.
    pub idea: &'static str,
    /// Its source file, relative to the root of the workspace.
    pub source: &'static str,
    /// The sizes at which its loops start a new tile: tests choose shapes around them, and checks
    /// take samples there.
    pub tile: Tile,
    /// What decides how many threads it runs on.
    pub threads: Threads,
    /// How its errors are bounded.
    pub error_model: fn(&Settings) -> ErrorModel,
    /// Its functions, by element type.
    pub functions: Functions,
}

/// The sizes at which the loops of a rung start a new tile.
pub(super) const fn tile(m: usize, n: usize, k: usize) -> Tile {
    Tile {
        m: m as u32,
        n: n as u32,
        k: k as u32,
    }
}

/// What decides how many threads a rung runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// It runs on one thread.
    One,
    /// `--threads` decides.
    Team,
    /// `--threads` decides, and `--schedule` says which thread takes which piece of C.
    Scheduled,
    /// A library decides, and does not say.
    Library,
}

impl Threads {
    /// `1`, or the options that set the number.
    pub fn description(self) -> &'static str {
        match self {
            Threads::One => "1",
            Threads::Team => "--threads",
            Threads::Scheduled => "--threads, --schedule",
            Threads::Library => "its own",
        }
    }
}

/// A rung's function for each element type that it multiplies.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub f32: Option<Multiply<f32>>,
    pub f64: Option<Multiply<f64>>,
    pub i32: Option<Multiply<i32>>,
}

/// [`Functions`] of every element type, from one generic function.
macro_rules! every_type {
    ($function:ident) => {
        $crate::cpu::algorithm::Functions {
            f32: Some($function::<f32>),
            f64: Some($function::<f64>),
            i32: Some($function::<i32>),
        }
    };
}
pub(super) use every_type;

impl Functions {
    /// The function of `T`, if there is one.
    pub fn of<T: Number>(&self) -> Option<Multiply<T>> {
        let functions: [&dyn Any; 3] = [&self.f32, &self.f64, &self.i32];
        let mut of_type = functions.iter().filter_map(|one| one.downcast_ref());
        of_type.next().copied().flatten()
    }
}

impl Algorithm {
    /// The element types that it multiplies.
    pub fn types(&self) -> Vec<ElementType> {
        let Functions { f32, f64, i32 } = self.functions;
        let types = [
            f32.map(|_| ElementType::F32),
            f64.map(|_| ElementType::F64),
            i32.map(|_| ElementType::I32),
        ];
        types.into_iter().flatten().collect()
    }
}
