//! A product on several devices. Its matrices start spread over the devices, on the first one, or
//! in host memory; C is gathered.

use std::sync::Arc;

use clap::ValueEnum;
use gpu_gemm::device::several::{Done, Start};
use gpu_gemm::{Bf16, Choice, Devices, E4m3, ElementType, F16, Plan};

use super::{Run, RunError};
use crate::data::{Matrix, Number, Problem};

/// Where the matrices of a product are before it, and C also after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// Spread over the devices, as the product is divided
    #[default]
    Spread,
    /// B on the first device, A and C spread
    FirstB,
    /// All on the first device
    First,
    /// In host memory that is not page-locked
    Host,
}

/// One product, which may be run again and again.
pub type Multiply<'a> = &'a mut dyn FnMut() -> Result<Done, RunError>;

/// The result of a product on several devices.
pub struct Multiplied<T, R> {
    /// The value that its runner returned.
    pub outcome: R,
    /// The grid: devices along the rows of C, and along its columns.
    pub grid: (usize, usize),
    /// C after the last run.
    pub c: Matrix<T>,
    /// The plan of the first product on the first device.
    pub plan: Option<Arc<Plan>>,
}

/// Runs the chosen kernel, or for `None` the one that suits each part, once, and stores the plan
/// of the first product on the first device.
pub fn run<T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
    plan: &mut Option<Arc<Plan>>,
) -> Result<Run<T>, RunError> {
    let on = (devices, devices.count());
    let once = |multiply: Multiply<'_>| Ok(multiply()?.time);
    let multiplied = multiply(on, choice, problem, Origin::Spread, once)?;
    *plan = multiplied.plan;
    Ok(Run {
        c: multiplied.c,
        time: multiplied.outcome,
    })
}

