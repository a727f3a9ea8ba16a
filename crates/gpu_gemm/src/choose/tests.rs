//! Tests of the chooser, most of them a table: a product, and the kernel for it.

use gpu_kernels::spec::ElementType;

use super::*;
use crate::call::{Batch, Factor};
use crate::plan::OperandCopy;
use crate::tests::{call, h200, lines, t4};

/// A GPU (or its compute capability), how f32 may be rounded, types, m x n x k, whether A and B are
/// transposed, and a batch's products; then the kernel, with the CTAs of some, and `each` where
/// the products of a batch are launched one after the other. `|` separates alternatives, all of
/// which are chosen the same.
const CHOICES: &str = "
# Tiles of f32 are as large as C fills.
h200 ieee f32 2048x2048x2048 nn 1: async-pipeline
h200 ieee f32 4096x4096x4096 nn 1: wide-thread-tile
h200 ieee f32 4097x4097x4097 nn 1: wide-thread-tile
h200 ieee f32 16384x16384x16384 nn 1: wide-thread-tile
h200 ieee f32 32x4096x4096 nn 1: async-pipeline-32x128-nn
# There are 4 tiles of 16 rows, and half a million products a sum.
h200 ieee f32 8x512x500000 nn 1: async-pipeline-16x128-nn (396 CTAs)
# Few rows have kernels of their own, and many never go to these.
h200 ieee f32 1x2112|4096x7168 nn 1: few-rows-1x32
h200 ieee f32 2|3|4x2112|4096x7168 nn 1: few-rows-4x32
h200 ieee f32 1x24576x1536 nn 1: few-rows-1x64
h200 ieee f32 2|3|4x24576x1536 nn 1: few-rows-4x64
h200 ieee f32 1x32768x512 nn 1: few-rows-1
h200 ieee f32 2|3|4x32768x512 nn 1: few-rows-4
h200 ieee f32 17|64|1000|5000x33x4096 nn 1: not few-rows
h200 ieee f32 17|64|1000|5000x128x128 nn 1: not few-rows
h200 ieee f32 17|64|1000|5000x2112x7168 nn 1: not few-rows
h200 ieee f32 17|64|1000|5000x24576x1536 nn 1: not few-rows
# Many small products are one launch, and few large ones are not.
h200 ieee f32 64x64x64 nn 128: async-pipeline-32x32-odd
h200 ieee f32 64x64x64 tn 128: async-pipeline-64x64-sliced
h200 ieee f32 64x64x64 nt 128: async-pipeline-32x128-nt
h200 ieee f32 256x256x256 nn 64: double-buffer-k16
h200 ieee f32 256x256x256 tn 64: async-pipeline
h200 ieee f32 256x256x256 nt 64: async-pipeline-32x128-nt
h200 ieee f32 512x512x512 nn 16: double-buffer-k16
h200 ieee f32 512x512x512 tn 16: async-pipeline
h200 ieee f32 512x512x512 nt 16: async-pipeline-32x128-nt
h200 ieee f32 4096x4096x4096 nn|tn|nt 3: wide-thread-tile each
# No kernel reads both transposed, so that copies are made for one product at a time.
h200 ieee f32 256x256x256 tt 64: async-pipeline-64x64-sliced each
# In 16 bits they are one launch unless few products have to be split.
h200 ieee bf16 256x256x256 nn 512: warp-specialized
h200 ieee bf16 256x256x256 tt 512: warp-specialized-tt
h200 ieee bf16 128x128x64 nn 4096: persistent-64x64
h200 ieee bf16 256x256x100000 nn 2: persistent-64x128 each
# f32 is split or rounded only where that is allowed and faster: not where splitting takes longer
# than the product, or where there are too few tiles.
h200 tf32 f32 4096x4096x4096 nt 1: warp-specialized-tf32-nt
h200 tf32 f32 4096x4096x4096 tt 1: warp-specialized-tf32-tt
h200 split f32 4096x4096x4096 nn|tn 1: split-fp32
h200 split f32 1409x4607x3001 nn 1: split-fp32
h200 ieee f32 4096x4096x4096 tn 1: wide-thread-tile
h200 ieee f32 1409x4607x3001 nn 1: async-pipeline
h200 ieee|split f32 1x4096x4096 nn 1: few-rows-1x32
h200 ieee|split f32 128x4096x4096 nn 1: async-pipeline
h200 ieee|split f32 4096x4096x16 nn 1: async-pipeline-64x64-nn
h200 ieee|split f32 512x512x512 nn 1: async-pipeline-16x128-nn
h200 ieee|split f32 8x512x500000 nn 1: async-pipeline-16x128-nn
h200 ieee|split f32 0x4096x4096 nn 1: async-pipeline
# No other GPU has such instructions, but Ampere has tensor cores.
80 tf32 f32 4096x4096x4096 nn 1: tensor-core
# Doubles go to tensor cores where there are some, and enough tiles for them.
h200 ieee f64 64x64x64 nn 1: warp-specialized-fp64-32x64
h200 ieee f64 256x256x256 nn 1: warp-specialized-fp64-32x64
h200 ieee f64 256x256x256 nn 64: warp-specialized-fp64
h200 ieee f64 512x512x512 nn 1: warp-specialized-fp64-32x64
h200 ieee f64 1024x1024x1024 nn 1: warp-specialized-fp64-64x64
h200 ieee f64 4096x4096x4096 nn 1: warp-specialized-fp64
80 ieee f64 64x64x64 nn 1: tiled-32
80 ieee f64 256x256x256 nn 1: tiled-32
80 ieee f64 256x256x256 nn 64: fp64-tensor
80 ieee f64 512x512x512 nn 1: tiled-32
80 ieee f64 1024x1024x1024 nn 1: fp64-tensor
80 ieee f64 4096x4096x4096 nn 1: fp64-tensor
t4 ieee f64 4096x4096x4096 nn 1: tiled-32
# One element is no large tile in the simulator.
sim|h200 ieee f64 1x1x1000003 nn 1: few-rows-1-nt
sim ieee f64 512x512x1000003 nn 1: warp-specialized-fp64
# Tiles that the copy engine brings. There are 512: four rounds of 132 CTAs.
h200 ieee bf16 4096x4096x4096 nt 1: warp-specialized-nt
# Of 15.5 and 6.8 rounds the last is divided, but not where each CTA would read rows and columns
# from memory that others have read before.
h200 ieee bf16 8192x8192x8192 nt 1: persistent-nt (132 CTAs, 15 data-parallel waves)
h200 ieee bf16 4096x7168x16384 nt 1: warp-specialized-nt
# Up to 16 rows memory is the limit, and staging tiles only takes longer.
h200 ieee bf16 16x4096x4096 nt 1: few-rows-16-nt (128 CTAs)
h200 ieee bf16 24x4096x4096 nt 1: persistent-64x64-nt (64 CTAs, 1 data-parallel wave)
h200 ieee bf16 40x512x500000 nt 1: persistent-64x128-nt (132 CTAs)
# Each tile has three CTAs, so that those that share columns read them together.
h200 ieee bf16 128x2112x7168 nt 1: persistent-64x128-nt (102 CTAs)
# So short a K that adding would take longer.
h200 ieee bf16 704x768x1024 nt 1: persistent-64x64-nt (132 CTAs, 1 data-parallel wave)
";

