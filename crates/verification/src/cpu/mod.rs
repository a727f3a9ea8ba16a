//! The CPU's own ladder: the same product without a GPU, from three plain loops to threads, for
//! reference and contrast.
//!
//! A rung is an ordinary function that adds `A * B` to C; [`run`] handles `alpha`, `beta` and the
//! old C, so that each file holds one idea. The rungs run natively, whatever `--device` says, and
//! go through the same gates, timing and report as the GPU kernels. A new one is a file here and a
//! line in `rungs!` below.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu
//! ```

mod algorithm;
mod schedule;
mod share_out;
mod team;
pub mod view;

use std::fs;
use std::time::{Duration, Instant};

pub use algorithm::{Algorithm, Functions, Multiply, Threads};
pub use schedule::Schedule;
pub use team::{CUTOFF, Settings, Team, TeamError};
use view::{View, ViewMut};

use gpu_gemm::DataType;

use crate::data::{Number, Problem};
use crate::run::guard::{self, GUARD};
use crate::run::{Run, RunError};

/// The imports that every rung needs.
mod rung {
    pub(super) use super::algorithm::{Algorithm, Functions, Threads, every_type, tile};
    pub(super) use super::team::Team;
    pub(super) use super::view::{View, ViewMut};
    pub(super) use crate::data::Number;
    pub(super) use crate::verify::ErrorModel;
}

/// Declares the modules of the ladder, in teaching order, and their table.
macro_rules! rungs {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Every rung, in teaching order.
        pub static RUNGS: &[&Algorithm] = &[$(&$module::RUNG),*];

        /// The text of each rung's file, in the same order.
        static TEXTS: &[&str] = &[$(include_str!(concat!(stringify!($module), ".rs"))),*];
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

/// The comment at the head of a rung's file, which explains it, without the commands that run it;
/// empty for a rung that is not in the table.
pub fn about(algorithm: &Algorithm) -> String {
    let rungs = RUNGS.iter().zip(TEXTS);
    let text = rungs
        .filter(|(rung, _)| rung.name == algorithm.name)
        .map(|(_, text)| *text)
        .next()
        .unwrap_or_default();
    let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = comment.map(str::trim).take_while(|line| *line != "```sh");
    let text: Vec<&str> = lines.collect();
    // Links to items work only in the documentation of the code.
    let text = text.join("\n").replace("[`", "`").replace("`]", "`");
    text.trim_end().to_string()
}

/// Runs a rung on `problem`, with C between guard bands, and returns C. The time is that of the
/// multiplication, with `alpha` and `beta`.
///
/// # Errors
///
/// The rung does not multiply this type, or writes outside of C.
pub fn run<T: Number>(
    algorithm: &Algorithm,
    problem: &Problem<T>,
    team: &Team,
) -> Result<Run<T>, RunError> {
    let Some(multiply) = algorithm.functions.of::<T>() else {
        return Err(RunError::WrongType {
            kernel: algorithm.name.to_string(),
            multiplies: algorithm.types().into_iter().map(DataType::of).collect(),
            asked: problem.data_type(),
        });
    };
    if problem.batch > 1 {
        return run_each(algorithm, problem, team);
    }
    let trespass = RunError::trespass_of(algorithm.name);
    let mut guarded = guard::surround(problem.c.buffer());
    let buffer = GUARD..GUARD + problem.c.buffer().len();
    let (shape, start) = (problem.shape(), GUARD + problem.c.placement().offset);
    let elements = &mut guarded[start..start + problem.c.extent()];
    let c = ViewMut::new(elements, shape.m, shape.n, problem.c.leading());
    let clock = Instant::now();
    gemm(multiply, problem, c, team);
    let time = clock.elapsed();
    guard::check_bands('C', &guarded[..GUARD], &guarded[buffer.end..]).map_err(&trespass)?;
    guard::check_padding(&problem.c, &guarded[buffer.clone()]).map_err(trespass)?;
    let c = problem.c.with_buffer(guarded[buffer].to_vec());
    Ok(Run { c, time })
}

/// Runs a rung on each product of a batch, one after the other. The time is that of all
/// multiplications.
fn run_each<T: Number>(
    algorithm: &Algorithm,
    problem: &Problem<T>,
    team: &Team,
) -> Result<Run<T>, RunError> {
    let (mut c, mut time) = (problem.c.clone(), Duration::ZERO);
    for index in 0..problem.batch {
        let run = run(algorithm, &problem.product(index)?, team)?;
        c.set_rows(index * problem.shape().m, &run.c);
        time += run.time;
    }
    Ok(Run { c, time })
}

/// `C = alpha * A * B + beta * C`. If alpha is 1 and beta 0, the product is computed in C itself.
fn gemm<T: Number>(
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
        let product = ViewMut::new(&mut product, shape.m, shape.n, shape.n);
        multiply(a, b, product, team);
    }
    let product = View::new(&product, shape.m, shape.n, shape.n);
    scale_and_add(alpha, product, beta, c);
}

