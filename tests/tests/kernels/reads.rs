//! No kernel accesses anything beside its matrices, in the simulator. An unused read changes no
//! result, so matrices are between inaccessible pages ([`tests::pages`]), and copies may read only
//! what a launch names.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use gpu_gemm::gpu_kernels::spec::{Grid, Staging, Variant};
use gpu_gemm::gpu_kernels::variants;
use gpu_gemm::launch::Parameters;
use gpu_gemm::simulator::Fault;
use gpu_gemm::{
    Argument, Backend as _, Batch, Bf16, Bindings, Call, Decomposition, DeviceError, E4m3,
    ElementType, F16, Launch, MultipliesInto, Operand, Plan, Shape, Simulator, Transpose,
};
use libtest_mimic::{Failed, Trial};
use tests::devices::Backend;
use tests::pages::{Edge, Fenced};
use tests::{Tier, on_simulator};
use verification::data::{Matrix, Number, Problem, Storage};
use verification::verify::{Coverage, ErrorModel};

use super::problem::{integers, is_right};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![on_simulator(
        "reads::an_access_beside_fenced_memory_ends_the_process",
        fences_hold,
    )];
    for variant in variants().filter(|variant| tests::is_representative(variant)) {
        trials.extend(match (variant.types.a, variant.types.c) {
            (ElementType::Bf16, ElementType::F32) => trials_of::<Bf16, f32>(variant),
            (ElementType::F16, ElementType::F32) => trials_of::<F16, f32>(variant),
            (ElementType::I8, _) => trials_of::<i8, i32>(variant),
            (ElementType::E4m3, ElementType::Bf16) => trials_of::<E4m3, Bf16>(variant),
            (ElementType::E4m3, _) => trials_of::<E4m3, f32>(variant),
            (_, ElementType::F32) => trials_of::<f32, f32>(variant),
            (_, ElementType::F64) => trials_of::<f64, f64>(variant),
            (_, ElementType::I32) => trials_of::<i32, i32>(variant),
            (_, ElementType::Bf16) => trials_of::<Bf16, Bf16>(variant),
            (_, ElementType::F16) => trials_of::<F16, F16>(variant),
            (_, ElementType::I8 | ElementType::E4m3) => unreachable!("no C is of 8 bits"),
        });
    }
    trials
}

fn trials_of<T: Number + MultipliesInto<C>, C: Number>(variant: &'static Variant) -> Vec<Trial> {
    let name = variant.entry.name;
    let stays = format!("reads::{name}::accesses_nothing_beside_its_matrices");
    let mut trials: Vec<Trial> = [Tier::Quick, Tier::Exhaustive]
        .into_iter()
        .filter_map(|tier| {
            let test = move || stays_inside::<T, C>(variant, tier);
            tests::trial(tier, Backend::Simulator, &stays, test)
        })
        .collect();
    // Only fences check vector loads to registers; copies fill elements outside a tensor map with
    // zeros.
    let is_mapped = matches!(variant.staging, Staging::Ring { .. });
    if !variant.gemv_like && !is_mapped {
        trials.push(on_simulator(
            format!("reads::{name}::is_stopped_where_it_reads_more_than_its_launch_names"),
            move || is_stopped::<T, C>(variant),
        ));
    }
    trials
}

/// If this variable is set, this program runs the case that it names instead of tests.
const TRESPASS: &str = "GEMM_TRESPASS";

/// Reads beside fenced memory, if [`TRESPASS`] requests it.
pub fn trespass() {
    let Ok(edge) = env::var(TRESPASS) else {
        return;
    };
    let (edge, index) = match edge.as_str() {
        "start" => (Edge::Start, -1),
        _ => (Edge::End, 3),
    };
    let mut fenced = Fenced::new(&[1.0f32; 3], edge, 4).expect("memory");
    let beside = fenced.start().cast::<f32>().wrapping_offset(index);
    // SAFETY: none; nothing is mapped there, so the process ends.
    let read = unsafe { beside.read_volatile() };
    panic!("{read} was read");
}

