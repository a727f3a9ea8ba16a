//! Tests of plans, with the kernels of the table.

use gpu_kernels::spec::{ElementType, Grid, OperandLayout, Variant};
use gpu_kernels::variants;

use super::{Decomposition, OperandCopy, Panel, Plan, PlanError};
use crate::call::{Batch, Call, Factor, Operand, Shape, Transpose};
use crate::launch::{Argument, Bindings, Launch, Map, Memory, Parameters, Scalar, Waits};
use crate::tests::variant;

/// The first stream-K variant with this property.
fn stream_k(is: impl Fn(&Variant) -> bool) -> &'static Variant {
    variants()
        .find(|variant| variant.grid == Grid::StreamK && is(variant))
        .unwrap()
}

fn mn_major(exact_tiles: bool) -> &'static Variant {
    stream_k(|variant| {
        let layouts = [variant.a, variant.b];
        variant.exact_tiles == exact_tiles && layouts == [OperandLayout::MN_MAJOR_ALIGNED; 2]
    })
}

const SHAPE: Shape = Shape::new(1024, 2048, 512);

fn compact(shape: Shape, a: Transpose, b: Transpose) -> Call {
    Call::compact(shape, a, b, ElementType::F32)
}

fn planned(variant: &'static Variant, call: Call) -> Plan {
    Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap()
}

fn on_100_ctas(variant: &'static Variant, call: Call) -> Plan {
    Plan::new(variant, call, Decomposition::stream_k(100)).unwrap()
}

fn only(plan: &Plan) -> &Panel {
    let [panel] = plan.panels() else {
        panic!("{} panels", plan.panels().len());
    };
    panel
}

fn names(plan: &Plan) -> Vec<&'static str> {
    let launches = plan.launches().iter();
    launches.map(|launch| launch.kernel.name).collect()
}

#[test]
fn what_lies_as_the_kernel_requires_is_read_in_place() {
    let call = compact(SHAPE, Transpose::Yes, Transpose::No);
    for exact_tiles in [true, false] {
        let plan = planned(mn_major(exact_tiles), call);
        assert_eq!(plan.launches().len(), 1);
        assert_eq!(plan.workspace_bytes(), 0);
        assert_eq!(plan.launches()[0].waits, Waits::ForTheStream);
    }
    let call = compact(SHAPE, Transpose::No, Transpose::Yes);
    let k_major = stream_k(|variant| [variant.a, variant.b] == [OperandLayout::K_MAJOR; 2]);
    assert_eq!(planned(k_major, call).launches().len(), 1);
    let double = &gpu_kernels::double_buffer::KERNEL.variants[0];
    let call = compact(SHAPE, Transpose::No, Transpose::No);
    assert_eq!(planned(double, call).launches().len(), 1);
}

#[test]
fn what_lies_otherwise_is_transposed_one_copy_after_the_other() {
    let call = compact(SHAPE, Transpose::No, Transpose::Yes);
    let plan = planned(mn_major(true), call);
    let copies: Vec<OperandCopy> = only(&plan).copies().collect();
    let of = |copy: &OperandCopy| (copy.transposed, copy.source, copy.target);
    assert_eq!(of(&copies[0]), (true, (1024, 512), (512, 1024)));
    assert_eq!(of(&copies[1]), (true, (2048, 512), (512, 2048)));
    assert_eq!(copies[1].offset_bytes, 4 * 512 * 1024);
    assert_eq!(plan.workspace_bytes(), 4 * 512 * (1024 + 2048));
    let entry = plan.variant().entry.name;
    assert_eq!(names(&plan), ["transpose", "transpose", entry]);
    // The kernel begins early, and waits for the copies itself.
    assert_eq!(plan.launches()[2].waits, Waits::InTheKernel);
}

#[test]
fn misaligned_rows_are_copied_to_aligned_ones() {
    let at = |transpose, leading| Operand::at(0x1000, leading, ElementType::F32, transpose);
    let shape = Shape::new(1001, 2048, 500);
    let call = Call {
        shape,
        a: at(Transpose::Yes, 1001),
        b: at(Transpose::No, 2048),
        ldc: 2048,
        batch: Batch::ONE,
    };
    let predicated = planned(mn_major(false), call);
    let copy = only(&predicated).copy_of(Factor::A).unwrap();
    assert_eq!((copy.transposed, copy.source), (false, (500, 1001)));
    assert_eq!(copy.target, (500, 1004));
    assert_eq!(only(&predicated).copy_of(Factor::B), None);
    // Exact tiles: 500 is not a multiple of 8, so B is copied too.
    let exact = planned(mn_major(true), call);
    let target = |factor| only(&exact).copy_of(factor).unwrap().target;
    assert_eq!(target(Factor::A), (504, 1024));
    assert_eq!(target(Factor::B), (504, 2048));
    assert!(!Operand::at(0x1004, 2048, ElementType::F32, Transpose::No).aligned);
}

