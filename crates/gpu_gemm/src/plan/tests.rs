//! Tests of plans, with the kernels of the table.

use gpu_kernels::spec::{ElementType, Variant};

use super::{Decomposition, Plan, PlanError};
use crate::call::{Batch, Call, Shape, Transpose};
use crate::launch::{Argument, Bindings, Launch, Map, Memory, Parameters, Scalar, Waits};
use crate::tests::{call, lines, variant};

const SHAPE: Shape = Shape::new(1024, 2048, 512);

fn compact(shape: Shape, a: Transpose, b: Transpose) -> Call {
    Call::compact(shape, a, b, ElementType::F32)
}

fn planned(variant: &'static Variant, call: Call) -> Plan {
    Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap()
}

/// The copies of the first panel and of further ones, the launches in order with their grids, and
/// how many bytes of workspace they need.
fn described(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    for panel in plan.panels() {
        lines.extend(panel.copies().map(|copy| {
            let way = ["copied", "transposed"][usize::from(copy.transposed)];
            let ((rows, columns), (to_rows, to_columns)) = (copy.source, copy.target);
            let (factor, at) = (copy.factor, copy.offset_bytes);
            format!("{factor:?} {rows}x{columns} {way} to {to_rows}x{to_columns} at {at}")
        }));
    }
    lines.extend(plan.launches().iter().map(|launch| {
        let early = match launch.waits {
            Waits::InTheKernel => " early",
            Waits::ForTheStream => "",
        };
        let Launch {
            kernel,
            grid: (x, y),
            ..
        } = launch;
        format!("{}{early} {x}x{y}", kernel.name)
    }));
    lines.push(format!("{} bytes", plan.workspace_bytes()));
    lines.join("; ")
}

/// A kernel, m x n x k, whether A and B are transposed, and the CTAs if tiles are split; then its
/// plan, as [`described`].
const PLANS: &str = "
# What is stored as the kernel requires is read in place.
async-pipeline 1024x2048x512 tn 0: async_pipeline 128x1; 0 bytes
async-pipeline-edges 1024x2048x512 tn 0: async_pipeline_edges 128x1; 0 bytes
async-pipeline-32x128-nt 1024x2048x512 nt 0: async_pipeline_32x128_nt 512x1; 0 bytes
double-buffer-k8 1024x2048x512 nn 0: double_buffer_k8 16x8; 0 bytes
# Anything else is transposed, one copy after the other. The kernel begins early, and waits for the
# copies itself.
async-pipeline 1024x2048x512 nt 0: A 1024x512 transposed to 512x1024 at 0;
  B 2048x512 transposed to 512x2048 at 2097152; transpose 16x8; transpose 32x8;
  async_pipeline early 128x1; 6291456 bytes
# Rows that are not aligned are copied to aligned ones; for exact tiles, so is a B whose K is no
# multiple of 8.
async-pipeline-edges 1001x2048x500 tn 0: A 500x1001 copied to 500x1004 at 0; pad 16x8;
  async_pipeline_edges early 128x1; 2008064 bytes
async-pipeline 1001x2048x500 tn 0: A 500x1001 copied to 504x1024 at 0;
  B 500x2048 copied to 504x2048 at 2064384; pad 16x8; pad 32x8; async_pipeline early 128x1;
  6193152 bytes
# Nothing is copied for sums without products or a C without elements.
async-pipeline 1024x2048x0 nt 0: async_pipeline 128x1; 0 bytes
async-pipeline 0x2048x512 nt 0: 0 bytes
async-pipeline 1024x0x512 nt 0: 0 bytes
# Split tiles have two workspace tiles a CTA, behind the copies.
async-pipeline 1024x2048x512 nn 100: A 1024x512 transposed to 512x1024 at 0; transpose 16x8;
  async_pipeline early 100x1; fix_up early 8x128; 15204352 bytes
# An N remainder uses the copy of A and the same workspace; B has a copy of other columns, in the
# place of the previous copy.
wide-thread-tile 1024x2048x512 nt 100: A 1024x512 transposed to 512x1024 at 0;
  B 1920x512 transposed to 512x1920 at 2097152; B 128x512 transposed to 512x128 at 2097152;
  transpose 16x8; transpose 30x8; wide_thread_tile early 100x1; fix_up early 12x80; transpose 2x8;
  async_pipeline early 100x1; fix_up early 64x8; 25690112 bytes
