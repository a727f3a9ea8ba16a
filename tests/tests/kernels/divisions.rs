//! C is exact on integers for any division of a stream-K kernel's tiles among its CTAs: tiles that
//! several CTAs begin, continue and end, CTAs that end one tile and begin the next, and
//! data-parallel tiles before these.

use gpu_gemm::gpu_kernels::spec::Variant;
use gpu_gemm::plan::Decomposition;
use gpu_gemm::{Bf16, Choice, DataType, Device, ElementType, F16, KERNELS, Shape};
use libtest_mimic::Trial;
use tests::Tier;
use tests::devices::Backend;
use verification::data::{Number, Problem, Storage};
use verification::verify::{self, Coverage, small_integers};

pub fn trials() -> Vec<Trial> {
    type Test = fn(Tier);
    let tests: [(&str, Test); 5] = [
        ("f32", |tier| all_are_exact::<f32>(ElementType::F32, tier)),
        ("f64", |tier| all_are_exact::<f64>(ElementType::F64, tier)),
        ("bf16", |tier| {
            all_are_exact::<Bf16>(ElementType::Bf16, tier)
        }),
        ("f16", |tier| all_are_exact::<F16>(ElementType::F16, tier)),
        ("bf16_with_a_c_of_f32", |tier| {
            all_are_exact::<f32>(ElementType::Bf16, tier)
        }),
    ];
    let tiers = [Tier::Quick, Tier::Exhaustive].into_iter();
    let trial = |tier, types, test: Test| {
        let name = format!("divisions::of_{types}");
        tests::trial(tier, Backend::Simulator, name, move || {
            test(tier);
            Ok(())
        })
    };
    tiers
        .flat_map(|tier| tests.map(|(types, test)| trial(tier, types, test)))
        .flatten()
        .collect()
}

/// Tiles along m, n and k, and their division.
const DIVISIONS: [((usize, usize, usize), Decomposition); 4] = [
    // | 0 1 | 2 3 | 4 5 6 | 7 8 | 9 10 11 |: the fourth CTA ends a tile and begins the next.
    ((1, 3, 4), Decomposition::stream_k(5)),
    // | 0 1 2 3 4 5 | 6 7 8 9 10 11 |: the first CTA has a whole tile before its part of one.
    ((1, 3, 4), Decomposition::stream_k(2)),
    // A tile for each CTA, and half of the third tile.
    ((1, 3, 4), in_waves(2, 1)),
    // In the third wave only one CTA has a tile.
    ((3, 3, 1), in_waves(4, 3)),
];

const fn in_waves(ctas: u32, data_parallel_waves: u32) -> Decomposition {
    Decomposition {
        ctas,
        data_parallel_waves,
    }
}

fn is_exact<C: Number>(variant: &'static Variant) {
    let device = Device::simulator();
    let (tile, inputs) = (variant.tile, variant.types.a);
    let [m, n, k] = [tile.m, tile.n, tile.k].map(|size| size as usize);
    for ((rows, columns, k_iterations), division) in DIVISIONS {
        // The last tiles are not full, except those of one row.
        let shape = Shape::new(rows * m - m / 4, columns * n - 5, k_iterations * k - 1);
        // A kernel for few rows divides few columns alike.
        let mut shapes = vec![shape];
        if variant.gemv_like {
            shapes.push(Shape::new(shape.n, shape.m, shape.k));
        }
        for shape in shapes {
            let data = small_integers::<C>(shape.k).expect("sums fit");
            let (scalars, compact) = ([2, -1].map(C::from_integer).into(), Storage::COMPACT);
            let problem = Problem::<C>::random_as(inputs, shape, compact, data, 7, scalars);
            let problem = problem.unwrap();
            let choice = Choice {
                variant,
                decomposition: Some(division),
            };
            let name = format!("{}, {shape}", choice.description());
            let run = verification::run::run(&device, choice, &problem, &|| ());
            let c = run.unwrap_or_else(|error| panic!("{name}: {error}")).c;
            let exact = verify::exact(&problem, &c, tile, Coverage::Full);
            exact.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }
}

/// Every variant of each stream-K kernel for these types, or those that represent them.
fn all_are_exact<C: Number>(inputs: ElementType, tier: Tier) {
    let types = DataType { inputs, c: C::TYPE };
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let divided = variants.filter(|variant| {
        let is_tried = tier == Tier::Exhaustive || tests::is_representative(variant);
        variant.grid.is_stream_k() && variant.types.data_type() == types && is_tried
    });
    let number = divided.map(is_exact::<C>).count();
    assert!(number > 0, "no stream-K kernel multiplies {types}");
}