fn chosen([gpu, math, types, m, n, k, layout, count]: [&str; 8]) -> String {
    let facts = match gpu {
        "h200" => h200(),
        "t4" => t4(),
        "sim" => DeviceFacts::simulator(),
        capability => of_capability(capability.parse().unwrap()),
    };
    let mut chooser = Chooser::untuned(facts);
    chooser.allow(match math {
        "split" => SPLIT,
        "tf32" => TF32,
        _ => &[],
    });
    let types = DataType::ALL.into_iter().find(|one| one.name() == types);
    let types = types.unwrap();
    let call = call([m, n, k], layout, types.inputs);
    let call = call.repeated(count.parse().unwrap(), types.inputs);
    let plan = chooser.plan(types, call, usize::MAX).unwrap();
    let each = if plan.repeats() > 1 { " each" } else { "" };
    Choice::of(&plan).description() + each
}

#[test]
fn each_product_has_the_kernel_of_the_table() {
    for line in lines(CHOICES) {
        let (question, expected) = line.split_once(": ").unwrap();
        let mut questions = vec![Vec::new()];
        for field in question.split([' ', 'x']) {
            let with = |one| {
                questions
                    .iter()
                    .map(move |known: &Vec<_>| [&known[..], &[one]].concat())
            };
            questions = field.split('|').flat_map(with).collect();
        }
        for question in questions {
            let found = chosen(question[..].try_into().unwrap());
            let [name, each] = [found.split(' ').next(), found.strip_suffix(" each")];
            let is_right = match expected.split_once(' ') {
                Some(("not", other)) => !found.starts_with(other),
                Some((expected, "each")) => each.is_some() && name == Some(expected),
                Some(_) => found == expected,
                None => each.is_none() && name == Some(expected),
            };
            assert!(is_right, "{line}: {found}");
        }
    }
}

