//! Every kernel computes `alpha * A * B + beta * C`, on the simulator and on the GPU, and every
//! CPU rung natively, whatever the shape, the layout, the scalars and the values.

use std::process::ExitCode;

use gpu_gemm::gpu_kernels::spec::{Variant, variants};
use gpu_gemm::{Choice, Device, ElementType, Shape, Simulator};
use host::cpu::{self, Algorithm, Schedule, Settings, Team, Threads};
use host::data::{Arithmetic, Data, Layout, Matrix, Placement, Problem};
use host::rung::{Element, Rung};
use host::verify::{self, Coverage, ErrorModel};
use libtest_mimic::{Failed, Trial};
use tests::devices::Backend;
use tests::{on_cpu, on_gpu, on_simulator};

fn main() -> ExitCode {
    let kernels = variants().flat_map(|variant| match variant.types.c {
        ElementType::F32 => kernel_trials::<f32>(variant),
        ElementType::F64 => kernel_trials::<f64>(variant),
        ElementType::I32 => kernel_trials::<i32>(variant),
    });
    let rungs = cpu::RUNGS.iter().flat_map(|algorithm| {
        let types = algorithm.types().into_iter();
        types.flat_map(|data_type| match data_type {
            ElementType::F32 => cpu_trials::<f32>(algorithm),
            ElementType::F64 => cpu_trials::<f64>(algorithm),
            ElementType::I32 => cpu_trials::<i32>(algorithm),
        })
    });
    tests::run(kernels.chain(rungs).collect())
}

/// A claim about one rung on one device.
type Case = fn(&Bench) -> Result<(), Failed>;

/// The claims about every rung.
fn cases<T: Element>(model: ErrorModel) -> Vec<(&'static str, Case)> {
    let mut cases: Vec<(&str, Case)> = vec![
        ("is_exact_at_every_edge_of_its_tiles", edges::<T>),
        ("is_proven_on_awkward_shapes", awkward_shapes::<T>),
        ("follows_alpha_and_beta", scalars::<T>),
        (
            "alpha_zero_never_reads_a_or_b_and_beta_zero_never_reads_c",
            unread::<T>,
        ),
        ("takes_any_leading_dimension_and_offset", layouts::<T>),
        ("repeats_bit_for_bit", repeats::<T>),
        ("k_zero_scales_c", no_depth::<T>),
    ];
    let floats = matches!(T::ARITHMETIC, Arithmetic::Float { .. });
    // Strassen's algorithm spreads infinities and NaNs over C.
    if !floats || !matches!(model, ErrorModel::Strassen { .. }) {
        cases.push(("carries_special_values", special_values::<T>));
    }
    if floats && !matches!(model, ErrorModel::Strassen { .. }) {
        cases.push(("overflows_to_infinity", overflow::<T>));
    }
    cases
}

fn kernel_trials<T: Element>(variant: &'static Variant) -> Vec<Trial> {
    let on_gpu_only: [(&str, Case); 2] = [
        ("is_proven_at_large_sizes", large_sizes::<T>),
        ("takes_more_rows_than_a_grid_has_blocks", many_rows::<T>),
    ];
    let trial = |backend: Backend, name, case: Case| {
        let test = move || {
            case(&Bench {
                device: backend.open()?,
                team: Team::new(Settings::default())?,
                rung: Rung::Gpu(Choice::even(variant)),
            })
        };
        let name = format!("{}::{name}", variant.entry.name);
        match backend {
            Backend::Simulator => on_simulator(name, test),
            Backend::Gpu => on_gpu(name, test),
        }
    };
    let mut trials = Vec::new();
    for (name, case) in cases::<T>(ErrorModel::of(variant.rounding)) {
        trials.push(trial(Backend::Simulator, name, case));
        trials.push(trial(Backend::Gpu, name, case));
    }
    for (name, case) in on_gpu_only {
        trials.push(trial(Backend::Gpu, name, case));
    }
    // Takes minutes and 40 GiB of memory: `cargo test --test gemm -- --ignored beyond`.
    let beyond = trial(Backend::Gpu, "indexes_beyond_two_to_the_31", huge::<T>);
    trials.push(beyond.with_ignored_flag(true));
    // A million rows take the simulator a while. The host does the splitting, so one kernel
    // stands for all.
    if variant.entry.name == "naive" {
        trials.push(trial(
            Backend::Simulator,
            "takes_more_rows_than_a_grid_has_blocks",
            many_rows::<T>,
        ));
    }
    trials
}

