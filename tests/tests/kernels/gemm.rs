//! Every kernel computes `alpha * A * B + beta * C`, on the simulator, on the GPU and, if OpenCL C
//! can express it, with OpenCL, and every CPU rung natively, for any shape, layout, scalars and
//! values.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use gpu_gemm::device::compiled;
use gpu_gemm::gpu_kernels::spec::{Major, Rounding, Unit, Variant};
use gpu_gemm::gpu_kernels::{self, variants, warp_specialized_fp8};
use gpu_gemm::{Bf16, Choice, Decomposition, Device, E4m3, ElementType, F16, Shape, Transpose};
use host::check::compute_reference;
use host::progress::Progress;
use host::rung::Rung;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::devices::Backend;
use tests::{Tier, bits, on_gpu, on_simulator};
use verification::by_element;
use verification::cpu::{self, Algorithm, Schedule, Settings, Team, Threads};
use verification::data::{Arithmetic, Data, Matrix, Number, Placement, Problem, Storage};
use verification::verify::computed::ComputedReference;
use verification::verify::{self, Coverage, ErrorModel};

pub fn trials() -> Vec<Trial> {
    let kernels = variants();
    let kernels = kernels.flat_map(|variant| by_element!(variant.types.c, kernel_trials(variant)));
    let rungs = cpu::RUNGS.iter().flat_map(|algorithm| {
        let types = algorithm.types().into_iter();
        types.flat_map(|element| by_element!(element, cpu_trials(algorithm)))
    });
    let control = on_simulator(
        "gemm::sums_of_e4m3_that_are_not_promoted_are_refused",
        not_promoted_is_refused,
    );
    kernels.chain(rungs).chain([control]).collect()
}

/// Promoted sums are within their bound, and far from it; what tensor cores alone add up is not.
fn not_promoted_is_refused() -> Result<(), Failed> {
    let (shape, data, one) = (Shape::new(3, 5, 2048), Data::Positive, (1.0, 0.0));
    let problem =
        Problem::<f32>::random_as(ElementType::E4m3, shape, Storage::COMPACT, data, 1, one)?;
    let model = ErrorModel::Promoted { interval: 128 };
    let variants = warp_specialized_fp8::KERNEL.variants.iter();
    let mut refused = 0;
    for variant in variants.filter(|one| one.types.c == ElementType::F32) {
        let is_right = variant.rounding == Rounding::Promoted;
        refused += usize::from(!is_right);
        let choice = Choice::even(variant);
        let c = verification::run::run(&Device::simulator(), choice, &problem, &|| ())?.c;
        let judged = verify::general(&problem, &c, variant.tile, data, Coverage::Full, model);
        assert_eq!(judged.is_ok(), is_right, "{}", variant.name);
    }
    assert_eq!(refused, 1);
    Ok(())
}

/// A claim about one rung on one device.
type Case = fn(&Bench) -> Result<(), Failed>;

/// A list of claims with their names.
macro_rules! claims {
    ($($claim:ident),* $(,)?) => {
        vec![$((stringify!($claim), $claim::<T> as Case)),*]
    };
}

/// The claims of which the simulator has one variant of a kernel and its types in the quick tier.
const OF_VALUES: [&str; 4] = [
    "repeats_bit_for_bit",
    "passes_on_data_of_all_sizes",
    "carries_special_values",
    "overflows_to_infinity",
];

/// The claims about every rung.
fn cases<T: Number>(model: ErrorModel) -> Vec<(&'static str, Case)> {
    let mut cases = claims![
        is_exact_at_every_edge_of_its_tiles,
        passes_on_awkward_shapes,
        repeats_bit_for_bit,
        follows_alpha_and_beta,
        takes_any_leading_dimension_and_offset,
        writes_nothing_beside_c_where_rows_end_inside_16_bytes,
        k_zero_scales_c,
        multiplies_each_product_of_a_batch,
    ];
    let floats = matches!(T::ARITHMETIC, Arithmetic::Float { .. });
    if floats {
        cases.extend(claims![passes_on_data_of_all_sizes]);
    }
    // Strassen's algorithm spreads infinities and NaNs over C.
    let spreads = matches!(model, ErrorModel::Strassen { .. });
    if !floats || !spreads {
        cases.extend(claims![carries_special_values]);
    }
    if floats && !spreads {
        cases.extend(claims![overflows_to_infinity]);
    }
    cases
}

