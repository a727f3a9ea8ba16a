//! No kernel accesses anything beside its matrices, in the simulator. What is read there and not
//! used changes no result, so matrices lie between pages that nobody can access
//! ([`tests::pages`]), and copies may read exactly what a launch names.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use gpu_gemm::gpu_kernels::spec::{Grid, Staging, Variant};
use gpu_gemm::gpu_kernels::variants;
use gpu_gemm::simulator::Fault;
use gpu_gemm::{
    Argument, Backend as _, Batch, Bf16, Bindings, Call, Decomposition, DeviceError, ElementType,
    F16, Launch, Operand, Plan, Shape, Simulator, Transpose,
};
use host::data::{Data, Layout, Matrix, Number, Placement, Problem};
use host::verify::{self, Coverage};
use libtest_mimic::{Failed, Trial};
use tests::devices::Backend;
use tests::pages::{Edge, Fenced};
use tests::{Tier, on_simulator};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![on_simulator(
        "reads::an_access_beside_fenced_memory_is_named_and_ends_the_process",
        fences_hold,
    )];
    for variant in variants().filter(|variant| tests::stands_for_itself(variant)) {
        trials.extend(match (variant.types.a, variant.types.c) {
            (ElementType::Bf16, ElementType::F32) => trials_of::<Bf16, f32>(variant),
            (ElementType::F16, ElementType::F32) => trials_of::<F16, f32>(variant),
            (_, ElementType::F32) => trials_of::<f32, f32>(variant),
            (_, ElementType::F64) => trials_of::<f64, f64>(variant),
            (_, ElementType::I32) => trials_of::<i32, i32>(variant),
            (_, ElementType::Bf16) => trials_of::<Bf16, Bf16>(variant),
            (_, ElementType::F16) => trials_of::<F16, F16>(variant),
        });
    }
    trials
}

fn trials_of<Input: Number, T: Number>(variant: &'static Variant) -> Vec<Trial> {
    let name = variant.entry.name;
    let stays = format!("reads::{name}::accesses_nothing_beside_its_matrices");
    let mut trials: Vec<Trial> = [Tier::Quick, Tier::Exhaustive]
        .into_iter()
        .filter_map(|tier| {
            let test = move || stays_inside::<Input, T>(variant, tier);
            tests::trial(tier, Backend::Simulator, &stays, test)
        })
        .collect();
    // What these read by vectors of registers, only fences check; and what a tensor map does not
    // name, copies fill with zeros.
    let is_mapped = matches!(variant.staging, Staging::Ring { .. });
    if !variant.gemv_like && !is_mapped {
        trials.push(on_simulator(
            format!("reads::{name}::is_stopped_where_it_reads_more_than_its_launch_names"),
            move || is_stopped::<Input, T>(variant),
        ));
    }
    trials
}

/// What this program, with this variable set, does instead of testing.
const TRESPASS: &str = "GEMM_TRESPASS";

/// Reads beside fenced memory, if this is a process that is to do so.
pub fn trespass() {
    let Ok(edge) = env::var(TRESPASS) else {
        return;
    };
    let (edge, index) = match edge.as_str() {
        "start" => (Edge::Start, -1),
        _ => (Edge::End, 3),
    };
    let mut fenced = Fenced::new("three numbers".into(), &[1.0f32; 3], edge, 4).expect("memory");
    let beside = fenced.start().cast::<f32>().wrapping_offset(index);
    // SAFETY: none; nothing is mapped there, so that the process ends.
    let read = unsafe { beside.read_volatile() };
    panic!("{read} was read");
}

fn fences_hold() -> Result<(), Failed> {
    for (edge, place) in [("start", "before the start"), ("end", "past the end")] {
        let output = Command::new(env::current_exe()?)
            .env(TRESPASS, edge)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let message = format!("an access {place} of three numbers");
        assert!(said.contains(&message), "{said}");
        assert_eq!(output.status.signal(), Some(11), "{said}"); // SIGSEGV
    }
    Ok(())
}

/// How the matrices of a case lie.
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