fn cpu_trials<T: Element>(algorithm: &'static Algorithm) -> Vec<Trial> {
    let schedules: &[Schedule] = match algorithm.threads {
        Threads::Scheduled => &[Schedule::Static, Schedule::Dynamic, Schedule::Guided],
        _ => &[Schedule::Static],
    };
    let mut trials = Vec::new();
    for &schedule in schedules {
        let settings = Settings {
            // More than the pieces of a small C, and not a divisor of most numbers of pieces.
            threads: Some(3),
            schedule,
            // So that shapes around a tile are halved more than once.
            cutoff: 16,
        };
        let name = match schedules.len() {
            1 => format!("{}_{}", algorithm.name, T::TYPE),
            _ => format!("{}_{schedule}_{}", algorithm.name, T::TYPE),
        };
        for (claim, case) in cases::<T>((algorithm.error_model)(&settings)) {
            trials.push(on_cpu(format!("{name}::{claim}"), move || {
                case(&Bench {
                    // Never used.
                    device: Device::Simulator(Simulator::default()),
                    team: Team::new(settings)?,
                    rung: Rung::Cpu(algorithm),
                })
            }));
        }
    }
    trials
}

/// A rung, and where it runs.
struct Bench {
    device: Device,
    team: Team,
    rung: Rung,
}

impl Bench {
    fn run<T: Element>(&self, problem: &Problem<T>) -> Result<Matrix<T>, Failed> {
        // Guard bands, padding, A and B are compared in here.
        Ok(self.rung.run(&self.device, &self.team, problem, &|| ())?.c)
    }

    /// Gate 1: exact on small integers.
    fn exact<T: Element>(&self, problem: &Problem<T>) -> Result<(), Failed> {
        let c = self.run(problem)?;
        let coverage = Coverage::of(problem.shape());
        verify::exact(problem, &c, self.rung.tile(), coverage)
            .map_err(|failure| format!("{}: {failure}", problem.shape()))?;
        Ok(())
    }

    /// Gates 2 and 3: within the bound, and below the alarm.
    fn proven<T: Element>(&self, problem: &Problem<T>, data: Data) -> Result<(), Failed> {
        let c = self.run(problem)?;
        let coverage = Coverage::of(problem.shape());
        let (tile, model) = (self.rung.tile(), self.rung.error_model(&self.team));
        verify::general(problem, &c, tile, data, coverage, model)
            .map_err(|failure| format!("{}, {data:?}: {failure}", problem.shape()))?;
        Ok(())
    }

    /// All three gates on compact matrices.
    fn all_gates<T: Element>(&self, shape: Shape, seed: u64) -> Result<(), Failed> {
        let (one, zero) = (T::from_integer(1), T::default());
        let layout = Layout::compact(shape);
        let model = self.rung.error_model(&self.team);
        let integers = model
            .exact_data::<T>(shape)
            .ok_or("k is too large to be exact")?;
        self.exact(&Problem::random(shape, layout, integers, seed, one, zero)?)?;
        for data in [Data::Uniform, Data::Positive, Data::Normal] {
            self.proven(
                &Problem::random(shape, layout, data, seed + 1, one, zero)?,
                data,
            )?;
        }
        Ok(())
    }

    /// The shape of one tile.
    fn tile(&self) -> Shape {
        let tile = self.rung.tile();
        let [m, n, k] = [tile.m, tile.n, tile.k].map(|extent| extent as usize);
        Shape { m, n, k }
    }
}

/// Every combination of the extents at which a tile begins, ends, or is missing.
fn edges<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let around = |tile: usize| {
        let mut extents = vec![
            0,
            1,
            2,
            3,
            tile - 1,
            tile,
            tile + 1,
            2 * tile - 1,
            2 * tile + 1,
        ];
        extents.sort_unstable();
        extents.dedup();
        extents
    };
    let tile = bench.tile();
    for m in around(tile.m) {
        for n in around(tile.n) {
            for k in around(tile.k) {
                let shape = Shape { m, n, k };
                let layout = Layout::compact(shape);
                let data = Data::SmallIntegers { largest: 4 };
                let problem =
                    Problem::<T>::random(shape, layout, data, 1, T::from_integer(1), T::default())?;
                bench.exact(&problem)?;
            }
        }
    }
    Ok(())
}

/// Primes, a single row, a single column, sums far longer than the sides of C.
fn awkward_shapes<T: Element>(bench: &Bench) -> Result<(), Failed> {
    for (m, n, k) in [
        (1, 1, 1),
        (17, 33, 129),
        (1, 257, 63),
        (263, 1, 67),
        (131, 137, 139),
        (3, 5, 20_011),
        (256, 384, 64),
    ] {
        bench.all_gates::<T>(Shape { m, n, k }, 11)?;
    }
    Ok(())
}