fn kernel_trials<T: Number>(variant: &'static Variant) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |tier: Tier, backend: Backend, (name, case): (&str, Case)| {
        let test = move || {
            if backend == Backend::Gpu {
                prepare_gpu();
            }
            backend.run(|device| {
                case(&Bench {
                    device,
                    team: Team::new(Settings::default())?,
                    rung: Rung::Gpu(Choice::even(variant)),
                    tier,
                })
            })
        };
        let name = format!("gemm::{}::{name}", variant.entry.name);
        trials.extend(tests::trial(tier, backend, name, test));
    };
    let represents_others = tests::is_representative(variant);
    let is_first_of_types = tests::is_first(variant, |other| {
        other.types == variant.types && tests::is_representative(other)
    });
    for (index, case) in cases::<T>(ErrorModel::of(variant.rounding))
        .into_iter()
        .enumerate()
    {
        // In the simulator, `reads.rs` has this claim, with fences.
        let is_fenced = case.0 == "writes_nothing_beside_c_where_rows_end_inside_16_bytes";
        // What a kernel makes of values depends on its types, not on its layouts and tiles.
        let is_of_values = OF_VALUES.contains(&case.0);
        for tier in [Tier::Quick, Tier::Exhaustive] {
            // The first claim is tested for every variant.
            let is_tried = match tier {
                Tier::Quick => represents_others && (!is_of_values || is_first_of_types),
                Tier::Exhaustive => represents_others || index == 0,
            };
            if is_tried && !is_fenced {
                add(tier, Backend::Simulator, case);
            }
            // On an H200's machine 367 of these tests took 190 s.
            if represents_others || index == 0 || tier == Tier::Exhaustive {
                add(tier, Backend::Gpu, case);
            }
        }
    }
    let quick_if_it_represents = match represents_others {
        true => Tier::Quick,
        false => Tier::Exhaustive,
    };
    for case in claims![passes_at_large_sizes] {
        if represents_others {
            add(Tier::Quick, Backend::Gpu, case);
        }
        add(Tier::Exhaustive, Backend::Gpu, case);
    }
    for case in claims![takes_more_rows_than_a_grid_has_blocks] {
        add(Tier::Exhaustive, Backend::Gpu, case);
    }
    if variant.grid.is_mapped() && variant.takes_batches() {
        for case in claims![multiplies_a_batch_in_one_launch] {
            add(quick_if_it_represents, Backend::Simulator, case);
            add(Tier::Quick, Backend::Gpu, case);
        }
    }
    for case in claims![takes_sides_that_16_bits_cannot_count] {
        // On the simulator, which is slow, one variant.
        if tests::is_first(variant, |_| true) && !variant.grid.is_mapped() {
            add(Tier::Exhaustive, Backend::Simulator, case);
        }
        add(Tier::Exhaustive, Backend::Gpu, case);
    }
    // A million rows are slow on the simulator. The host splits them, so one kernel is enough.
    if variant.entry.name == "naive" {
        for case in claims![
            takes_more_rows_than_a_grid_has_blocks,
            takes_sides_that_16_bits_cannot_count
        ] {
            add(Tier::Quick, Backend::Simulator, case);
        }
    }
    // Takes minutes and 80 GiB of memory: `cargo test --test kernels -- --ignored beyond`.
    for (name, case) in claims![indexes_beyond_two_to_the_32] {
        let test = move || {
            Backend::Gpu.run(|device| {
                case(&Bench {
                    device,
                    team: Team::new(Settings::default())?,
                    rung: Rung::Gpu(Choice::even(variant)),
                    tier: Tier::Exhaustive,
                })
            })
        };
        let trial = on_gpu(format!("gemm::{}::{name}", variant.entry.name), test);
        trials.push(trial.with_ignored_flag(true));
    }
    trials
}

/// The kernels in OpenCL C, with all claims about one in one test: each thread of tests has a
/// device of its own, which would compile the kernel again.
pub fn opencl_trials() -> Vec<Trial> {
    let trials = variants();
    let trials = trials.flat_map(|variant| by_element!(variant.types.c, trials_in_opencl(variant)));
    trials.collect()
}

fn trials_in_opencl<T: Number>(variant: &'static Variant) -> Vec<Trial> {
    let trial = |tier| {
        let name = format!("gemm::{}::keeps_each_claim", variant.entry.name);
        tests::trial(tier, Backend::OpenCl, name, move || {
            prepare_opencl(tier);
            Backend::OpenCl.run(|device| {
                let bench = Bench {
                    device,
                    team: Team::new(Settings::default())?,
                    rung: Rung::Gpu(Choice::even(variant)),
                    // The whole grid of cases is the simulator's.
                    tier: Tier::Quick,
                };
                for (claim, case) in cases::<T>(ErrorModel::of(variant.rounding)) {
                    let said = |error: Failed| error.message().unwrap_or_default().to_owned();
                    case(&bench).map_err(|error| format!("{claim}: {}", said(error)))?;
                }
                Ok::<_, Failed>(())
            })
        })
    };
    let tiers = [Tier::Quick, Tier::Exhaustive].into_iter();
    tiers
        .filter(|tier| is_in_opencl(variant, *tier))
        .filter_map(trial)
        .collect()
}