";

#[test]
fn a_plan_has_the_copies_and_the_launches_of_the_table() {
    for line in lines(&PLANS.replace("\n  ", " ")) {
        let (question, expected) = line.split_once(": ").unwrap();
        let fields: Vec<&str> = question.split([' ', 'x']).collect();
        let [name @ .., m, n, k, layout, ctas] = &fields[..] else {
            panic!("{line}");
        };
        let decomposition = match ctas.parse().unwrap() {
            0 => Decomposition::DATA_PARALLEL,
            ctas => Decomposition::stream_k(ctas),
        };
        let call = call([m, n, k], layout, ElementType::F32);
        let plan = Plan::new(variant(&name.join("x")), call, decomposition).unwrap();
        assert_eq!(described(&plan), expected, "{question}");
    }
    let split = Decomposition::stream_k(100);
    let call = compact(SHAPE, NO[0], NO[1]);
    let plan = Plan::new(variant("async-pipeline"), call, split).unwrap();
    // Both expect the partial sums after the copy.
    let partials = Argument::Pointer(Memory::Workspace.start().after(4 * 512 * 1024));
    for launch in &plan.launches()[1..] {
        assert!(launch.arguments.contains(&partials));
    }
}

#[test]
fn an_n_remainder_goes_to_another_kernel_in_exact_tiles_of_that_if_possible() {
    let wide = variant("wide-thread-tile");
    assert_eq!((wide.tile.m, wide.tile.n), (128, 192));
    for (n, remainder) in [
        (384, 0),
        (100, 0),
        (193, 1),
        (320, 128),
        (2048, 128),
        (4096, 256),
        (8192, 128),
        (16384, 256),
        // With so few columns, none remain for the wide tiles if the N remainder is to be exact
        // tiles.
        (256, 64),
    ] {
        let plan = planned(
            wide,
            compact(Shape { n, ..SHAPE }, Transpose::No, Transpose::No),
        );
        let columns: Vec<usize> = plan
            .panels()
            .iter()
            .map(|panel| panel.call().shape.n)
            .collect();
        let expected = match remainder {
            0 => vec![n],
            remainder => vec![n - remainder, remainder],
        };
        assert_eq!(columns, expected, "{n}");
    }
}

#[test]
fn copies_larger_than_any_memory_have_no_plan() {
    let call = compact(Shape { m: 1, n: 1, k: 512 }, Transpose::No, Transpose::No);
    let shape = Shape::new(usize::MAX / 2, 1, 512);
    let call = Call { shape, ..call };
    let plan = Plan::new(
        variant("async-pipeline"),
        call,
        Decomposition::DATA_PARALLEL,
    );
    assert!(matches!(plan, Err(PlanError::CopiesTooLarge { .. })));
}

/// A compact batch of this number of products by a variant.
fn batched(name: &str, shape: Shape, [a, b]: [Transpose; 2], count: usize) -> Plan {
    let variant = variant(name);
    let element = variant.types.a;
    let call = Call::compact(shape, a, b, element).repeated(count, element);
    Plan::new(variant, call, Decomposition::even(1000, 4)).unwrap()
}

const NO: [Transpose; 2] = [Transpose::No; 2];