/// Around the edges of a tile, also with one edge alone beside it; where sides are multiples of 4,
/// aligned rows end at a fence.
fn shapes(variant: &Variant) -> [Shape; 10] {
    let [m, n, k] = [variant.tile.m, variant.tile.n, variant.tile.k].map(|side| side as usize);
    // Long sums take a while.
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

/// How a variant may divide its tiles.
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

/// What is stored transposed: nothing but for kernels that may read it as it is.
fn transposes(variant: &Variant) -> Vec<[Transpose; 2]> {
    match variant.grid {
        Grid::StreamK => Transpose::ALL
            .into_iter()
            .flat_map(|a| Transpose::ALL.map(|b| [a, b]))
            .collect(),
        _ => vec![[Transpose::No; 2]],
    }
}

fn stays_inside<Input: Number, T: Number>(
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
    // Each shape, each place, each transposition.
    let step = match variant.grid {
        Grid::StreamK => tier.step(11),
        _ => tier.step(3),
    };
    for (index, (shape, place, transposes)) in cases.enumerate().step_by(step) {
        let case = Case::<Input, T>::new(shape, place, transposes)?;
        let skipped = index / step % tier.step(decompositions.len());
        for &decomposition in decompositions
            .iter()
            .skip(skipped)
            .step_by(tier.step(decompositions.len()))
        {
            let plan = Plan::new(variant, case.call(), decomposition)?;
            let name = format!(
                "{}, {shape}, {transposes:?}, {place:?}, {decomposition:?}",
                variant.name
            );
            let failed = |failed| format!("{name}: {failed:?}");
            case.run(&plan, &name).map_err(failed)?;
        }
    }
    Ok(())
}

/// A product of small integers, and its operands as they are stored.
struct Case<Input, T> {
    problem: Problem<T>,
    place: Place,
    transposes: [Transpose; 2],
    a: Matrix<Input>,
    b: Matrix<Input>,
}

impl<Input: Number, T: Number> Case<Input, T> {
    fn new(shape: Shape, place: Place, transposes: [Transpose; 2]) -> Result<Self, Failed> {
        let data = Data::SmallIntegers { largest: 4 };
        let [alpha, beta] = [2, -1].map(T::from_integer);
        let layout = Layout {
            c: place.of_rows::<T>(shape.n),
            ..Layout::compact(shape)
        };
        let problem = Problem::random(shape, layout, data, 1, alpha, beta)?;
        Ok(Case {
            a: stored(&problem.a, transposes[0], place)?,
            b: stored(&problem.b, transposes[1], place)?,
            problem,
            place,
            transposes,
        })
    }

    fn call(&self) -> Call {
        let operand = |matrix: &Matrix<Input>, transpose| {
            // Where it begins in a page.
            let address = match (self.place.edge, self.place.aligned) {
                (Edge::End, false) => (matrix.extent() * size_of::<Input>()).wrapping_neg(),
                _ => 0,
            };
            Operand::at(address, matrix.leading(), Input::TYPE, transpose)
        };
        Call {
            shape: self.problem.shape(),
            a: operand(&self.a, self.transposes[0]),
            b: operand(&self.b, self.transposes[1]),
            ldc: self.problem.c.leading(),
            batch: Batch::ONE,
        }
    }

    /// Runs the plan in fenced memory, and checks the result.
    fn run(&self, plan: &Plan, name: &str) -> Result<(), Failed> {
        let mut memory = Memory::new(self, plan, name)?;
        let bindings = memory.bindings(&self.problem);
        // SAFETY: the matrices are those of the plan's call, the workspace is as large as the
        // plan requires, and all of them outlive the launches.
        unsafe { gpu_gemm::run(&Simulator::default().observed(&|| ()), plan, &bindings)? };
        memory.check(self)?;

        let mut c = self.problem.c.clone();
        c.elements_mut().copy_from_slice(memory.c.elements());
        if self
            .problem
            .c
            .first_padding_difference(c.buffer())
            .is_some()
        {
            return Err("padding of C was written".into());
        }
        let coverage = Coverage::of(self.problem.shape(), 1);
        verify::exact(&self.problem, &c, plan.variant().tile, coverage)?;
        Ok(())
    }
}

impl Place {
    fn of_rows<T>(self, columns: usize) -> Placement {
        Placement::compact(match self.aligned {
            true => columns.next_multiple_of(16 / size_of::<T>()),
            false => columns,
        })
    }

    /// The multiple of bytes that matrices begin at.
    fn alignment<T>(self) -> usize {
        match self.aligned {
            true => 16,
            false => size_of::<T>(),
        }
    }
}

/// The matrix as it lies in memory.
fn stored<Input: Number, T: Number>(
    matrix: &Matrix<T>,
    transpose: Transpose,
    place: Place,
) -> Result<Matrix<Input>, Failed> {
    let matrix = matrix.converted::<Input>()?;
    let (rows, columns) = transpose.of((matrix.rows(), matrix.columns()));
    let placement = place.of_rows::<Input>(columns);
    Ok(Matrix::from_rows(
        rows,
        columns,
        placement,
        |row, elements| {
            for (column, element) in elements.iter_mut().enumerate() {
                let (row, column) = transpose.of((row, column));
                *element = matrix.row(row)[column];
            }
        },
    )?)
}

/// The memories of a product, each between fences.
struct Memory<Input: Number, T: Number> {
    a: Fenced<Input>,
    b: Fenced<Input>,
    c: Fenced<T>,
    workspace: Fenced<T>,
}

impl<Input: Number, T: Number> Memory<Input, T> {
    fn new(case: &Case<Input, T>, plan: &Plan, name: &str) -> Result<Self, Failed> {
        let (place, name) = (case.place, |memory: &str| format!("{memory} of {name}"));
        let operand = |memory: &str, matrix: &Matrix<Input>| {
            let alignment = place.alignment::<Input>();
            Fenced::new(name(memory), matrix.elements(), place.edge, alignment)
        };
        let c = case.problem.c.elements();
        let workspace = vec![T::POISON; plan.workspace_bytes().div_ceil(size_of::<T>())];
        Ok(Memory {
            a: operand("A", &case.a)?,
            b: operand("B", &case.b)?,
            c: Fenced::new(name("C"), c, place.edge, place.alignment::<T>())?,
            workspace: Fenced::new(name("the workspace"), &workspace, place.edge, 256)?,
        })
    }

    fn bindings(&mut self, problem: &Problem<T>) -> Bindings {
        Bindings {
            alpha: problem.alpha.scalar(),
            beta: problem.beta.scalar(),
            a: self.a.start(),
            b: self.b.start(),
            c: self.c.start(),
            workspace: self.workspace.start(),
        }
    }

    /// Nothing was written that must not be.
    fn check(&self, case: &Case<Input, T>) -> Result<(), Failed> {
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
        let same = |before: &Matrix<Input>, now: &Fenced<Input>| {
            tests::bits(before.elements()) == tests::bits(now.elements())
        };
        match same(&case.a, &self.a) && same(&case.b, &self.b) {
            true => Ok(()),
            false => Err("A or B was written".into()),
        }
    }
}

/// A and B, or the copies that the kernel reads, are named one element shorter than they are.
fn is_stopped<Input: Number, T: Number>(variant: &'static Variant) -> Result<(), Failed> {
    // Rows of any type that end at 16 bytes: of a copy's padding no kernel need read more.
    let [m, mut n] = [variant.tile.m, variant.tile.n].map(|side| side as usize + 8);
    if variant.n_remainder.is_some() {
        n = variant.tile.n as usize; // the last columns would be another kernel's
    }
    for aligned in [false, true] {
        let case = Case::<Input, T>::new(
            Shape::new(m, n, 64),
            place(aligned, Edge::End),
            [Transpose::No; 2],
        )?;
        let plan = Plan::new(variant, case.call(), Decomposition::DATA_PARALLEL)?;
        let mut memory = Memory::new(&case, &plan, variant.name)?;
        let bindings = memory.bindings(&case.problem);
        let simulator = Simulator::default();
        let simulator = simulator.observed(&|| ());
        // SAFETY: the memory is that of the plan's call; a launch is told of no more.
        let run = |launch: &Launch| unsafe { simulator.launch(launch, &bindings) };
        for launch in plan.launches() {
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

/// The launch for each of its slices, which is one element shorter.
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