fn fences_hold() -> Result<(), Failed> {
    for edge in ["start", "end"] {
        let mut trespasser = Command::new(env::current_exe()?);
        let output = trespasser.env(TRESPASS, edge).output()?;
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
    }
    Ok(())
}

/// How the matrices of a case are laid out.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Whether each row begins at a multiple of 16 bytes. Without this, rows have no gaps.
    aligned: bool,
    edge: Edge,
}

const PLACES: [Place; 4] = [
    place(false, Edge::End),
    place(true, Edge::End),
    place(false, Edge::Start),
    place(true, Edge::Start),
];

const fn place(aligned: bool, edge: Edge) -> Place {
    Place { aligned, edge }
}

/// Shapes around the edges of a tile, also with only one edge beside it; if sides are multiples of
/// 4, aligned rows end at a fence.
fn shapes(variant: &Variant) -> [Shape; 10] {
    let [m, n, k] = [variant.tile.m, variant.tile.n, variant.tile.k].map(|side| side as usize);
    // Long sums are slow.
    let k = if k > 1000 { 64 } else { k };
    let below = |side: usize| (side - 1).max(1);
    [
        Shape::new(1, 1, 1),
        Shape::new(below(m), below(n), below(k)),
        Shape::new(2 * m - 1, n, 2 * k),
        Shape::new(m, 2 * n - 1, 2 * k),
        Shape::new(m, n, 2 * k - 1),
        Shape::new(m + 4, n + 4, k + 4),
        Shape::new(m + 7, 2 * n - 4, 3 * k + 8),
        Shape::new(2, n + 12, 5 * k + 4),
        Shape::new(13, 37, 29),
        Shape::new(5, 8, (64 * k + 12).min(1100)),
    ]
}

/// The possible divisions of a variant's tiles.
fn decompositions(variant: &Variant) -> Vec<Decomposition> {
    match variant.grid {
        Grid::StreamK => vec![
            Decomposition::DATA_PARALLEL,
            Decomposition::stream_k(5),
            Decomposition {
                ctas: 3,
                data_parallel_waves: 1,
            },
        ],
        Grid::Persistent => vec![Decomposition::stream_k(2)],
        Grid::PersistentStreamK => vec![Decomposition::stream_k(3)],
        _ => vec![Decomposition::DATA_PARALLEL],
    }
}

/// The operands that are stored transposed: none, except for kernels that read them so.
fn transposes(variant: &Variant) -> Vec<[Transpose; 2]> {
    match variant.grid {
        Grid::StreamK => Transpose::ALL
            .into_iter()
            .flat_map(|a| Transpose::ALL.map(|b| [a, b]))
            .collect(),
        _ => vec![[Transpose::No; 2]],
    }
}

fn stays_inside<T: Number + MultipliesInto<C>, C: Number>(
    variant: &'static Variant,
    tier: Tier,
) -> Result<(), Failed> {
    let cases = shapes(variant).into_iter().flat_map(|shape| {
        PLACES.into_iter().flat_map(move |place| {
            let transposes = transposes(variant).into_iter();
            transposes.map(move |transposes| (shape, place, transposes))
        })
    });
    let decompositions = decompositions(variant);
    let model = ErrorModel::of(variant.rounding);
    // Each shape, each place, each transposition; with all of these together only where there are
    // no transpositions.
    let step = match (variant.grid, tier) {
        (Grid::StreamK, Tier::Quick) => 11,
        (Grid::StreamK, Tier::Exhaustive) => 3,
        _ => tier.step(3),
    };
    for (index, (shape, place, transposes)) in cases.enumerate().step_by(step) {
        // With and without a C that is read, in each place.
        let beta = -(index as i32 / 5 % 2);
        let problem = problem::<T, C>(model, shape, place, transposes, beta)?;
        let skipped = index / step % tier.step(decompositions.len());
        for &decomposition in decompositions
            .iter()
            .skip(skipped)
            .step_by(tier.step(decompositions.len()))
        {
            let mut memory = Memory::<T, C>::new(&problem, place, variant, decomposition)?;
            let (plan, bindings) = (memory.plan.clone(), memory.bindings());
            let simulator = Simulator::default();
            // SAFETY: the matrices are those of the plan's call, the workspace is as large as the
            // plan requires, and all of them outlive the launches.
            let ran = unsafe { gpu_gemm::run(&simulator.observed(&|| ()), &plan, &bindings) };
            ran.map_err(Failed::from)
                .and_then(|()| memory.check(&problem))
                .map_err(|failed| {
                    let name = variant.name;
                    format!("{name}, {transposes:?}, {place:?}, {decomposition:?}: {failed:?}")
                })?;
        }
    }
    Ok(())
}