#[test]
fn a_batch_is_one_launch_with_its_strides_and_a_cta_along_z_for_each_product() {
    let shape = Shape::new(130, 60, 36);
    for (name, grid) in [
        ("naive", (1, 33)),
        ("double-buffer-k8", (1, 2)),
        ("async-pipeline-64x64-nn", (3, 1)),
        ("fp64-tensor", (1, 2)),
    ] {
        let plan = batched(name, shape, NO, 7);
        let [launch] = plan.launches() else {
            panic!("{name}: {:?}", plan.launches());
        };
        assert_eq!(
            (launch.kernel.name, launch.grid, launch.products),
            (variant(name).entry.name, grid, 7)
        );
        assert_eq!((plan.repeats(), plan.workspace_bytes()), (1, 0));
        let [a, b, c] = [130 * 36, 36 * 60, 130 * 60];
        assert_eq!(
            launch.arguments[4],
            Argument::Slice(Memory::A.start(), 7 * a)
        );
        assert_eq!(
            launch.arguments[6],
            Argument::Slice(Memory::B.start(), 7 * b)
        );
        assert_eq!(launch.arguments[11..14], [a, b, c].map(Argument::Count));
        assert_eq!(launch.ctas(), 7 * u64::from(grid.0 * grid.1));
        // A single product is what it always was.
        let one = batched(name, shape, NO, 1);
        assert_eq!((one.launches()[0].products, one.repeats()), (1, 1));
    }
}

/// The maps of a mapped launch.
fn maps(launch: &Launch) -> [Map; 3] {
    [0, 1, 2].map(|index| match launch.arguments[index] {
        Argument::Map(map) => map,
        other => panic!("{other:?}"),
    })
}

#[test]
fn persistent_ctas_divide_the_tiles_of_all_products_of_a_batch() {
    let shape = Shape::new(256, 256, 128);
    let (tiles, sms) = (4 * 512, 132);
    for (name, waves) in [
        ("warp-specialized-tf32", 0),
        ("persistent-128x128", 2048_usize.div_ceil(132)),
    ] {
        let variant = variant(name);
        let element = variant.types.a;
        let call = Call::compact(shape, NO[0], NO[1], element).repeated(512, element);
        let rounds = Decomposition::rounds(tiles, sms);
        let plan = Plan::new(variant, call, rounds).unwrap();
        let [launch] = plan.launches() else {
            panic!("{name}: {:?}", plan.launches());
        };
        assert_eq!((plan.repeats(), plan.workspace_bytes()), (1, 0), "{name}");
        assert_eq!((launch.grid, launch.products), ((sms, 1), 1));
        assert_eq!(
            maps(launch).map(|map| (map.layout.count, map.layout.stride)),
            [256 * 128, 128 * 256, 256 * 256].map(|stride| (512, stride))
        );
        let [strides @ .., _partials, _, of_waves, count, _, _] = &launch.arguments[14..] else {
            unreachable!()
        };
        assert_eq!(strides, call.batch.strides.map(Argument::Count));
        assert_eq!([*of_waves, *count], [waves, 512].map(Argument::Count));
    }
}

#[test]
fn products_whose_tiles_are_split_follow_one_another() {
    let variant = variant("persistent-128x128");
    let shape = Shape::new(256, 256, 8192);
    let call = Call::compact(shape, NO[0], NO[1], ElementType::Bf16);
    let call = call.repeated(3, ElementType::Bf16);
    let plan = Plan::new(variant, call, Decomposition::persistent(4, 132)).unwrap();
    assert_eq!((plan.repeats(), plan.launches().len()), (3, 2));
    assert_eq!(
        maps(&plan.launches()[0]).map(|map| map.layout.count),
        [1, 1, 1]
    );
    let together = Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap();
    assert_eq!((together.repeats(), together.launches().len()), (1, 1));
    assert_eq!(together.launches()[0].grid, (12, 1));
}

#[test]
fn what_needs_copies_or_two_kernels_is_launched_for_each_product() {
    let shape = Shape::new(130, 261, 37);
    for (name, transposes) in [
        ("async-pipeline", NO),
        ("double-buffer-k8", [Transpose::Yes, Transpose::No]),
        // It leaves an N remainder to another kernel.
        ("wide-thread-tile", NO),
        // Rows of B begin at no multiples of 16 bytes.
        ("async-pipeline-64x64-nn", NO),
    ] {
        let (plan, one) = (
            batched(name, shape, transposes, 7),
            batched(name, shape, transposes, 1),
        );
        assert_eq!((plan.repeats(), one.repeats()), (7, 1), "{name}");
        assert_eq!(plan.launches().len(), one.launches().len());
        assert_eq!(plan.workspace_bytes(), one.workspace_bytes());
        assert!(plan.launches().iter().all(|launch| launch.products == 1));
        let at = |address: usize| std::ptr::without_provenance_mut(address);
        let first = Bindings {
            alpha: Scalar::F32(1.0),
            beta: Scalar::F32(0.0),
            a: at(0x10_0000),
            b: at(0x20_0000),
            c: at(0x30_0000),
            workspace: at(0x40_0000),
            epilogue: Parameters::NONE,
            first: [0; 3],
        };
        let third = plan.bindings_of(2, &first);
        let moved = [
            third.a as usize - first.a as usize,
            third.b as usize - first.b as usize,
            third.c as usize - first.c as usize,
        ];
        assert_eq!(
            moved,
            [130 * 37, 37 * 261, 130 * 261].map(|stride| 2 * 4 * stride)
        );
        assert_eq!(third.workspace, first.workspace);
    }
}