#[test]
fn nothing_is_copied_for_sums_without_products_or_a_c_without_elements() {
    for shape in [
        Shape { k: 0, ..SHAPE },
        Shape { m: 0, ..SHAPE },
        Shape { n: 0, ..SHAPE },
    ] {
        let call = compact(shape, Transpose::No, Transpose::Yes);
        let plan = planned(mn_major(true), call);
        assert_eq!(plan.workspace_bytes(), 0);
        assert_eq!(plan.launches().len(), usize::from(shape.k == 0));
    }
}

#[test]
fn split_tiles_have_two_workspace_tiles_a_cta_behind_the_copies() {
    let call = compact(SHAPE, Transpose::No, Transpose::No);
    let variant = mn_major(true);
    let plan = on_100_ctas(variant, call);
    let tile = (variant.tile.m * variant.tile.n) as usize;
    assert!(only(&plan).is_split());
    assert_eq!(plan.workspace_bytes(), 4 * (512 * 1024 + 200 * tile));
    let [_, kernel, fix_up] = plan.launches() else {
        panic!("{:?}", names(&plan));
    };
    assert_eq!(kernel.grid, (100, 1));
    assert_eq!(fix_up.kernel.name, "fix_up");
    let tiles = only(&plan).tiles() as u32;
    assert_eq!(fix_up.grid, (tile as u32 / 2048, tiles));
    // Both expect the partial sums after the copy.
    let partials = Argument::Pointer(Memory::Workspace.start().after(4 * 512 * 1024));
    assert!(kernel.arguments.contains(&partials));
    assert!(fix_up.arguments.contains(&partials));
}

#[test]
fn an_n_remainder_goes_to_another_kernel_in_exact_tiles_of_that_if_possible() {
    let wide = stream_k(|variant| variant.n_remainder.is_some());
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
fn a_remainder_uses_the_copy_of_a_and_the_same_workspace() {
    let wide = stream_k(|variant| variant.n_remainder.is_some());
    let call = compact(SHAPE, Transpose::No, Transpose::Yes);
    let plan = on_100_ctas(wide, call);
    let [first, second] = plan.panels() else {
        panic!("one panel");
    };
    assert_eq!(second.first_column(), 1920);
    assert_eq!(first.copy_of(Factor::A), second.copy_of(Factor::A));
    // B has a copy of other columns, in the place of the previous copy.
    let made: Vec<OperandCopy> = second.copies().collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].source, (128, 512));
    let offset = |panel: &Panel| panel.copy_of(Factor::B).map(|copy| copy.offset_bytes);
    assert_eq!(offset(first), offset(second));
    let larger = first.workspace_bytes().max(second.workspace_bytes());
    assert_eq!(plan.workspace_bytes(), larger);
    assert_eq!(
        names(&plan),
        [
            "transpose",
            "transpose",
            wide.entry.name,
            "fix_up",
            "transpose",
            "async_pipeline",
            "fix_up"
        ]
    );
}

#[test]
fn copies_larger_than_any_memory_have_no_plan() {
    let call = compact(Shape { m: 1, n: 1, k: 512 }, Transpose::No, Transpose::No);
    let shape = Shape::new(usize::MAX / 2, 1, 512);
    let call = Call { shape, ..call };
    let plan = Plan::new(mn_major(true), call, Decomposition::DATA_PARALLEL);
    assert!(matches!(plan, Err(PlanError::CopiesTooLarge { .. })));
}

/// A compact batch of so many products by a variant.
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
        ("double-buffer-sn8", (1, 2)),
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
            maps(launch).map(|map| (map.count, map.stride)),
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
    assert_eq!(maps(&plan.launches()[0]).map(|map| map.count), [1, 1, 1]);
    let together = Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap();
    assert_eq!((together.repeats(), together.launches().len()), (1, 1));
    assert_eq!(together.launches()[0].grid, (12, 1));
}

#[test]
fn what_needs_copies_or_two_kernels_is_launched_for_each_product() {
    let shape = Shape::new(130, 261, 37);
    for (name, transposes) in [
        ("async-pipeline", NO),
        ("double-buffer-sn8", [Transpose::Yes, Transpose::No]),
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
    for (name, first) in [("double-buffer-sn8", 11), ("warp-specialized-tf32", 14)] {
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
    let variant = variant("double-buffer-sn8");
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