/// A product of integers whose matrices have this layout.
fn problem<T: Number + MultipliesInto<C>, C: Number>(
    model: ErrorModel,
    shape: Shape,
    place: Place,
    transposes: [Transpose; 2],
    beta: i32,
) -> Result<Problem<C>, Failed> {
    let Shape { m, n, k } = shape;
    let of_a = transposes[0].of((m, k)).1 * size_of::<T>();
    let of_b = transposes[1].of((k, n)).1 * size_of::<T>();
    let of_c = n * size_of::<C>();
    let sizes = [size_of::<T>(), size_of::<T>(), size_of::<C>()];
    let to_16 = |bytes: usize| bytes.next_multiple_of(16) - bytes;
    let padding = match place.aligned {
        true => [
            to_16(of_a) / sizes[0],
            to_16(of_b) / sizes[1],
            to_16(of_c) / sizes[2],
        ],
        false => [0; 3],
    };
    let storage = Storage {
        transposes,
        ..Storage::padded(padding, [0; 3])
    };
    let (data, scalars) = (
        integers::<C>(T::TYPE, shape, model)?,
        [2, beta].map(C::from_integer).into(),
    );
    Ok(Problem::random_as(
        T::TYPE,
        shape,
        storage,
        data,
        7,
        scalars,
    )?)
}

/// The memory of each matrix of a product, between fences, and a plan for them.
struct Memory<T: Number, C: Number> {
    factors: [Matrix<T>; 2],
    a: Fenced<T>,
    b: Fenced<T>,
    c: Fenced<C>,
    workspace: Fenced<C>,
    plan: Plan,
    scalars: [C; 2],
}

impl<T: Number + MultipliesInto<C>, C: Number> Memory<T, C> {
    fn new(
        problem: &Problem<C>,
        place: Place,
        variant: &'static Variant,
        decomposition: Decomposition,
    ) -> Result<Self, Failed> {
        let alignment = |bytes| if place.aligned { 16 } else { bytes };
        let factors = problem.factors_as::<T>()?.map(|matrix| matrix.into_owned());
        let fenced = |matrix: &Matrix<T>| {
            Fenced::new(matrix.elements(), place.edge, alignment(size_of::<T>()))
        };
        let (mut a, mut b) = (fenced(&factors[0])?, fenced(&factors[1])?);
        let operand = |address, index: usize| {
            let (leading, transpose) = (factors[index].leading(), problem.transposes[index]);
            Operand::at(address, leading, T::TYPE, transpose)
        };
        let call = Call {
            shape: problem.shape(),
            a: operand(a.start().addr(), 0),
            b: operand(b.start().addr(), 1),
            ldc: problem.c.leading(),
            batch: Batch::ONE,
        };
        let plan = Plan::new(variant, call, decomposition)?;
        let workspace = vec![C::POISON; plan.workspace_bytes().div_ceil(size_of::<C>())];
        let c = problem.c.elements();
        Ok(Memory {
            c: Fenced::new(c, place.edge, alignment(size_of::<C>()))?,
            workspace: Fenced::new(&workspace, place.edge, 256)?,
            scalars: [problem.alpha, problem.beta],
            factors,
            a,
            b,
            plan,
        })
    }