/// Whether OpenCL runs this variant: in the quick tier the first of each kernel, except those that
/// take PoCL ten seconds or more to compile, and in the other tier the first of those, and all
/// others.
fn is_in_opencl(variant: &'static Variant, tier: Tier) -> bool {
    // OpenCL C has no tensor cores, no conversions from f16, and no lanes that exchange values.
    let has_text = |variant: &Variant| {
        let exchanges = variant.gemv_like && variant.b.major == Major::K;
        variant.unit == Unit::CudaCores && variant.types.a != ElementType::F16 && !exchanges
    };
    // Another kernel computes the N remainder.
    let mut of_remainder = gpu_kernels::remainder_variant(variant).into_iter();
    if !has_text(variant) || !of_remainder.all(has_text) {
        return false;
    }
    let is_first = tests::is_first(variant, has_text);
    let mut takes_long = ["async_pipeline", "warp_tiled", "wide_thread_tile"].into_iter();
    let takes_long = takes_long.any(|name| variant.entry.name.starts_with(name));
    let is_quick = is_first && !takes_long;
    is_quick == (tier == Tier::Quick) && (!takes_long || is_first)
}

/// Makes the PTX of all kernels in parallel: one by one they take minutes. It makes none if tests
/// are selected by name.
fn prepare_gpu() {
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        if Arguments::from_args().filter.is_some() {
            return;
        }
        // A kernel that does not compile fails in its own test.
        let _ = Backend::Gpu.run(|device| -> Result<(), Failed> {
            if let Some(gpu) = device.one_gpu() {
                let entries: Vec<&str> = variants().map(|variant| variant.entry.name).collect();
                compiled::module_for(gpu.properties().architecture())?.prepare(&entries)?;
            }
            Ok(())
        });
    });
}

/// Makes OpenCL C of all kernels of the tier together, which takes less time than one by one. A
/// kernel that does not compile fails in its own test.
fn prepare_opencl(tier: Tier) {
    static QUICK: OnceLock<()> = OnceLock::new();
    static EXHAUSTIVE: OnceLock<()> = OnceLock::new();
    let prepared = match tier {
        Tier::Quick => &QUICK,
        Tier::Exhaustive => &EXHAUSTIVE,
    };
    prepared.get_or_init(|| {
        let run = variants().filter(|variant| is_in_opencl(variant, tier));
        let entries: Vec<&str> = run.map(|variant| variant.entry.name).collect();
        let _ = compiled::prepare_opencl(&entries);
    });
}

fn cpu_trials<T: Number>(algorithm: &'static Algorithm) -> Vec<Trial> {
    let schedules: &[Schedule] = match algorithm.threads {
        Threads::Scheduled => &[Schedule::Static, Schedule::Dynamic, Schedule::Guided],
        _ => &[Schedule::Static],
    };
    let mut trials = Vec::new();
    for &schedule in schedules {
        let settings = Settings {
            // More threads than a small C has pieces, and not a divisor of most numbers of pieces.
            threads: Some(3),
            schedule,
            chunk: 1,
            // So small that shapes around a tile are halved more than once.
            cutoff: 16,
        };
        let name = match schedules.len() {
            1 => format!("{}_{}", algorithm.name, T::TYPE),
            _ => format!("{}_{schedule}_{}", algorithm.name, T::TYPE),
        };
        // The schedule decides only which thread computes a piece, and so which are left out.
        let cases = cases::<T>((algorithm.error_model)(&settings));
        let tried = match schedule {
            Schedule::Static => cases.len(),
            _ => 3,
        };
        for (claim, case) in cases.into_iter().take(tried) {
            let test = move |tier| {
                case(&Bench {
                    // Never used.
                    device: &Device::simulator(),
                    team: Team::new(settings)?,
                    rung: Rung::Cpu(algorithm),
                    tier,
                })
            };
            let claim = format!("cpu::gemm::{name}::{claim}");
            trials.push(tests::exhaustive(&claim, move || test(Tier::Exhaustive)));
            trials.push(Trial::test(claim, move || test(Tier::Quick)));
        }
    }
    trials
}

/// A rung, its device, and how many of its cases it runs.
struct Bench<'a> {
    device: &'a Device,
    team: Team,
    rung: Rung,
    tier: Tier,
}