/// An H200 of another compute capability.
fn of_capability(capability: u32) -> DeviceFacts {
    DeviceFacts {
        capability,
        ..h200()
    }
}

fn layouts() -> Vec<[Transpose; 2]> {
    Transpose::ALL
        .map(|a| Transpose::ALL.map(|b| [a, b]))
        .concat()
}

/// A step for each of their tiles would be billions.
#[test]
fn the_largest_products_are_planned_like_others() {
    let chooser = Chooser::untuned(h200());
    for data_type in DataType::ALL {
        for (size, k) in [(131_072, 64), (10_000_000, 1)] {
            let shape = Shape::new(size, size, k);
            let call = Call::compact(shape, Transpose::No, Transpose::No, data_type.inputs);
            let plan = chooser.plan(data_type, call, usize::MAX).unwrap();
            assert!(!plan.launches().is_empty(), "{data_type}, {shape}");
        }
    }
}

/// Ampere, Ada and Blackwell have no wgmma, and a T4 has no instruction for bf16.
#[test]
fn elements_of_16_bits_are_read_as_they_lie_on_any_gpu_with_tensor_cores_for_them() {
    for capability in [80, 86, 89, 90, 100, 120] {
        let facts = of_capability(capability);
        let chooser = Chooser::untuned(facts.clone());
        for data_type in DataType::ALL
            .into_iter()
            .filter(|one| one.inputs.bytes() == 2)
        {
            for [a, b] in layouts() {
                let call = Call::compact(Shape::cube(1024), a, b, data_type.inputs);
                let plan = chooser.plan(data_type, call, usize::MAX).unwrap();
                let name = plan.variant().name;
                let is_wgmma = !name.starts_with("tensor-core");
                assert_eq!(is_wgmma, capability == 90, "{name}, {capability}");
                assert!(facts.runs(plan.variant()));
                assert_eq!(plan.panels()[0].copies().count(), 0, "{a:?} {b:?}");
            }
            let row = chooser.choose(data_type, Shape::new(1, 4096, 4096));
            assert!(row.unwrap().variant.gemv_like, "{data_type}");
            let reasoned = chooser.reasoned(data_type, Shape::cube(4096)).unwrap();
            let run = |(one, _): &(Choice, f64)| facts.runs(one.variant);
            assert!(reasoned.candidates.iter().all(run), "{capability}");
        }
    }
    // What is refused there needs the least.
    let none = Chooser::untuned(t4()).choose(DataType::BF16, Shape::cube(64));
    assert_eq!(none.unwrap().variant.name, "tensor-core");
}

#[test]
fn a_plan_of_any_type_fits_the_workspace_or_the_bytes_that_it_needs_are_said() {
    let chooser = Chooser::untuned(h200());
    let (no, yes) = (Transpose::No, Transpose::Yes);
    // Rows of odd lengths, both transposed: 16 bits and i32 have no kernel that needs no copy.
    let shape = Shape::new(1001, 1003, 1005);
    for data_type in DataType::ALL {
        let call = Call::compact(shape, yes, yes, data_type.inputs);
        let needed = chooser.plan(data_type, call, 0).unwrap_err();
        let plan = chooser.plan(data_type, call, needed).unwrap();
        assert_eq!(plan.workspace_bytes(), needed, "{data_type}");
        let less = chooser.plan(data_type, call, needed - 1);
        assert_eq!(less.err(), Some(needed));
    }
    // The bytes are those of the plan that needs the fewest, whether it is the fastest or not:
    // `tiled` copies A, 65 rows of 64, and the tensor cores for f64 would copy B, too.
    let call = Call::compact(Shape::new(65, 67, 63), yes, no, ElementType::F64);
    let needed = chooser.plan(ElementType::F64, call, 0).unwrap_err();
    assert_eq!(needed, 65 * 64 * 8);
    let names = |chooser: &Chooser, element, k, needed: usize| {
        let call = Call::compact(Shape::new(4096, 4096, k), no, no, element);
        let name = |bytes| chooser.plan(element, call, bytes).unwrap().variant().name;
        [usize::MAX, needed, needed - 1].map(name)
    };
    // Where rows of A are not aligned, the tensor cores for f64 need a copy of it.
    let f64 = "warp-specialized-fp64";
    let found = names(&chooser, ElementType::F64, 4095, 8 * 4096 * 4096);
    assert_eq!(found, [f64, f64, "tiled-32"]);
    // The copies of split f32, with a scale for each row, are of both.
    let split = Chooser::untuned(h200()).allowing_split();
    let found = names(&split, ElementType::F32, 4096, 8 * (4096 * 4096 + 4096));
    assert_eq!(found, ["split-fp32", "split-fp32", "wide-thread-tile"]);
}