    fn bindings(&mut self) -> Bindings {
        let [alpha, beta] = self.scalars.map(C::scalar);
        Bindings {
            alpha,
            beta,
            a: self.a.start(),
            b: self.b.start(),
            c: self.c.start(),
            workspace: self.workspace.start(),
            epilogue: Parameters::NONE,
            first: [0; 3],
        }
    }

    /// C is right, and nothing was written that must not be.
    fn check(&self, problem: &Problem<C>) -> Result<(), Failed> {
        for (name, are_unchanged) in [
            ("A", self.a.surroundings_are_unchanged()),
            ("B", self.b.surroundings_are_unchanged()),
            ("C", self.c.surroundings_are_unchanged()),
            ("the workspace", self.workspace.surroundings_are_unchanged()),
        ] {
            if !are_unchanged {
                return Err(format!("something beside {name} was written").into());
            }
        }
        for (before, now) in self.factors.iter().zip([&self.a, &self.b]) {
            if tests::bits(before.elements()) != tests::bits(now.elements()) {
                return Err("A or B was written".into());
            }
        }
        let mut c = problem.c.clone();
        c.elements_mut().copy_from_slice(self.c.elements());
        if c.first_padding_difference(problem.c.buffer()).is_some() {
            return Err("an element beside C was written".into());
        }
        let model = ErrorModel::of(self.plan.variant().rounding);
        let data = integers::<C>(T::TYPE, problem.shape(), model)?;
        is_right(problem, &c, (data, model), Coverage::Full)
    }
}

/// The simulator stops a launch with a slice of A or B, or of a copy, one element too short.
fn is_stopped<T: Number + MultipliesInto<C>, C: Number>(
    variant: &'static Variant,
) -> Result<(), Failed> {
    // Rows of any type end at multiples of 16 bytes: no kernel needs a copy's padding.
    let [m, mut n] = [variant.tile.m, variant.tile.n].map(|side| side as usize + 8);
    if variant.n_remainder.is_some() {
        n = variant.tile.n as usize; // another kernel would compute the last columns
    }
    let model = ErrorModel::of(variant.rounding);
    for aligned in [false, true] {
        let place = place(aligned, Edge::End);
        let shape = Shape::new(m, n, 64);
        let problem = problem::<T, C>(model, shape, place, [Transpose::No; 2], -1)?;
        let mut memory =
            Memory::<T, C>::new(&problem, place, variant, Decomposition::DATA_PARALLEL)?;
        let bindings = memory.bindings();
        let simulator = Simulator::default();
        let simulator = simulator.observed(&|| ());
        // SAFETY: the memory is that of the plan's call, and launches name no more of it.
        let run = |launch: &Launch| unsafe { simulator.launch(launch, &bindings) };
        for launch in memory.plan.launches() {
            if launch.kernel.name == variant.entry.name {
                for shorter in with_a_shorter_slice(launch) {
                    match run(&shorter) {
                        Err(DeviceError::Simulator { fault, .. })
                            if matches!(
                                *fault,
                                Fault::InvalidCopy { .. } | Fault::Panic { .. }
                            ) => {}
                        other => {
                            let arguments = shorter.arguments;
                            return Err(format!("{other:?}, with {arguments:?}").into());
                        }
                    }
                }
            }
            run(launch)?;
        }
    }
    Ok(())
}

/// The launch, once for each of its slices, with that slice one element shorter.
fn with_a_shorter_slice(launch: &Launch) -> Vec<Launch> {
    let shorter = |index| {
        let mut launch = launch.clone();
        match &mut launch.arguments[index] {
            Argument::Slice(_, length) => *length -= 1,
            _ => return None,
        }
        Some(launch)
    };
    (0..launch.arguments.len()).filter_map(shorter).collect()
}