impl Bench<'_> {
    fn run<T: Number>(&self, problem: &Problem<T>) -> Result<Matrix<T>, Failed> {
        let problem = &*self.as_read(problem);
        // This also compares guard bands, padding, A and B.
        Ok(self.rung.run(self.device, &self.team, problem, &|| ())?.c)
    }

    /// The type in which the rung reads A and B.
    fn inputs<T: Number>(&self) -> ElementType {
        let choice = self.rung.choice();
        choice.map_or(T::TYPE, |choice| choice.variant.types.a)
    }

    /// How it rounds.
    fn arithmetic_of_inputs<T: Number>(&self) -> Arithmetic {
        match self.inputs::<T>() {
            ElementType::Bf16 => Bf16::ARITHMETIC,
            ElementType::F16 => F16::ARITHMETIC,
            ElementType::E4m3 => E4m3::ARITHMETIC,
            _ => T::ARITHMETIC,
        }
    }

    /// The problem with A and B rounded to that type.
    fn as_read<'a, T: Number>(&self, problem: &'a Problem<T>) -> Cow<'a, Problem<T>> {
        match self.inputs::<T>() {
            inputs if inputs == problem.inputs => Cow::Borrowed(problem),
            inputs => Cow::Owned(problem.clone().with_inputs(inputs)),
        }
    }

    /// Whether a run takes a good part of a second: warpgroups in the simulator, and CPU rungs with
    /// large tiles.
    fn takes_a_while(&self) -> bool {
        match self.rung.choice() {
            Some(choice) => choice.variant.grid.is_mapped() && self.device.is_simulator(),
            None => self.rung.tile().k >= 128 && self.rung.tile().m >= 128,
        }
    }

    /// A reference for every element by another kernel, if the host would take long, and elements
    /// have fewer bits than their sums, so that rows cannot be checked by their sums.
    fn reference<T: Number>(
        &self,
        problem: &Problem<T>,
    ) -> Result<Option<ComputedReference>, Failed> {
        let is_sampled = Coverage::of(problem.shape(), 1).is_sampled();
        if !is_sampled || !T::rounds_sums() {
            return Ok(None);
        }
        let computed = compute_reference(self.device, problem, 1, &Progress::start(0))??;
        Ok(Some(computed.ok_or("no memory for a reference")?))
    }

    /// Gate 1: exact on integers.
    fn exact<T: Number>(&self, problem: &Problem<T>) -> Result<(), Failed> {
        let c = self.run(problem)?;
        let reference = self.reference(problem)?;
        let coverage = reference.as_ref().map(Coverage::By);
        let coverage = coverage.unwrap_or(Coverage::of(problem.shape(), 1));
        verify::exact(problem, &c, self.rung.tile(), coverage)
            .map_err(|failure| format!("{}: {failure}", problem.shape()))?;
        Ok(())
    }

    /// Gates 2 and 3: within the bound, and below the alarm.
    fn checked<T: Number>(&self, problem: &Problem<T>, data: Data) -> Result<Matrix<T>, Failed> {
        let problem = &*self.as_read(problem);
        let c = self.run(problem)?;
        let (tile, model) = (self.rung.tile(), self.rung.error_model(&self.team));
        let reference = self.reference(problem)?;
        let coverage = reference.as_ref().map(Coverage::By);
        let coverage = coverage.unwrap_or(Coverage::of(problem.shape(), 1));
        verify::general(problem, &c, tile, data, coverage, model)
            .map_err(|failure| format!("{}, {data:?}: {failure}", problem.shape()))?;
        Ok(c)
    }

    /// All three gates on compact matrices.
    fn all_gates<T: Number>(&self, shape: Shape, seed: u64) -> Result<(), Failed> {
        let (one, zero, compact) = (T::from_integer(1), T::default(), Storage::COMPACT);
        let model = self.rung.error_model(&self.team);
        let integers = model
            .exact_data_of::<T>(self.inputs::<T>(), shape)
            .ok_or("k is too large to be exact")?;
        self.exact(&Problem::random(shape, compact, integers, seed, one, zero)?)?;
        let all = [Data::Uniform, Data::Positive, Data::Normal];
        let step = self.tier.step(all.len());
        for data in all.into_iter().skip(seed as usize % step).step_by(step) {
            let problem = Problem::random(shape, compact, data, seed + 1, one, zero)?;
            self.checked(&problem, data)?;
        }
        Ok(())
    }

    /// The shape of one tile.
    fn tile(&self) -> Shape {
        let tile = self.rung.tile();
        shape([tile.m, tile.n, tile.k].map(|extent| extent as usize))
    }

    /// The same for tests where the length of sums does not matter: thousands of terms are slow.
    fn short_tile(&self) -> Shape {
        let tile = self.tile();
        let k = if tile.k > 1000 { 64 } else { tile.k };
        Shape { k, ..tile }
    }

    /// A shape of one element more than a tile in each direction.
    fn beyond_tile(&self) -> Shape {
        let tile = self.tile();
        shape([tile.m + 1, tile.n + 1, tile.k + 1])
    }
}

fn shape([m, n, k]: [usize; 3]) -> Shape {
    Shape { m, n, k }
}

/// A problem of small integers in compact matrices.
fn integers<T: Number>(shape: Shape, scalars: [i32; 2]) -> Result<Problem<T>, Failed> {
    integers_in(Storage::COMPACT, shape, scalars)
}

