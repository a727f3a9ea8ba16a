//! The CPU's own ladder: the same product without a GPU, from three plain loops to threads, for reference and contrast.
//!
//! A rung is an ordinary function that adds `A * B` to a C of zeros; `alpha`, `beta` and the rest of C are [`run`]'s, so that
//! each file holds its one idea. The rungs run natively, whatever `--device` says, and go through the same gates, timing and
//! report as the GPU kernels. A new one is a file here and a line in `rungs!` below.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu
//! ```

pub mod schedule;
pub mod team;
pub mod view;

use std::fs;
use std::time::Instant;

use gpu_kernels::spec::Tile;

pub use schedule::Schedule;
pub use team::{Settings, Team, TeamError};
use view::{View, ViewMut};

use crate::device::guard::{self, GUARD};
use crate::device::{DeviceError, Run, Trespass};
use crate::element::{DataType, Element};
use crate::problem::Problem;
use crate::verify::Rounding;

/// Adds `A * B` to C, which holds zeros. The three fit each other, and none is empty.
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
    /// The sizes at which its loops change over: what tests put shapes around, and what samples look at.
    pub tile: Tile,
    /// Who decides how many threads it runs on.
    pub threads: Threads,
    /// How its errors are bounded.
    pub rounding: fn(&Settings) -> Rounding,
    /// The function, by element type.
    pub functions: Functions,
}

/// Who decides how many threads a rung runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// It runs on one.
    One,
    /// `--threads` does.
    Team,
    /// `--threads` does, and `--schedule` says which thread takes which piece of C.
    Scheduled,
    /// A library that keeps it to itself.
    Library,
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
        $crate::cpu::Functions {
            f32: Some($function::<f32>),
            f64: Some($function::<f64>),
            i32: Some($function::<i32>),
        }
    };
}

/// Declares the modules of the ladder, in teaching order, and their table.
macro_rules! rungs {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Every rung, in teaching order.
        pub static RUNGS: &[&Algorithm] = &[$(&$module::RUNG),*];
    };
}

rungs! {
    ijk,
    ikj,
    unrolled,
    vectorized,
    divide,
    strassen,
    rows,
    blocks,
    partial,
    library,
}

impl Algorithm {
    /// Whether it multiplies elements of a type.
    pub fn multiplies(&self, data_type: DataType) -> bool {
        let Functions { f32, f64, i32 } = self.functions;
        match data_type {
            DataType::F32 => f32.is_some(),
            DataType::F64 => f64.is_some(),
            DataType::I32 => i32.is_some(),
        }
    }

    /// The element types that it multiplies.
    pub fn types(&self) -> Vec<DataType> {
        let mut types = DataType::ALL.to_vec();
        types.retain(|&data_type| self.multiplies(data_type));
        types
    }
}

/// Runs a rung on `problem` and returns C, which lies between guard bands. The time is that of the multiplication, with
/// `alpha` and `beta`.
///
/// # Errors
///
/// The rung does not multiply this type, or writes outside of C.
pub fn run<T: Element>(
    algorithm: &Algorithm,
    problem: &Problem<T>,
    team: &Team,
) -> Result<Run<T>, DeviceError> {
    let Some(multiply) = T::multiply(&algorithm.functions) else {
        return Err(DeviceError::WrongType {
            kernel: algorithm.name.to_string(),
            multiplies: algorithm.types(),
            asked: T::TYPE,
        });
    };
    let trespass = |what: Trespass| DeviceError::Trespass {
        kernel: algorithm.name.to_string(),
        what,
    };
    let mut guarded = guard::surround(problem.c.buffer());
    let buffer = GUARD..GUARD + problem.c.buffer().len();
    let (shape, start) = (problem.shape(), GUARD + problem.c.placement().offset);
    let elements = &mut guarded[start..start + problem.c.extent()];
    let c = ViewMut::new(elements, shape.m, shape.n, problem.c.leading());
    let clock = Instant::now();
    gemm(multiply, problem, c, team);
    let time = clock.elapsed();
    guard::check_bands('C', &guarded[..GUARD], &guarded[buffer.end..]).map_err(trespass)?;
    guard::check_padding(&problem.c, &guarded[buffer.clone()]).map_err(trespass)?;
    let c = problem.c.with_buffer(guarded[buffer].to_vec());
    Ok(Run { c, time })
}