#[test]
fn rows_of_a_batch_are_aligned_if_those_of_every_product_are() {
    let call = Call::compact(
        Shape::new(3, 4, 8),
        Transpose::No,
        Transpose::No,
        ElementType::F32,
    );
    let aligned = |count, strides| {
        let call = call.batched(Batch { count, strides }, ElementType::F32);
        [call.a.aligned, call.b.aligned]
    };
    assert_eq!(aligned(2, [24, 32, 12]), [true, true]);
    assert_eq!(aligned(2, [26, 32, 12]), [false, true]);
    assert_eq!(aligned(2, [24, 33, 12]), [true, false]);
    assert_eq!(aligned(2, [0, 0, 12]), [true, true]);
    // Of a single product, strides say nothing.
    assert_eq!(aligned(1, [1, 1, 1]), [true, true]);
}

/// So that a stride that is no multiple of 16 bytes does not cost a single product its fast path.
#[test]
fn a_kernel_of_one_product_gets_no_strides() {
    let no = Transpose::No;
    let call = Call::compact(Shape::cube(64), no, no, ElementType::F32);
    let batch = Batch {
        count: 1,
        strides: [5, 6, 7],
    };
    let call = call.batched(batch, ElementType::F32);
    for (name, first) in [("double-buffer-k8", 11), ("warp-specialized-tf32", 14)] {
        let plan = planned(variant(name), call);
        let strides = &plan.launches()[0].arguments[first..first + 3];
        assert_eq!(strides, [Argument::Count(0); 3], "{name}");
    }
}

#[test]
fn products_beyond_the_grid_go_to_further_launches() {
    let (count, shape) = (2 * 65_535 + 3, Shape::new(2, 3, 4));
    let plan = batched("tiled-32", shape, NO, count);
    let parts: Vec<(u32, Argument, Argument)> = plan
        .launches()
        .iter()
        .map(|launch| (launch.products, launch.arguments[4], launch.arguments[9]))
        .collect();
    let part = |first: usize, products: usize| {
        let a = Memory::A.start().after(4 * 8 * first);
        let c = Memory::C.start().after(4 * 6 * first);
        (
            products as u32,
            Argument::Slice(a, 8 * products),
            Argument::Pointer(c),
        )
    };
    assert_eq!(
        parts,
        [part(0, 65_535), part(65_535, 65_535), part(2 * 65_535, 3)]
    );
    assert_eq!(plan.repeats(), 1);
}

#[test]
fn an_operand_that_all_products_share_is_no_longer_than_one() {
    let variant = variant("double-buffer-k8");
    let (shape, no) = (Shape::new(8, 8, 8), Transpose::No);
    let strides = [0, 100, 64];
    let call = Call::compact(shape, no, no, ElementType::F32);
    let call = call.batched(Batch { count: 5, strides }, ElementType::F32);
    let plan = Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap();
    let arguments = &plan.launches()[0].arguments;
    assert_eq!(arguments[4], Argument::Slice(Memory::A.start(), 64));
    assert_eq!(
        arguments[6],
        Argument::Slice(Memory::B.start(), 4 * 100 + 64)
    );
    // What is not read has no elements.
    let call = Call {
        shape: Shape { k: 0, ..shape },
        ..call
    };
    let plan = Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap();
    assert_eq!(
        plan.launches()[0].arguments[4],
        Argument::Slice(Memory::A.start(), 0)
    );
}