/// A problem of small integers; alpha and beta are `scalars`.
fn integers_in<T: Number>(
    storage: Storage,
    shape: Shape,
    scalars: [i32; 2],
) -> Result<Problem<T>, Failed> {
    let data = Data::SmallIntegers { largest: 4 };
    let [alpha, beta] = scalars.map(T::from_integer);
    Ok(Problem::random(shape, storage, data, 1, alpha, beta)?)
}

/// Every two of the extents at which a tile begins, ends, or is missing, and on a GPU, which is
/// quick, every three.
fn is_exact_at_every_edge_of_its_tiles<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let around = |tile: usize| {
        let extents = match bench.tier {
            _ if bench.takes_a_while() => vec![1, tile + 1],
            Tier::Quick => vec![1, 3, tile - 1, tile, 2 * tile + 1],
            Tier::Exhaustive => {
                let near = [tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile + 1];
                [0, 1, 2, 3].into_iter().chain(near).collect()
            }
        };
        Vec::from_iter(BTreeSet::from_iter(extents))
    };
    let tile = bench.tile();
    let [of_m, of_n, of_k] = [tile.m, tile.n, tile.k].map(around);
    let places = (0..of_m.len()).flat_map(|m| {
        let pairs = (0..of_n.len()).flat_map(|n| (0..of_k.len()).map(move |k| (n, k)));
        pairs.map(move |(n, k)| [m, n, k])
    });
    // A step of one more than a dimension: each extent is combined with each of the next.
    let places = places.step_by(bench.tier.step(of_k.len() + 1));
    // Any two places are part of a sum that is a multiple of 4.
    let pairs = match (bench.tier, bench.device.one_gpu()) {
        (Tier::Exhaustive, None) => of_k.len().min(4),
        _ => 1,
    };
    for [m, n, k] in places.filter(|place| place.iter().sum::<usize>() % pairs == 0) {
        let (m, n, k) = (of_m[m], of_n[n], of_k[k]);
        // Sums of thousands of terms are slow: only at the edges of tiles of C.
        if k > 1000 && ![1, tile.m + 1].contains(&m) && ![1, tile.n + 1].contains(&n) {
            continue;
        }
        bench.exact(&integers::<T>(shape([m, n, k]), [1, 0])?)?;
    }
    Ok(())
}

/// Batches of one, three and seven products, at an edge of their tiles and beyond, transposed or
/// not and with gaps, on all data.
fn multiplies_each_product_of_a_batch<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.short_tile();
    let shapes = [
        shape([tile.m + 1, tile.n + 3, tile.k + 2]),
        shape([3, 5, 7]),
        shape([tile.m, tile.n, 2 * tile.k]),
    ];
    let transposes = match bench.rung {
        Rung::Cpu(_) => vec![[Transpose::No; 2]],
        _ => Transpose::ALL
            .map(|a| Transpose::ALL.map(|b| [a, b]))
            .concat(),
    };
    let cases = shapes.iter().flat_map(|shape| {
        let batches = if bench.takes_a_while() {
            &[2][..]
        } else {
            &[1, 3, 7]
        };
        batches.iter().map(move |batch| (*shape, *batch))
    });
    // Each shape in a batch of another size.
    let step = match bench.takes_a_while() {
        true => 1,
        false => bench.tier.step(4),
    };
    for (index, (shape, batch)) in cases.enumerate().step_by(step) {
        // Shifted, so that any step reaches all transpositions, paddings and scalars.
        let index = index + index / 4;
        let transposes = transposes[(index + 3) % transposes.len()];
        let storage = Storage {
            transposes,
            batch,
            ..Storage::padded([index % 3; 3], [0; 3])
        };
        let scalars = [1 + index as i32 % 2, index as i32 % 3 - 1]
            .map(T::from_integer)
            .into();
        let model = bench.rung.error_model(&bench.team);
        let (tile, coverage) = (bench.rung.tile(), Coverage::of(shape, 1));
        for data in [Data::SmallIntegers { largest: 4 }, Data::Normal] {
            let problem = Problem::random_as(T::TYPE, shape, storage, data, 5, scalars)?;
            let problem = bench.as_read(&problem);
            let c = bench.run(&problem)?;
            verify::each_product(&problem, &c, |_, problem, c| match data {
                Data::SmallIntegers { .. } => verify::exact(problem, c, tile, coverage),
                _ => verify::general(problem, c, tile, data, coverage, model),
            })
            .map_err(|failure| format!("{batch} x {shape}, {transposes:?}, {data:?}: {failure}"))?;
        }
    }
    Ok(())
}