/// `C = alpha * product + beta * C`. Where beta is zero, C is not read.
///
/// # Panics
///
/// If the product has fewer rows than C.
pub fn scale_and_add<T: Number>(alpha: T, product: View<'_, T>, beta: T, mut c: ViewMut<'_, T>) {
    let zero = T::default();
    for row in 0..c.rows() {
        for (c, sum) in c.row_mut(row).iter_mut().zip(product.row(row)) {
            // Zero where alpha is zero, and never NaN: the product is then all zeros.
            let added = alpha.times_plus(*sum, zero);
            *c = match beta == zero {
                true => added,
                false => beta.times_plus(*c, added),
            };
        }
    }
}

/// The name of this machine's CPU.
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
    use crate::data::{Data, Storage};
    use gpu_gemm::Shape;

    fn team() -> Team {
        Team::new(Settings::default()).unwrap()
    }

    #[test]
    fn every_rung_adds_to_what_c_holds() {
        fn check<T: Number>() {
            let (a, b) = ([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]); // 2 x 3 and 3 x 2
            let [a, b] = [a, b].map(|matrix| matrix.map(T::from_integer));
            let rungs = RUNGS
                .iter()
                .map(|rung| (rung.name, rung.functions.of::<T>()));
            for (name, multiply) in rungs.filter_map(|(name, function)| Some((name, function?))) {
                let mut c = [100, 200, 300, 400].map(T::from_integer);
                let (a, b) = (View::new(&a, 2, 3, 3), View::new(&b, 3, 2, 2));
                multiply(a, b, ViewMut::new(&mut c, 2, 2, 2), &team());
                assert_eq!(c, [158, 264, 439, 554].map(T::from_integer), "{name}");
            }
        }
        check::<i32>();
        check::<f32>();
        check::<f64>();
    }

    /// A planted rung, on 3 x 4 x 5 with an element of padding between rows.
    #[test]
    fn writes_between_the_rows_of_c_are_caught() {
        let planted = |multiply: Multiply<f32>| {
            let functions = Functions {
                f32: Some(multiply),
                ..ijk::RUNG.functions
            };
            let (shape, name) = (Shape::new(3, 4, 5), "planted");
            let algorithm = Algorithm {
                name,
                functions,
                ..ijk::RUNG
            };
            let storage = Storage::padded([1; 3], [1; 3]);
            let problem = Problem::<f32>::random(shape, storage, Data::Uniform, 1, 1.0, 0.0);
            let problem = problem.unwrap();
            run(&algorithm, &problem, &team())
        };
        // SAFETY: the element after C's first row of four is the padding before its second.
        let error = planted(|_, _, mut c, _| unsafe { *c.as_mut_ptr().add(4) = 0.0 }).unwrap_err();
        assert!(matches!(error, RunError::Trespass { .. }), "{error}");
        planted(|_, _, mut c, _| c.row_mut(2).fill(1.0)).unwrap();
    }
}