/// `C = alpha * A * B + beta * C`. Where C is nothing but the product, the product is made in place.
fn gemm<T: Element>(
    multiply: Multiply<T>,
    problem: &Problem<T>,
    mut c: ViewMut<'_, T>,
    team: &Team,
) {
    let shape = problem.shape();
    let (alpha, beta, zero) = (problem.alpha, problem.beta, T::default());
    let a = View::new(problem.a.elements(), shape.m, shape.k, problem.a.leading());
    let b = View::new(problem.b.elements(), shape.k, shape.n, problem.b.leading());
    let nothing_to_add = shape.is_empty() || shape.k == 0 || alpha == zero;
    if alpha == T::from_integer(1) && beta == zero && !nothing_to_add {
        for row in 0..shape.m {
            c.row_mut(row).fill(zero);
        }
        return multiply(a, b, c, team);
    }
    let mut product = vec![zero; shape.m * shape.n];
    if !nothing_to_add {
        multiply(
            a,
            b,
            ViewMut::new(&mut product, shape.m, shape.n, shape.n),
            team,
        );
    }
    for (row, sums) in product.chunks(shape.n.max(1)).enumerate() {
        for (c, sum) in c.row_mut(row).iter_mut().zip(sums) {
            // Zero where alpha is, and never NaN: the product is zeros then.
            let added = alpha.times_plus(*sum, zero);
            *c = if beta == zero {
                added
            } else {
                beta.times_plus(*c, added)
            };
        }
    }
}

/// This machine's CPU, as it calls itself.
pub fn description(team: &Team) -> String {
    let name = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| model_name(&text));
    let name = name.unwrap_or_else(|| "CPU".to_string());
    match team.threads() {
        1 => format!("{name}, 1 thread"),
        threads => format!("{name}, up to {threads} threads"),
    }
}

/// From the text of `/proc/cpuinfo`.
fn model_name(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Data, Layout, Shape};

    #[test]
    fn every_rung_has_a_name_of_its_own_and_a_source_that_exists() {
        let mut names: Vec<&str> = RUNGS.iter().map(|rung| rung.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), RUNGS.len());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for rung in RUNGS {
            assert!(rung.name.starts_with("cpu-"), "{}", rung.name);
            assert!(root.join(rung.source).is_file(), "{}", rung.source);
        }
    }

    /// Runs a planted rung on 3 x 4 x 5 with a row of padding between rows.
    fn planted(multiply: Multiply<f32>) -> Result<Run<f32>, DeviceError> {
        let functions = Functions {
            f32: Some(multiply),
            f64: None,
            i32: None,
        };
        let algorithm = Algorithm {
            name: "planted",
            functions,
            ..ijk::RUNG
        };
        let shape = Shape { m: 3, n: 4, k: 5 };
        let layout = Layout::padded(shape, [1; 3], [1; 3]);
        let problem = Problem::random(shape, layout, Data::Uniform, 1, 1.0, 0.0).unwrap();
        run(
            &algorithm,
            &problem,
            &Team::new(Settings::default()).unwrap(),
        )
    }

    #[test]
    fn writes_between_the_rows_of_c_are_caught() {
        // SAFETY: the element after C's first row of four lies before its second.
        let error = planted(|_, _, mut c, _| unsafe { *c.as_mut_ptr().add(4) = 0.0 }).unwrap_err();
        assert!(matches!(error, DeviceError::Trespass { .. }), "{error}");
        planted(|_, _, mut c, _| c.row_mut(2).fill(1.0)).unwrap();
    }

    #[test]
    fn a_type_that_a_rung_does_not_multiply_is_refused_in_a_sentence() {
        let shape = Shape::cube(1);
        let problem =
            Problem::<i32>::random(shape, Layout::compact(shape), Data::Uniform, 1, 1, 1).unwrap();
        let team = Team::new(Settings::default()).unwrap();
        let error = run(&library::RUNG, &problem, &team).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kernel `cpu-matrixmultiply` multiplies f32, f64, not i32."
        );
    }

    #[test]
    fn the_model_is_read_from_the_first_processor() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nprocessor\t: 1\n";
        assert_eq!(model_name(text).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(model_name("Hardware : none"), None);
    }
}