/// Persistent CTAs take the tiles of all products: at the edges of tiles, with C written by the
/// copy engine, and with C read by threads.
fn multiplies_a_batch_in_one_launch<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let variant = bench.rung.choice().ok_or("a CPU rung")?.variant;
    let Shape { m, n, k } = bench.tile();
    let shape = shape([m + 16, n + 16, k + 16]);
    // In the kernel's layouts of A and B, so that no copies are needed.
    let is_transposed = [variant.a.major == Major::Mn, variant.b.major == Major::K];
    let transposes = is_transposed.map(|is| Transpose::ALL[usize::from(is)]);
    // Twelve tiles for five CTAs: some compute the end of a product and the beginning of the next.
    let choice = Choice {
        variant,
        decomposition: Some(Decomposition::rounds(12, 5)),
    };
    for (beta, padding) in [(0, 0), (1, 16)] {
        let storage = Storage {
            transposes,
            batch: 3,
            ..Storage::padded([padding; 3], [0; 3])
        };
        let [alpha, beta] = [2, beta].map(T::from_integer);
        let data = Data::SmallIntegers { largest: 4 };
        let problem = Problem::random(shape, storage, data, 5, alpha, beta)?;
        let problem = bench.as_read(&problem);
        let call = storage.call(shape, variant.types.a);
        let plan = choice.plan(call, &bench.device.facts())?;
        assert_eq!((plan.repeats(), plan.launches().len()), (1, 1));
        let rung = Rung::Gpu(choice);
        let c = rung.run(bench.device, &bench.team, &problem, &|| ())?.c;
        verify::each_product(&problem, &c, |_, problem, c| {
            verify::exact(problem, c, rung.tile(), Coverage::of(shape, 1))
        })
        .map_err(|failure| format!("beta {beta}: {failure}"))?;
    }
    Ok(())
}

/// Primes, a single row, a single column, sums far longer than the sides of C.
fn passes_on_awkward_shapes<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let quick = [(17, 33, 129), (1, 257, 63), (263, 1, 67)];
    let others = [(1, 1, 1), (131, 137, 139), (3, 5, 5_003)];
    let others = match bench.tier {
        Tier::Quick => &[][..],
        Tier::Exhaustive => &others,
    };
    for (seed, &(m, n, k)) in (11..).zip(quick.iter().chain(others)) {
        bench.all_gates::<T>(Shape { m, n, k }, seed)?;
    }
    Ok(())
}

/// Rows and columns scaled by powers of two, and rows of a wide range.
fn passes_on_data_of_all_sizes<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let shape = Shape::new(37, 41, 203);
    for data in [Data::Graded, Data::Wide] {
        for beta in [0, 1] {
            let scalars = [1, beta].map(T::from_integer).into();
            let (inputs, compact) = (bench.inputs::<T>(), Storage::COMPACT);
            let problem = Problem::random_as(inputs, shape, compact, data, 7, scalars)?;
            bench.checked(&problem, data)?;
        }
    }
    Ok(())
}

/// Of zeros, too: then what must not be read is NaN, and none may reach C.
fn follows_alpha_and_beta<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.short_tile();
    let exact_tiles = [tile.m, 2 * tile.n, 2 * tile.k];
    let ragged = [tile.m + 1, tile.n + 2, tile.k + 3];
    let scalars = [-2, 0, 1].map(|alpha| [-2, 0, 1].map(|beta| [alpha, beta]));
    let cases = [exact_tiles, ragged].map(shape).into_iter();
    let cases = cases.flat_map(|shape| scalars.concat().into_iter().map(move |both| (shape, both)));
    // Each alpha and each beta with both shapes.
    for (shape, scalars) in cases.step_by(bench.tier.step(4)) {
        let problem = integers::<T>(shape, scalars)?;
        // `integers` fills operands that alpha and beta exclude with poison: make sure of it.
        let is_poisoned = |matrix: &Matrix<T>| matrix.row(0)[0].bits() == T::POISON.bits();
        assert_eq!(is_poisoned(&problem.a), scalars[0] == 0);
        assert_eq!(is_poisoned(&problem.c), scalars[1] == 0);
        bench.exact(&problem)?;
        let (compact, [alpha, beta]) = (Storage::COMPACT, scalars.map(T::from_integer));
        let problem = Problem::random(shape, compact, Data::Uniform, 3, alpha, beta)?;
        bench.checked(&problem, Data::Uniform)?;
    }
    Ok(())
}