fn scalars<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.tile();
    let whole = Shape {
        m: tile.m,
        n: 2 * tile.n,
        k: 2 * tile.k,
    };
    let shapes = [
        whole,
        Shape {
            m: tile.m + 1,
            n: tile.n + 2,
            k: tile.k + 3,
        },
    ];
    for shape in shapes {
        for alpha in [-2, -1, 0, 1, 2] {
            for beta in [-2, -1, 0, 1, 2] {
                let (alpha, beta) = (T::from_integer(alpha), T::from_integer(beta));
                let layout = Layout::compact(shape);
                let integers = Data::SmallIntegers { largest: 4 };
                bench.exact(&Problem::random(shape, layout, integers, 3, alpha, beta)?)?;
                bench.proven(
                    &Problem::random(shape, layout, Data::Uniform, 3, alpha, beta)?,
                    Data::Uniform,
                )?;
            }
        }
    }
    Ok(())
}

/// What must not be read is NaN, in matrices that are read otherwise; none may reach C.
fn unread<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let shape = Shape {
        m: 130,
        n: 70,
        k: 40,
    };
    for (alpha, beta) in [(1, 0), (0, 1), (0, 0)] {
        let (alpha, beta) = (T::from_integer(alpha), T::from_integer(beta));
        let problem = Problem::random(
            shape,
            Layout::compact(shape),
            Data::SmallIntegers { largest: 4 },
            5,
            alpha,
            beta,
        )?;
        // `random` leaves poison where alpha and beta say that nothing is read: make sure that
        // it did.
        let poisoned = |matrix: &Matrix<T>| matrix.row(0)[0].bits() == T::POISON.bits();
        let zero = T::default();
        if poisoned(&problem.a) != (alpha == zero) || poisoned(&problem.c) != (beta == zero) {
            return Err("the problem is not poisoned as this test needs it".into());
        }
        bench.exact(&problem)?;
    }
    Ok(())
}

fn layouts<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.tile();
    // Exact tiles, for which an aligned layout takes the fast path and every other must not.
    let shape = Shape {
        m: 2 * tile.m,
        n: tile.n,
        k: 2 * tile.k,
    };
    let paddings = [
        [0; 3],
        [1; 3],
        [4; 3],
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
        [3, 1000, 6],
    ];
    let offsets = [
        [0; 3],
        [1; 3],
        [2; 3],
        [3; 3],
        [0, 0, 1],
        [0, 2, 0],
        [3, 0, 0],
        [4, 8, 12],
    ];
    for padding in paddings {
        for offset in offsets {
            let problem = Problem::<T>::random(
                shape,
                Layout::padded(shape, padding, offset),
                Data::SmallIntegers { largest: 4 },
                17,
                T::from_integer(2),
                T::from_integer(-1),
            )?;
            bench
                .exact(&problem)
                .map_err(|failed| format!("padding {padding:?}, offset {offset:?}: {failed:?}"))?;
        }
    }
    Ok(())
}

fn repeats<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let shape = Shape {
        m: 200,
        n: 150,
        k: 100,
    };
    let problem = Problem::<T>::random(
        shape,
        Layout::compact(shape),
        Data::Normal,
        23,
        T::from_integer(1),
        T::from_integer(1),
    )?;
    let bits =
        |c: Matrix<T>| -> Vec<u64> { c.elements().iter().map(|element| element.bits()).collect() };
    let first = bits(bench.run(&problem)?);
    for _ in 0..3 {
        if bits(bench.run(&problem)?) != first {
            return Err("two runs on the same input differ".into());
        }
    }
    Ok(())
}

/// A sum beyond the largest number is infinite, in its row and nowhere else.
fn overflow<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let Arithmetic::Float { largest, .. } = T::ARITHMETIC else {
        return Err("integers wrap instead".into());
    };
    let tile = bench.tile();
    let shape = Shape {
        m: tile.m + 1,
        n: tile.n + 1,
        k: tile.k + 1,
    };
    let placement = |leading| Placement { offset: 0, leading };
    let matrix = |rows, columns, value: i32| {
        Matrix::from_rows(rows, columns, placement(columns), |_, row| {
            row.fill(T::from_integer(value))
        })
    };
    for row in [0, tile.m - 1, tile.m] {
        let mut a = matrix(shape.m, shape.k, 1)?;
        a.row_mut(row)[shape.k - 1] =
            T::from_scalar(-largest).ok_or("not a number of this type")?;
        let (b, c) = (matrix(shape.k, shape.n, 2)?, matrix(shape.m, shape.n, 0)?);
        let problem = Problem::new(T::from_integer(1), T::default(), a, b, c)?;
        bench.proven(&problem, Data::Uniform)?;
        let c = bench.run(&problem)?;
        if c.row(row)[0].to_f64() != f64::NEG_INFINITY {
            return Err(format!("C[{row}][0] is {}, but must be -inf", c.row(row)[0]).into());
        }
    }
    Ok(())
}