#[test]
fn a_choice_is_explained_by_the_predictions_or_by_what_was_tuned() {
    let shape = Shape::cube(4096);
    let mut chooser = Chooser::untuned(h200());
    let predicted = chooser.reasoned(ElementType::F32, shape).unwrap();
    assert_eq!(predicted.why, Why::Predicted);
    assert!(predicted.candidates.len() > 5 && predicted.candidates[0].0 == predicted.choice);
    let slow = predicted.candidates[3].0;
    let mut tuned = Tuned::new(Key {
        device: String::new(),
        driver: String::new(),
        kernels: String::new(),
    });
    let call = Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32);
    tuned.insert(tuned::Entry::new(call, slow, 1e-3, None));
    chooser.tuned = Some(tuned);
    chooser.known = Mutex::default();
    let measured = chooser.reasoned(ElementType::F32, shape).unwrap();
    assert!(measured.choice == slow && measured.why == Why::Tuned { seconds: 1e-3 });
    for data_type in [ElementType::F64, ElementType::I32] {
        let other = chooser.reasoned(data_type, shape).unwrap();
        assert!(other.why == Why::Predicted && other.candidates[0].0 == other.choice);
    }
}

#[test]
fn few_columns_are_few_rows_of_the_transposed_product_and_only_b_is_copied() {
    let chooser = Chooser::untuned(h200());
    for data_type in [DataType::F32, DataType::F64, DataType::BF16, DataType::F16] {
        for ([a, b], n) in layouts()
            .into_iter()
            .flat_map(|ab| [1, 2, 4].map(|n| (ab, n)))
        {
            let call = Call::compact(Shape::new(4096, n, 4096), a, b, data_type.inputs);
            let plan = chooser.plan(data_type, call, usize::MAX).unwrap();
            let (name, panel) = (plan.variant().name, &plan.panels()[0]);
            assert!(panel.is_transposed(), "{data_type} {n} {a:?} {b:?}: {name}");
            let copied = |copy: OperandCopy| panel.as_called(copy.factor);
            let copies: Vec<Factor> = panel.copies().map(copied).collect();
            assert!(copies.is_empty() || n > 1 && copies == [Factor::B]);
        }
    }
}

#[test]
fn each_variant_for_few_rows_is_chosen_for_some_shape() {
    let chooser = Chooser::untuned(h200());
    let few_rows = gpu_kernels::variants().filter(|variant| variant.gemv_like);
    let mut unchosen: Vec<&str> = few_rows.map(|variant| variant.entry.name).collect();
    for data_type in DataType::ALL {
        for (m, b) in [1, 4, 8, 16]
            .map(|m| Transpose::ALL.map(|b| (m, b)))
            .concat()
        {
            for (n, k) in [(4096, 4096), (24576, 1536), (32768, 512)] {
                let call = Call::compact(Shape { m, n, k }, Transpose::No, b, data_type.inputs);
                let choice = chooser.choose_for(data_type, call).unwrap();
                unchosen.retain(|name| *name != choice.variant.entry.name);
            }
        }
    }
    assert_eq!(unchosen, [""; 0]);
}

#[test]
fn groups_have_small_tiles_if_they_have_few_rows_or_are_few() {
    let b = Transpose::Yes;
    let chosen = |facts: &DeviceFacts, m, n, groups| {
        let call = Call::compact(Shape::new(m, n, 64), Transpose::No, b, ElementType::Bf16);
        let strides = [0, n * 64, 0];
        let batch = Batch {
            count: groups,
            strides,
        };
        let plan = grouped(
            DataType::BF16,
            call.batched(batch, ElementType::Bf16),
            facts,
        );
        plan.unwrap().variant().name
    };
    assert_eq!(chosen(&h200(), 8192, 4096, 64), "grouped-nt");
    assert_eq!(chosen(&h200(), 64 * 64, 4096, 64), "grouped-64x128-nt");
    assert_eq!(chosen(&h200(), 1024, 2048, 8), "grouped-64x128-nt");
    // As in the tests of the kernels.
    assert_eq!(chosen(&DeviceFacts::simulator(), 300, 264, 4), "grouped-nt");
    let small = chosen(&DeviceFacts::simulator(), 110, 136, 6);
    assert_eq!(small, "grouped-64x128-nt");
}