fn takes_any_leading_dimension_and_offset<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let tile = bench.short_tile();
    // Exact tiles: an aligned layout takes the fast path, and others must not.
    let shape = shape([2 * tile.m, tile.n, 2 * tile.k]);
    #[rustfmt::skip]
    let paddings = [[0; 3], [1; 3], [4; 3], [0, 0, 1], [0, 1, 0], [1, 0, 0], [3, 1000, 6]];
    #[rustfmt::skip]
    let offsets = [[0; 3], [1; 3], [2; 3], [3; 3], [0, 0, 1], [0, 2, 0], [3, 0, 0], [4, 8, 12]];
    let (paddings, offsets) = match bench.takes_a_while() {
        true => (&paddings[..3], &offsets[..2]),
        false => (&paddings[..], &offsets[..]),
    };
    let layouts = paddings
        .iter()
        .flat_map(|padding| offsets.iter().map(move |offset| (*padding, *offset)));
    // Poison that beta multiplies may stay the same poison; without beta it cannot.
    let cases = layouts.flat_map(|layout| [-1, 0].map(|beta| (layout, beta)));
    // Each padding, each offset, and both betas.
    for ((padding, offset), beta) in cases.step_by(bench.tier.step(7)) {
        let storage = Storage::padded(padding, offset);
        let problem = integers_in::<T>(storage, shape, [2, beta])?;
        bench.exact(&problem).map_err(|failed| {
            format!("padding {padding:?}, offset {offset:?}, beta {beta}: {failed:?}")
        })?;
    }
    Ok(())
}

/// Each row of C begins at a multiple of 16 bytes, a float4, and ends inside one. Neither a kernel
/// nor, for split tiles, the fix-up may write the whole float4.
fn writes_nothing_beside_c_where_rows_end_inside_16_bytes<T: Number>(
    bench: &Bench,
) -> Result<(), Failed> {
    let tile = bench.short_tile();
    for beyond in (1..=4).step_by(bench.tier.step(2)) {
        let shape = shape([tile.m + beyond, tile.n + beyond, 2 * tile.k + beyond]);
        let piece = 16 / size_of::<T>();
        let to_piece = |columns: usize| columns.next_multiple_of(piece) - columns;
        let padding = [shape.k, shape.n, shape.n].map(to_piece);
        let storage = Storage::padded(padding, [0; 3]);
        for beta in [-1, 0] {
            bench.exact(&integers_in::<T>(storage, shape, [2, beta])?)?;
        }
    }
    Ok(())
}

/// Counters of columns, rows and terms need more than 16 bits.
fn takes_sides_that_16_bits_cannot_count<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let (tile, long) = (bench.tile(), 1 << 16);
    for extents in [
        [3, long + tile.n + 1, 2],
        // If a tile is split, its last segment also begins beyond 16 bits.
        [2, 3, long + long / 4 + tile.k + 1],
        [long + tile.m + 1, 3, 2],
    ] {
        bench.exact(&integers::<T>(shape(extents), [1, 0])?)?;
    }
    Ok(())
}

fn repeats_bit_for_bit<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let mut shape = shape([200, 150, 100]);
    if bench.rung.choice().is_some() && bench.device.is_simulator() {
        // Which is slow: a few tiles are enough.
        let tile = bench.tile();
        (shape.m, shape.n) = (shape.m.min(2 * tile.m + 1), shape.n.min(2 * tile.n + 1));
    }
    let (compact, one) = (Storage::COMPACT, T::from_integer(1));
    let problem = Problem::<T>::random(shape, compact, Data::Normal, 23, one, one)?;
    let first = bits(bench.run(&problem)?.elements());
    for _ in (0..3).step_by(bench.tier.step(3)) {
        let again = bits(bench.run(&problem)?.elements());
        assert!(again == first, "two runs on the same input differ");
    }
    Ok(())
}

/// A product or a sum beyond the largest number is infinite, only in its row, and stays so
/// whatever is added to it.
fn overflows_to_infinity<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let Arithmetic::Float { largest, .. } = bench.arithmetic_of_inputs::<T>() else {
        return Err("integers wrap instead".into());
    };
    // The largest f16 are far from the largest f32.
    let overflows = T::nearest(2.0 * largest).to_f64() == f64::INFINITY;
    let (tile, mut shape) = (bench.tile(), bench.beyond_tile());
    shape.k = shape.k.max(5); // some terms come after those that overflow
    let matrix = |rows, columns, value: i32| {
        Matrix::from_rows(rows, columns, Placement::compact(columns), |_, row| {
            row.fill(T::from_integer(value))
        })
    };
    let largest = T::from_scalar(-largest).ok_or("not a number of this type")?;
    // The last product, or the sum of the first two.
    let cases = [(2, shape.k - 1..shape.k), (1, 0..2)].into_iter();
    let cases = cases.flat_map(|case| [0, tile.m - 1, tile.m].map(|row| (case.clone(), row)));
    // Both kinds, in each row.
    for ((in_b, places), row) in cases.step_by(bench.tier.step(2)) {
        let mut a = matrix(shape.m, shape.k, 1)?;
        a.row_mut(row)[places].fill(largest);
        let (b, c) = (
            matrix(shape.k, shape.n, in_b)?,
            matrix(shape.m, shape.n, 0)?,
        );
        let problem = Problem::new(T::from_integer(1), T::default(), a, b, c)?;
        let c = bench.checked(&problem, Data::Uniform)?;
        let first = c.row(row)[0].to_f64();
        let is_infinite = first == f64::NEG_INFINITY;
        assert_eq!(is_infinite, overflows, "{first}, row {row}, times {in_b}");
    }
    Ok(())
}