/// NaN, infinities, 0 x Inf, subnormals, signed zeros and large numbers at the corners of tiles,
/// in A and in B; extremes of the integers.
fn special_values<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.tile();
    let shape = Shape {
        m: tile.m + 1,
        n: tile.n + 1,
        k: tile.k + 1,
    };
    let values = match T::ARITHMETIC {
        Arithmetic::Float {
            smallest,
            largest,
            unit_roundoff,
            ..
        } => {
            // The power of two below the square root of the largest number, less room for a sum
            // of some products.
            let large = 2f64.powi((largest.log2() / 2.0) as i32 - 4);
            vec![
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                0.0,
                -0.0,
                71_361.0 * smallest,              // subnormal
                smallest / (2.0 * unit_roundoff), // the smallest that is not
                large,
                -large,
            ]
        }
        Arithmetic::WrappingInteger { .. } => vec![i32::MAX as f64, i32::MIN as f64, -1.0],
    };
    let corners = |rows: usize, columns: usize, tile_rows: usize, tile_columns: usize| {
        let mut corners = Vec::new();
        for row in [0, tile_rows - 1, rows - 1] {
            for column in [0, tile_columns - 1, columns - 1] {
                corners.push((row, column));
            }
        }
        corners
    };
    for &in_a in &values {
        for &in_b in &values {
            let layout = Layout::compact(shape);
            let mut problem = Problem::<T>::random(
                shape,
                layout,
                Data::SmallIntegers { largest: 2 },
                29,
                T::from_integer(1),
                T::default(),
            )?;
            let element = |value| T::from_scalar(value).ok_or("not a value of this type");
            // One corner of A at a time would take nine times as long; each meets every corner
            // of B.
            for (at, (row, column)) in corners(shape.m, shape.k, tile.m, tile.k)
                .into_iter()
                .enumerate()
            {
                if at % 2 == 0 {
                    problem.a.row_mut(row)[column] = element(in_a)?;
                }
            }
            for (at, (row, column)) in corners(shape.k, shape.n, tile.k, tile.n)
                .into_iter()
                .enumerate()
            {
                if at % 2 == 1 {
                    problem.b.row_mut(row)[column] = element(in_b)?;
                }
            }
            bench
                .proven(&problem, Data::SmallIntegers { largest: 2 })
                .map_err(|failed| format!("{in_a} in A, {in_b} in B: {failed:?}"))?;
        }
    }
    Ok(())
}

fn no_depth<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let shape = Shape { m: 33, n: 20, k: 0 };
    for beta in [0, 1, -2] {
        let problem = Problem::<T>::random(
            shape,
            Layout::padded(shape, [2; 3], [1; 3]),
            Data::SmallIntegers { largest: 4 },
            31,
            T::from_integer(1),
            T::from_integer(beta),
        )?;
        bench.exact(&problem)?;
    }
    Ok(())
}

fn large_sizes<T: Element>(bench: &Bench) -> Result<(), Failed> {
    for (m, n, k) in [
        (1, 1, 1),
        (17, 33, 129),
        (1000, 1000, 1000),
        (1024, 1024, 1024),
        (4095, 4097, 4099),
        (8192, 8192, 8192),
    ] {
        bench.all_gates::<T>(Shape { m, n, k }, 37)?;
    }
    Ok(())
}

/// A grid has at most 65535 CTAs along y.
fn many_rows<T: Element>(bench: &Bench) -> Result<(), Failed> {
    let m = 65_535 * bench.tile().m + 3;
    bench.all_gates::<T>(Shape { m, n: 2, k: 3 }, 41)
}

/// Matrices of exactly 2^31 elements, and of 512 more: A, then B, then C.
fn huge<T: Element>(bench: &Bench) -> Result<(), Failed> {
    for long in [1 << 22, (1 << 22) + 1] {
        for (m, n, k) in [(long, 4, 512), (4, long, 512), (long, 512, 4)] {
            let shape = Shape { m, n, k };
            let problem = Problem::<T>::random(
                shape,
                Layout::compact(shape),
                Data::SmallIntegers { largest: 4 },
                43,
                T::from_integer(1),
                T::default(),
            )?;
            bench.exact(&problem)?;
        }
    }
    Ok(())
}