/// Prepares a problem's product on the first `count` devices, and hands it to `run`.
///
/// # Errors
///
/// `run` fails; or a device fails or has too little memory, and is named.
pub fn multiply<T: Number, R>(
    on: (&Devices, usize),
    choice: Option<Choice>,
    problem: &Problem<T>,
    origin: Origin,
    run: impl FnOnce(Multiply<'_>) -> Result<R, RunError>,
) -> Result<Multiplied<T, R>, RunError> {
    match problem.inputs {
        ElementType::Bf16 => multiply_as::<Bf16, T, R>(on, choice, problem, origin, run),
        ElementType::F16 => multiply_as::<F16, T, R>(on, choice, problem, origin, run),
        ElementType::I8 => multiply_as::<i8, T, R>(on, choice, problem, origin, run),
        ElementType::E4m3 => multiply_as::<E4m3, T, R>(on, choice, problem, origin, run),
        _ => multiply_as::<T, T, R>(on, choice, problem, origin, run),
    }
}

fn multiply_as<Input: Number, T: Number, R>(
    (devices, count): (&Devices, usize),
    choice: Option<Choice>,
    problem: &Problem<T>,
    origin: Origin,
    run: impl FnOnce(Multiply<'_>) -> Result<R, RunError>,
) -> Result<Multiplied<T, R>, RunError> {
    let starts = match origin {
        Origin::Spread | Origin::Host => [Start::Spread; 3],
        Origin::FirstB => [Start::Spread, Start::First, Start::Spread],
        Origin::First => [Start::First; 3],
    };
    let factors = problem.factors_as::<Input>()?;
    let [a, b] = factors
        .each_ref()
        .map(|matrix| (matrix.elements(), matrix.leading()));
    let shape = (problem.shape(), problem.transposes);
    let scalars = (problem.alpha.scalar(), problem.beta.scalar());
    // If the product reads C, each run begins with the same C.
    let reads_c = problem.beta != T::default();
    let (mut c, leading) = (problem.c.clone(), problem.c.leading());
    let (outcome, grid, plan) = if origin == Origin::Host {
        let mut product = devices.streamed::<Input, T>(shape, count, scalars, choice)?;
        let outcome = run(&mut || {
            if reads_c {
                c.elements_mut().copy_from_slice(problem.c.elements());
            }
            Ok(product.multiply(a, b, (c.elements_mut(), leading))?)
        })?;
        let product = product.product();
        (
            outcome,
            product.split().grid(),
            product.first_plan().cloned(),
        )
    } else {
        let mut product = devices.product::<Input, T>(shape, count, starts, scalars, choice)?;
        product.write(a, b)?;
        let outcome = run(&mut || {
            if reads_c {
                product.write_c(problem.c.elements(), leading)?;
            }
            Ok(product.multiply()?)
        })?;
        product.read_c(c.elements_mut(), leading)?;
        (
            outcome,
            product.split().grid(),
            product.first_plan().cloned(),
        )
    };
    Ok(Multiplied {
        outcome,
        grid,
        c,
        plan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use crate::planted;
    use gpu_gemm::gpu_kernels::gemm::Gemm;
    use gpu_gemm::gpu_kernels::naive;
    use gpu_gemm::gpu_kernels::spec::EntryFn;
    use gpu_gemm::{Device, Shape, Transpose};

    fn simulators(count: usize) -> Devices {
        let members = (0..count).map(|_| Device::simulator());
        Devices::of(members.collect()).unwrap()
    }

    fn problem<T: Number>(shape: Shape, data: Data, scalars: [i32; 2]) -> Problem<T> {
        let storage = Storage::padded([3, 1, 2], [2, 5, 1]);
        let [alpha, beta] = scalars.map(T::from_integer);
        Problem::random(shape, storage, data, 7, alpha, beta).unwrap()
    }

    /// The C of a product, and the bytes that its devices received.
    fn multiplied<T: Number>(
        count: usize,
        choice: Choice,
        problem: &Problem<T>,
        origin: Origin,
    ) -> (Matrix<T>, Vec<usize>) {
        let once = |multiply: Multiply<'_>| Ok(multiply()?.received);
        let on = (&simulators(count), count);
        let multiplied = multiply(on, Some(choice), problem, origin, once).unwrap();
        (multiplied.c, multiplied.outcome)
    }

    /// Sizes that no number of devices divides, fewer rows than devices, and none.
    #[test]
    fn each_element_has_the_bits_that_one_device_gives_it_wherever_matrices_start() {
        let (no, one) = (Transpose::No, Device::simulator());
        let naive = Choice::even(&naive::KERNEL.variants[0]);
        for (m, n, k) in [
            (33, 70, 19),
            (3, 130, 8),
            (130, 2, 5),
            (1, 1, 1),
            (9, 10, 0),
            (0, 5, 5),
            (5, 0, 5),
        ] {
            for (scalars, transposes) in [
                ([1, 0], [no, no]),
                ([2, -1], [no, Transpose::Yes]),
                ([-1, 2], [Transpose::Yes, no]),
                ([0, 2], [no, no]),
            ] {
                let problem = Problem {
                    transposes,
                    ..problem::<f32>(Shape::new(m, n, k), Data::Normal, scalars)
                };
                let alone = crate::run::run(&one, naive, &problem, &|| ()).unwrap();
                for (count, origin) in [1, 2, 3, 4, 6]
                    .map(|count| {
                        Origin::value_variants()
                            .iter()
                            .map(move |one| (count, *one))
                    })
                    .into_iter()
                    .flatten()
                {
                    let (c, _) = multiplied(count, naive, &problem, origin);
                    let case = format!("{m} {n} {k}, {count} devices, {origin:?}, {scalars:?}");
                    assert_eq!(c.hash_of_bits(), alone.c.hash_of_bits(), "{case}");
                    assert_eq!(
                        c.first_padding_difference(problem.c.buffer()),
                        None,
                        "{case}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_received_are_those_of_the_split_and_of_what_starts_elsewhere() {
        let shape = Shape::new(96, 64, 16);
        let problem = problem::<f64>(shape, Data::Uniform, [1, 1]);
        let mut variants = gpu_gemm::gpu_kernels::tiled::KERNEL.variants.iter();
        let of_f64 = variants.find(|variant| variant.types.c == ElementType::F64);
        let choice = Choice::even(of_f64.unwrap());
        let received = |count, origin| multiplied(count, choice, &problem, origin).1;
        for count in [1, 2, 3, 4, 6] {
            let split = gpu_gemm::Split::of(shape, count);
            let formula: Vec<usize> = (0..count).map(|of| split.received(of) * 8).collect();
            assert_eq!(received(count, Origin::Spread), formula);
        }
        // From A, B and C on device 0, device 1 gets 48 rows of A, all of B, and its half of C,
        // which is sent back.
        let (a, b, c) = (48 * 16 * 8, 16 * 64 * 8, 48 * 64 * 8);
        assert_eq!(received(2, Origin::First), [c, a + b + c]);
        assert_eq!(received(2, Origin::FirstB), [0, b]);
    }

    #[test]
    fn the_device_that_fails_is_named() {
        // The second device has 3 of the 5 rows.
        const FAILS_ON_THREE_ROWS: EntryFn = |block| {
            // SAFETY: the block is that of a launch of this kernel.
            let block = unsafe { planted::OfLaunch::new(block) };
            let Gemm { m, a, .. } = planted::gemm(block);
            assert!(m != 3, "three rows, {} elements", a.len());
        };
        let planted = planted::kernel(FAILS_ON_THREE_ROWS);
        let problem = problem::<f32>(Shape::new(5, 4, 4), Data::Uniform, [1, 0]);
        let error = run(&simulators(2), Some(planted), &problem, &mut None).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("Device 1 (sim) of several, counted from 0: Kernel `planted`")
                && message.contains("three rows"),
            "{message}"
        );
    }
}