/// NaN, infinities, 0 x Inf, subnormals, signed zeros and large numbers at the corners of tiles,
/// in A and in B; extremes of the integers.
fn carries_special_values<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let (tile, shape) = (bench.tile(), bench.beyond_tile());
    let values = match bench.arithmetic_of_inputs::<T>() {
        Arithmetic::Float {
            smallest,
            largest,
            unit_roundoff,
            ..
        } => {
            // The power of two below the square root of the largest number, with room for a sum of
            // a few products.
            let large = 2f64.powi((largest.log2() / 2.0) as i32 - 4);
            vec![
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                0.0,
                -0.0,
                71_361.0 * smallest,              // subnormal
                smallest / (2.0 * unit_roundoff), // the smallest normal number
                large,
                -large,
            ]
        }
        Arithmetic::WrappingInteger { .. } => vec![i32::MAX as f64, i32::MIN as f64, -1.0],
    };
    // The corners of the first tile and of the last.
    let corners = |tile_rows: usize, tile_columns: usize| {
        let columns = [0, tile_columns - 1, tile_columns];
        let rows = [0, tile_rows - 1, tile_rows].into_iter();
        rows.flat_map(move |row| columns.map(|column| (row, column)))
    };
    let data = Data::SmallIntegers { largest: 2 };
    let (compact, one) = (Storage::COMPACT, T::from_integer(1));
    let element = |value| T::from_scalar(value).ok_or("not a value of this type");
    let all = values
        .iter()
        .flat_map(|&in_a| values.iter().map(move |&in_b| (in_a, in_b)));
    // Each value in A with each value in B, such as infinities in A with zeros in B.
    let step = bench.tier.step(values.len() + 1);
    for (in_a, in_b) in all.skip(2 % step).step_by(step) {
        let mut problem = Problem::<T>::random(shape, compact, data, 29, one, T::default())?;
        // One corner of A at a time would take nine times as long; each meets every corner
        // of B.
        for (row, column) in corners(tile.m, tile.k).step_by(2) {
            problem.a.row_mut(row)[column] = element(in_a)?;
        }
        for (row, column) in corners(tile.k, tile.n).skip(1).step_by(2) {
            problem.b.row_mut(row)[column] = element(in_b)?;
        }
        bench
            .checked(&problem, data)
            .map_err(|failed| format!("{in_a} in A, {in_b} in B: {failed:?}"))?;
    }
    Ok(())
}

fn k_zero_scales_c<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let shape = shape([33, 20, 0]);
    for beta in [0, 1, -2] {
        let storage = Storage::padded([2; 3], [1; 3]);
        bench.exact(&integers_in::<T>(storage, shape, [1, beta])?)?;
    }
    Ok(())
}

/// The largest take the host seconds, for random numbers and for the check.
fn passes_at_large_sizes<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let all = [[1000; 3], [1025, 1023, 1024], [4095, 4097, 4099], [8192; 3]];
    let tried = match bench.tier {
        Tier::Quick => &all[1..2],
        Tier::Exhaustive => &all[..],
    };
    for extents in tried {
        bench.all_gates::<T>(shape(*extents), 37)?;
    }
    Ok(())
}

/// A grid has at most 65535 CTAs along y.
fn takes_more_rows_than_a_grid_has_blocks<T: Number>(bench: &Bench) -> Result<(), Failed> {
    let m = 65_535 * bench.tile().m + 3;
    bench.all_gates::<T>(Shape { m, n: 2, k: 3 }, 41)
}

/// Matrices of exactly 2^31 elements, of 512 more, and of 2^32 and 512: A, then B, then C.
fn indexes_beyond_two_to_the_32<T: Number>(bench: &Bench) -> Result<(), Failed> {
    for long in [1 << 22, (1 << 22) + 1, (1 << 23) + 1] {
        for extents in [[long, 4, 512], [4, long, 512], [long, 512, 4]] {
            // Samples are enough: even in 16 bits, no sum of -1, 0 and 1 is rounded.
            let largest = if T::rounds_sums() { 1 } else { 4 };
            let (shape, data) = (shape(extents), Data::SmallIntegers { largest });
            let (one, zero) = (T::from_integer(1), T::default());
            let problem = Problem::random(shape, Storage::COMPACT, data, 1, one, zero)?;
            let c = bench.run(&problem)?;
            verify::exact(&problem, &c, bench.rung.tile(), Coverage::of(shape, 1))
                .map_err(|failure| format!("{shape}: {failure}"))?;
        }
    }
    Ok(())
}
