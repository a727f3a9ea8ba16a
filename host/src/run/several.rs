//! A kernel on several devices, once: the matrices are spread over them, and C is gathered.

use gpu_gemm::device::several::{HostProblem, Product, Start};
use gpu_gemm::{Choice, Devices};

use super::{Run, RunError};
use crate::data::{Matrix, Number, Problem, Stored, by_inputs};

/// Runs the chosen kernel, or for `None` the one that suits each part, on copies of the problem's
/// matrices.
pub fn run<T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    by_inputs!(problem, run_as::<_, T>(devices, choice, problem))
}

fn run_as<Input: Number, T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let spread = [Start::Spread; 3];
    let mut product = product(devices, devices.count(), choice, problem, &stored, spread)?;
    let time = product.multiply()?.time;
    let c = gathered(&product, problem)?;
    Ok(Run { c, time })
}

/// A problem's product on the first `count` devices, ready to run.
pub fn product<'d, Input: Number, T: Number>(
    devices: &'d Devices,
    count: usize,
    choice: Option<Choice>,
    problem: &Problem<T>,
    stored: &Stored<'_, T, Input>,
    starts: [Start; 3],
) -> Result<Product<'d, Input, T>, RunError> {
    let whole = as_stored(problem, stored);
    let scalars = (problem.alpha.scalar(), problem.beta.scalar());
    let planner = devices.planner(choice, problem.data_type());
    Ok(devices.product(whole, count, starts, scalars, &planner)?)
}

/// A problem as the library takes it.
fn as_stored<'a, Input: Number, T: Number>(
    problem: &Problem<T>,
    stored: &'a Stored<'_, T, Input>,
) -> HostProblem<'a, Input, T> {
    let [a, b] = [&*stored.a, &*stored.b].map(|matrix| (matrix.elements(), matrix.leading()));
    let [transpose_a, transpose_b] = problem.transposes;
    HostProblem {
        shape: problem.shape(),
        a: (a.0, a.1, transpose_a),
        b: (b.0, b.1, transpose_b),
        c: (stored.c.elements(), stored.c.leading()),
    }
}

/// The C of a product, in the place of the problem's.
pub fn gathered<Input: Number, T: Number>(
    product: &Product<'_, Input, T>,
    problem: &Problem<T>,
) -> Result<Matrix<T>, RunError> {
    let mut c = problem.c.clone();
    let leading = c.leading();
    product.read_c(c.elements_mut(), leading)?;
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout};
    use crate::planted;
    use gpu_gemm::gpu_kernels::gemm::Gemm;
    use gpu_gemm::gpu_kernels::naive;
    use gpu_gemm::gpu_kernels::spec::EntryFn;
    use gpu_gemm::{Device, ElementType, Shape, Simulator, Transpose};

    fn simulators(count: usize) -> Devices {
        let members = (0..count).map(|_| Device::Simulator(Simulator::default()));
        Devices::of(members.collect()).unwrap()
    }

    fn problem<T: Number>(shape: Shape, data: Data, scalars: [i32; 2]) -> Problem<T> {
        let layout = Layout::padded(shape, [3, 1, 2], [2, 5, 1]);
        let [alpha, beta] = scalars.map(T::from_integer);
        Problem::random(shape, layout, data, 7, alpha, beta).unwrap()
    }

    /// The C of a product, and the bytes that its devices received.
    fn multiplied<T: Number>(
        count: usize,
        choice: Choice,
        problem: &Problem<T>,
        starts: [Start; 3],
    ) -> (Matrix<T>, Vec<usize>) {
        let (devices, stored) = (simulators(count), problem.stored().unwrap());
        let product = product(&devices, count, Some(choice), problem, &stored, starts);
        let mut product = product.unwrap();
        let received = product.multiply().unwrap().received;
        (gathered(&product, problem).unwrap(), received)
    }

    /// Sizes that no number of devices divides, fewer rows than devices, and none.
    #[test]
    fn each_element_has_the_bits_that_one_device_gives_it_wherever_matrices_start() {
        let (no, one) = (Transpose::No, Device::Simulator(Simulator::default()));
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
                for (count, start) in [1, 2, 3, 4, 6]
                    .map(|count| [0, 1, 2, 4, 7].map(|start| (count, start)))
                    .concat()
                {
                    let starts = [0, 1, 2].map(|matrix| match start >> matrix & 1 {
                        0 => Start::Spread,
                        _ => Start::First,
                    });
                    let (c, _) = multiplied(count, naive, &problem, starts);
                    let case = format!("{m} {n} {k}, {count} devices, {starts:?}, {scalars:?}");
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
        let received = |count, starts| multiplied(count, choice, &problem, starts).1;
        for count in [1, 2, 3, 4, 6] {
            let split = gpu_gemm::Split::of(shape, count);
            let formula: Vec<usize> = (0..count).map(|of| split.received(of) * 8).collect();
            assert_eq!(received(count, [Start::Spread; 3]), formula);
        }
        // From A, B and C on device 0, device 1 gets 48 rows of A, all of B, and its half of C,
        // which goes back.
        let (a, b, c) = (48 * 16 * 8, 16 * 64 * 8, 48 * 64 * 8);
        assert_eq!(received(2, [Start::First; 3]), [c, a + b + c]);
        let only_b = [Start::Spread, Start::First, Start::Spread];
        assert_eq!(received(2, only_b), [0, b]);
    }

    #[test]
    fn the_device_that_fails_is_named() {
        // Of 5 rows the second device has 3.
        const FAILS_ON_THREE_ROWS: EntryFn = |block| {
            let Gemm { m, a, .. } = planted::gemm(block);
            assert!(m != 3, "three rows, {} elements", a.len());
        };
        let planted = planted::kernel(FAILS_ON_THREE_ROWS);
        let problem = problem::<f32>(Shape::new(5, 4, 4), Data::Uniform, [1, 0]);
        let error = run(&simulators(2), Some(planted), &problem).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("Device 1 (sim) of several, counted from 0: Kernel `planted`")
                && message.contains("three rows"),
            "{message}"
        );
    }
}
