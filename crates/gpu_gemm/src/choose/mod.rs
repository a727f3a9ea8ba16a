//! Chooses the kernel that multiplies these matrices fastest on this device: `--kernel auto` and
//! the library's call run it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `choice.rs` | what is chosen: a kernel, and how its CTAs divide the tiles |
//! | `model.rs` | how long a plan will take, by kernels' rates and by what is known of the GPU |
//! | `mapped.rs` | the same of kernels on tensor cores whose tiles the copy engine brings |
//! | `copying.rs` | the part of copies of operands in both |
//! | `candidates.rs` | the plans that might be the fastest, in the order of that |
//! | `tuned.rs` | the plans that `rust-gemm tune` measured to be the fastest, in a file |
//!
//! A call gets the plan that was tuned for exactly its shape and layout on exactly this GPU,
//! driver and build; otherwise it gets the plan that the model predicts.

mod candidates;
mod choice;
mod copying;
mod mapped;
pub mod model;
pub mod tuned;

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use gpu_kernels::spec::{DataType, Rounding, Variant};

use crate::call::{Call, Shape, Transpose};
use crate::device::Device;
use crate::gpu::{DeviceFacts, Properties};
use crate::plan::Plan;

use candidates::candidates;
pub use candidates::predictions;
pub use choice::Choice;
pub use tuned::{Found, Key, Tuned};

/// Chooses plans for one device, by the facts about it and by what was tuned on it.
#[derive(Debug)]
pub struct Chooser {
    facts: DeviceFacts,
    tuned: Option<Tuned>,
    /// How kernels may round f32, besides as IEEE 754 says.
    allowed: &'static [Rounding],
    /// What runs whatever the call, of matrices of its types, unless it has an epilogue.
    only: Option<Choice>,
    /// Earlier choices, each by the kernels, the types of the matrices, the call and the size of
    /// the workspace: choosing takes longer than a small product.
    known: Mutex<HashMap<Question, Arc<Plan>>>,
}

type Question = (Variants, DataType, Call, usize);

/// The kernels to choose from. Those with an epilogue are chosen by prediction alone, whatever was
/// tuned or fixed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variants(Option<&'static [Variant]>);

impl Variants {
    /// Those of the library.
    pub(crate) const LIBRARY: Variants = Variants(None);

    /// Those with an epilogue.
    pub(crate) fn fused(variants: &'static [Variant]) -> Variants {
        Variants(Some(variants))
    }

    fn iter(self) -> impl Iterator<Item = &'static Variant> {
        let library = self.0.is_none().then(gpu_kernels::variants);
        let own = self.0.into_iter().flatten();
        library.into_iter().flatten().chain(own)
    }

    /// Where they are, which tells tables apart.
    fn place(self) -> Option<*const [Variant]> {
        self.0.map(std::ptr::from_ref)
    }
}

impl PartialEq for Variants {
    fn eq(&self, other: &Variants) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Variants {}

impl Hash for Variants {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.place().hash(hasher);
    }
}

/// How f32 may be rounded where it may be split, and where it may be rounded to tf32.
pub(crate) const SPLIT: &[Rounding] = &[Rounding::Split];
pub(crate) const TF32: &[Rounding] = &[Rounding::Split, Rounding::Tf32];

/// The number of calls whose plans are cached.
const MOST_KNOWN: usize = 1024;

impl Chooser {
    /// A chooser for a device, or for the first of several. It uses what was tuned for the device
    /// if that is usable; otherwise a sentence says why not.
    pub fn of(device: &Device) -> (Chooser, Option<String>) {
        match device.gpu() {
            Some(gpu) => Chooser::of_properties(gpu.properties()),
            None => (Chooser::untuned(device.facts()), None),
        }
    }

    /// [`Chooser::of`] for a GPU that need not be opened.
    pub fn of_properties(properties: &Properties) -> (Chooser, Option<String>) {
        let untuned = Chooser::untuned(DeviceFacts::of(properties));
        match Tuned::find(&Key::of(properties)) {
            Found::Usable(tuned) => {
                let tuned = Some(tuned);
                (Chooser { tuned, ..untuned }, None)
            }
            Found::Nothing => (untuned, None),
            Found::Useless(why) => (untuned, Some(why)),
        }
    }

    /// The same chooser as if nothing had been tuned.
    pub fn untuned(facts: DeviceFacts) -> Chooser {
        Chooser {
            facts,
            tuned: None,
            allowed: &[],
            only: None,
            known: Mutex::default(),
        }
    }

    /// The same chooser where f32 may be split into two f16, which have 22 or 23 of its 24 bits, but
    /// fewer of an element far smaller than others of its row: it chooses kernels that do so
    /// wherever they are predicted to be faster.
    pub fn allowing_split(mut self) -> Chooser {
        self.allow(SPLIT);
        self
    }

    /// The same chooser where f32 may be rounded to tf32, which has 11 of its 24 bits, or split.
    pub fn allowing_tf32(mut self) -> Chooser {
        self.allow(TF32);
        self
    }

    /// Allows kernels that round in these ways.
    pub(crate) fn allow(&mut self, allowed: &'static [Rounding]) {
        self.allowed = allowed;
        self.known = Mutex::default();
    }

    /// Chooses nothing else for matrices of its types.
    pub(crate) fn fix(&mut self, choice: Choice) {
        self.only = Some(choice);
        self.known = Mutex::default();
    }

    /// The facts about the device.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// The plan of a call on matrices of `data_type`: of the plans that need no more than
    /// `workspace_bytes` of workspace, the one that was tuned or is predicted to be the fastest. It
    /// may be of a kernel that this device cannot run, if no other multiplies the type.
    ///
    /// # Errors
    ///
    /// The bytes of workspace that the smallest plan needs, if even that is more than
    /// `workspace_bytes`.
    pub fn plan(
        &self,
        data_type: impl Into<DataType>,
        call: Call,
        workspace_bytes: usize,
    ) -> Result<Arc<Plan>, usize> {
        self.plan_among(Variants::LIBRARY, data_type.into(), call, workspace_bytes)
    }

    /// [`Chooser::plan`] with a choice of kernels.
    pub(crate) fn plan_among(
        &self,
        variants: Variants,
        data_type: DataType,
        call: Call,
        workspace_bytes: usize,
    ) -> Result<Arc<Plan>, usize> {
        let key = (variants, data_type, call, workspace_bytes);
        // The table of plans is consistent even if a thread that held the lock panicked.
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known().get(&key) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(self.fastest(variants, data_type, call, workspace_bytes)?);
        let mut known = known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key, Arc::clone(&plan));
        Ok(plan)
    }

    /// [`Chooser::plan`], if it is not known.
    fn fastest(
        &self,
        variants: Variants,
        data_type: DataType,
        call: Call,
        workspace_bytes: usize,
    ) -> Result<Plan, usize> {
        let of_types = |only: &Choice| only.variant.types.data_type() == data_type;
        let is_library = variants == Variants::LIBRARY;
        let only = self.only.filter(of_types).filter(|_| is_library);
        let mut plans = match only {
            Some(_) => Vec::new(),
            None => self.candidates(variants, data_type, call),
        };
        if plans.is_empty() {
            let one = only.or_else(|| least_demanding(variants, data_type).map(Choice::even));
            let plan = one.and_then(|choice| choice.plan(call, &self.facts).ok());
            plans.extend(plan.map(|plan| (plan, 0.0)));
        }
        let needed = plans.iter().map(|(plan, _)| plan.workspace_bytes()).min();
        let fits = |plan: &Plan| plan.workspace_bytes() <= workspace_bytes;
        let fastest = plans.into_iter().find(|(plan, _)| fits(plan));
        let has_tuned = is_library && only.is_none() && data_type == DataType::F32;
        let tuned = self.tuned.as_ref().filter(|_| has_tuned);
        let Some(tuned) = tuned.and_then(|tuned| tuned.plan(call)).filter(fits) else {
            let fastest = fastest.map(|(plan, _)| plan);
            return fastest.ok_or(needed.unwrap_or(usize::MAX));
        };
        // Kernels that round f32 otherwise are not tuned.
        let seconds = model::seconds(&tuned, &self.facts).unwrap_or(f64::INFINITY);
        let rounds = |plan: &Plan| self.allowed.contains(&plan.variant().rounding);
        Ok(match fastest {
            Some((plan, other)) if rounds(&plan) && other < seconds => plan,
            _ => tuned,
        })
    }

    fn candidates(&self, variants: Variants, data_type: DataType, call: Call) -> Vec<(Plan, f64)> {
        candidates(variants, data_type, call, &self.facts, self.allowed)
    }

    /// The choice for matrices that have no gaps and are not transposed; `None` if no memory is
    /// large enough for them.
    pub fn choose(&self, data_type: impl Into<DataType>, shape: Shape) -> Option<Choice> {
        let data_type = data_type.into();
        let call = Call::compact(shape, Transpose::No, Transpose::No, data_type.inputs);
        self.choose_for(data_type, call)
    }

    /// The choice for matrices that lie as `call` says; `None` if no memory is large enough for
    /// them.
    pub fn choose_for(&self, data_type: impl Into<DataType>, call: Call) -> Option<Choice> {
        let plan = self.plan(data_type, call, usize::MAX).ok()?;
        Some(Choice::of(&plan))
    }

    /// What [`Chooser::choose`] chooses, and why.
    pub fn reasoned(&self, data_type: impl Into<DataType>, shape: Shape) -> Option<Reasoned> {
        let data_type = data_type.into();
        let choice = self.choose(data_type, shape)?;
        let call = Call::compact(shape, Transpose::No, Transpose::No, data_type.inputs);
        let tuned = self.tuned.as_ref().filter(|_| data_type == DataType::F32);
        let tuned = tuned.and_then(|tuned| tuned.entry(call));
        let mut candidates: Vec<(Choice, f64)> = Vec::new();
        for (plan, seconds) in self.candidates(Variants::LIBRARY, data_type, call) {
            let is_of_plan =
                |(known, _): &(Choice, f64)| std::ptr::eq(known.variant, plan.variant());
            if !candidates.iter().any(is_of_plan) {
                candidates.push((Choice::of(&plan), seconds));
            }
        }
        let why = match tuned {
            // An entry for a kernel that is gone was not used.
            Some(entry) if entry.kernel == choice.variant.name => Why::Tuned {
                seconds: entry.seconds,
            },
            _ => Why::Predicted,
        };
        Some(Reasoned {
            choice,
            why,
            candidates,
        })
    }
}

/// A choice, and why it was made.
#[derive(Clone, Debug)]
pub struct Reasoned {
    pub choice: Choice,
    pub why: Why,
    /// The best plan of each kernel that might have been chosen, with the seconds that it is
    /// predicted to take, the fastest first.
    pub candidates: Vec<(Choice, f64)>,
}

/// Why a choice was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// `rust-gemm tune` measured it to be the fastest here: its median seconds.
    Tuned { seconds: f64 },
    /// It is predicted to be the fastest.
    Predicted,
}

/// For elements that no kernel can multiply here, the one that asks for the least: its error says
/// what that is.
fn least_demanding(variants: Variants, data_type: DataType) -> Option<&'static Variant> {
    variants
        .iter()
        .filter(|one| one.types.data_type() == data_type)
        .min_by_key(|one| (one.gemv_like, one.least_capability))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::spec::ElementType;

    use crate::call::Factor;
    use crate::plan::OperandCopy;
    use crate::tests::{h200, t4};

    fn compact(shape: Shape) -> Call {
        Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32)
    }

    fn chosen(m: usize, n: usize, k: usize) -> Choice {
        let call = compact(Shape { m, n, k });
        let plan = predictions(call, &h200()).remove(0).0;
        Choice::of(&plan)
    }

    #[test]
    fn a_batch_in_16_bits_is_one_launch_unless_few_products_have_to_be_split() {
        let chooser = Chooser::untuned(h200());
        let chosen = |shape: Shape, count: usize, transposes: [Transpose; 2]| {
            let [a, b] = transposes;
            let call = Call::compact(shape, a, b, ElementType::Bf16);
            let call = call.repeated(count, ElementType::Bf16);
            let plan = chooser.plan(DataType::BF16, call, usize::MAX).unwrap();
            (plan.variant().name, plan.repeats())
        };
        let (no, yes) = (Transpose::No, Transpose::Yes);
        let cube = Shape::cube(256);
        assert_eq!(chosen(cube, 512, [no, no]), ("warp-specialized", 1));
        assert_eq!(chosen(cube, 512, [yes, yes]), ("warp-specialized-tt", 1));
        assert_eq!(chosen(Shape::new(128, 128, 64), 4096, [no, no]).1, 1);
        let deep = Shape::new(256, 256, 100_000);
        assert_eq!(chosen(deep, 2, [no, no]).1, 2);
    }

    /// A step for each of their tiles would be billions.
    #[test]
    fn the_largest_products_are_planned_like_others() {
        let chooser = Chooser::untuned(h200());
        let no = Transpose::No;
        for data_type in DataType::ALL {
            for shape in [
                Shape::new(131_072, 131_072, 64),
                Shape::new(10_000_000, 10_000_000, 1),
            ] {
                let call = Call::compact(shape, no, no, data_type.inputs);
                let plan = chooser.plan(data_type, call, usize::MAX).unwrap();
                assert!(!plan.launches().is_empty(), "{data_type}, {shape}");
            }
        }
    }

    /// Ampere, Ada and Blackwell have no wgmma, and a T4 has no instruction for bf16.
    #[test]
    fn elements_of_16_bits_are_read_as_they_lie_on_any_gpu_with_tensor_cores_for_them() {
        let of_16_bits = |one: &DataType| one.inputs.bytes() == 2;
        for capability in [80, 86, 89, 90, 100, 120] {
            let facts = DeviceFacts {
                capability,
                ..h200()
            };
            let chooser = Chooser::untuned(facts.clone());
            for data_type in DataType::ALL.into_iter().filter(of_16_bits) {
                let layouts = Transpose::ALL.map(|a| Transpose::ALL.map(|b| [a, b]));
                for [a, b] in layouts.concat() {
                    let call = Call::compact(Shape::cube(1024), a, b, data_type.inputs);
                    let choice = chooser.choose_for(data_type, call).unwrap();
                    let name = choice.variant.name;
                    let is_wgmma = !name.starts_with("tensor-core");
                    assert_eq!(is_wgmma, capability == 90, "{name}, {capability}");
                    assert!(facts.runs(choice.variant));
                    let plan = choice.plan(call, &facts).unwrap();
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
        // Rows of odd lengths, both transposed: 16 bits and i32 have no kernel that needs no copy.
        let (shape, yes) = (Shape::new(1001, 1003, 1005), Transpose::Yes);
        for data_type in DataType::ALL {
            let call = Call::compact(shape, yes, yes, data_type.inputs);
            let needed = match chooser.plan(data_type, call, 0) {
                Ok(plan) => panic!("{data_type} by {}", plan.variant().name),
                Err(needed) => needed,
            };
            let plan = chooser.plan(data_type, call, needed).unwrap();
            assert_eq!(plan.workspace_bytes(), needed, "{data_type}");
            let less = chooser.plan(data_type, call, needed - 1);
            assert_eq!(less.err(), Some(needed));
        }
        // The bytes are those of the plan that needs the fewest, whether it is the fastest or not:
        // `tiled` copies A, 65 rows of 64, and the tensor cores for f64 would copy B, too.
        let (shape, no) = (Shape::new(65, 67, 63), Transpose::No);
        let call = Call::compact(shape, yes, no, ElementType::F64);
        assert_eq!(
            chooser.plan(ElementType::F64, call, 0).err(),
            Some(65 * 64 * 8)
        );
        // Where rows of A are not aligned, the tensor cores for f64 need a copy of it.
        let call = Call::compact(
            Shape::new(4096, 4096, 4095),
            Transpose::No,
            Transpose::No,
            ElementType::F64,
        );
        let name = |bytes| {
            chooser
                .plan(ElementType::F64, call, bytes)
                .unwrap()
                .variant()
                .name
        };
        assert_eq!(name(usize::MAX), "warp-specialized-fp64");
        assert_eq!(name(4096 * 4096 * 8), "warp-specialized-fp64");
        assert_eq!(name(4096 * 4096 * 8 - 1), "tiled-32");
    }

    #[test]
    fn f32_is_split_or_rounded_to_tf32_only_where_that_is_allowed_and_faster() {
        let ieee = Chooser::untuned(h200());
        let split = Chooser::untuned(h200()).allowing_split();
        let tf32 = Chooser::untuned(h200()).allowing_tf32();
        let name = |chooser: &Chooser, shape, a, b| {
            let call = Call::compact(shape, a, b, ElementType::F32);
            let choice = chooser.choose_for(ElementType::F32, call);
            choice.unwrap().variant.name
        };
        let (no, yes) = (Transpose::No, Transpose::Yes);
        let large = Shape::cube(4096);
        assert_eq!(name(&tf32, large, no, yes), "warp-specialized-tf32-nt");
        assert_eq!(name(&tf32, large, yes, yes), "warp-specialized-tf32-tt");
        for (a, shape) in [
            (no, large),
            (yes, large),
            (no, Shape::new(1409, 4607, 3001)),
        ] {
            assert_eq!(name(&split, shape, a, no), "split-fp32", "{shape}");
            assert_ne!(name(&ieee, shape, a, no), "split-fp32");
        }
        // Splitting takes longer than the product, or there are too few tiles.
        for (m, n, k) in [
            (1, 4096, 4096),
            (128, 4096, 4096),
            (4096, 4096, 16),
            (512, 512, 512),
            (8, 512, 500_000),
            (0, 4096, 4096),
        ] {
            let shape = Shape::new(m, n, k);
            let expected = name(&ieee, shape, no, no);
            assert_eq!(name(&split, shape, no, no), expected, "{shape}");
        }
        // No other GPU has such instructions, but Ampere has tensor cores.
        let ampere = DeviceFacts {
            capability: 80,
            ..h200()
        };
        let of_ampere = Chooser::untuned(ampere).allowing_tf32();
        assert_eq!(name(&of_ampere, large, no, no), "tensor-core");
        // The copies, with a scale for each row, need a workspace.
        let needed = 2 * (4096 * 4096 + 4096) * 4;
        let of = |bytes| {
            let plan = split.plan(ElementType::F32, compact(large), bytes);
            plan.unwrap().variant().name
        };
        assert_eq!(of(needed), "split-fp32");
        assert_ne!(of(needed - 1), "split-fp32");
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
        tuned.insert(tuned::Entry::new(compact(shape), slow, 1e-3, None));
        chooser = Chooser {
            tuned: Some(tuned),
            ..Chooser::untuned(h200())
        };
        let measured = chooser.reasoned(ElementType::F32, shape).unwrap();
        assert!(measured.choice == slow && measured.why == Why::Tuned { seconds: 1e-3 });
        for data_type in [ElementType::F64, ElementType::I32] {
            let other = chooser.reasoned(data_type, shape).unwrap();
            assert!(other.why == Why::Predicted && other.candidates[0].0 == other.choice);
        }
    }

    #[test]
    fn doubles_go_to_tensor_cores_where_there_are_some_and_enough_tiles_for_them() {
        let chosen = |facts: DeviceFacts, count: usize, size: usize| {
            let no = Transpose::No;
            let call = Call::compact(Shape::cube(size), no, no, ElementType::F64);
            let call = call.repeated(count, ElementType::F64);
            let choice = Chooser::untuned(facts).choose_for(ElementType::F64, call);
            choice.unwrap().variant.name
        };
        let a100 = DeviceFacts {
            capability: 80,
            ..h200()
        };
        for (count, size, on_hopper, on_ampere) in [
            (1, 64, "warp-specialized-fp64-32x64", "tiled-32"),
            (1, 256, "warp-specialized-fp64-32x64", "tiled-32"),
            (64, 256, "warp-specialized-fp64", "fp64-tensor"),
            (1, 512, "warp-specialized-fp64-32x64", "tiled-32"),
            (1, 1024, "warp-specialized-fp64-64x64", "fp64-tensor"),
            (1, 4096, "warp-specialized-fp64", "fp64-tensor"),
        ] {
            let names = [h200(), a100.clone()].map(|facts| chosen(facts, count, size));
            assert_eq!(names, [on_hopper, on_ampere], "{count} of {size}");
        }
        assert_eq!(chosen(t4(), 1, 4096), "tiled-32");
    }

    #[test]
    fn tiles_of_f32_are_as_large_as_c_fills() {
        for (m, n, k, name) in [
            (2048, 2048, 2048, "async-pipeline"),
            (4096, 4096, 4096, "wide-thread-tile"),
            (4097, 4097, 4097, "wide-thread-tile"),
            (16384, 16384, 16384, "wide-thread-tile"),
        ] {
            assert_eq!(chosen(m, n, k).variant.name, name, "{m}");
        }
        assert_eq!(chosen(32, 4096, 4096).variant.tile.m, 32);
        // There are 4 tiles of 16 rows, and half a million products a sum.
        let deep = chosen(8, 512, 500_000);
        assert!(deep.variant.tile.m <= 16 && deep.decomposition.unwrap().ctas >= 132);
    }

    #[test]
    fn few_rows_go_to_the_kernel_for_them_and_many_never_do() {
        for (n, k, columns) in [
            (2112, 7168, 32),
            (4096, 7168, 32),
            (24576, 1536, 64),
            (32768, 512, 128),
        ] {
            for m in [1, 2, 3, 4] {
                let choice = chosen(m, n, k);
                let tile = choice.variant.tile;
                let rows = if m == 1 { 1 } else { 4 };
                assert_eq!(
                    (tile.m, tile.n),
                    (rows, columns),
                    "{}",
                    choice.description()
                );
                assert!(choice.variant.gemv_like);
            }
        }
        for m in [17, 64, 1000, 5000] {
            for (n, k) in [(33, 4096), (128, 128), (2112, 7168), (24576, 1536)] {
                let choice = chosen(m, n, k);
                let name = choice.variant.name;
                assert!(!name.starts_with("few-rows"), "{m} x {n} x {k}: {name}");
            }
        }
    }

    #[test]
    fn few_columns_are_few_rows_of_the_transposed_product_and_only_b_is_copied() {
        let chooser = Chooser::untuned(h200());
        let layouts = Transpose::ALL.map(|a| Transpose::ALL.map(|b| [a, b]));
        for data_type in [DataType::F32, DataType::F64, DataType::BF16, DataType::F16] {
            for ([a, b], n) in layouts
                .concat()
                .into_iter()
                .flat_map(|ab| [1, 2, 4].map(|n| (ab, n)))
            {
                let shape = Shape::new(4096, n, 4096);
                let call = Call::compact(shape, a, b, data_type.inputs);
                let plan = chooser.plan(data_type, call, usize::MAX).unwrap();
                let (name, panel) = (plan.variant().name, &plan.panels()[0]);
                assert!(
                    panel.is_transposed(),
                    "{data_type} {shape} {a:?} {b:?}: {name}"
                );
                let copied = |copy: OperandCopy| panel.as_called(copy.factor);
                let copies: Vec<Factor> = panel.copies().map(copied).collect();
                assert!(copies.is_empty() || n > 1 && copies == [Factor::B]);
            }
        }
    }

    #[test]
    fn each_variant_for_few_rows_is_chosen_for_some_shape() {
        let chooser = Chooser::untuned(h200());
        let mut unchosen: Vec<&str> = gpu_kernels::variants()
            .filter(|variant| variant.gemv_like)
            .map(|variant| variant.entry.name)
            .collect();
        for data_type in DataType::ALL {
            for (m, b) in [1, 4, 8].map(|m| Transpose::ALL.map(|b| (m, b))).concat() {
                for (n, k) in [(4096, 4096), (24576, 1536), (32768, 512)] {
                    let shape = Shape::new(m, n, k);
                    let call = Call::compact(shape, Transpose::No, b, data_type.inputs);
                    let choice = chooser.choose_for(data_type, call).unwrap();
                    unchosen.retain(|name| *name != choice.variant.entry.name);
                }
            }
        }
        assert_eq!(unchosen, [""; 0]);
    }

    #[test]
    fn many_small_products_are_one_launch_and_few_large_ones_are_not() {
        let (no, yes) = (Transpose::No, Transpose::Yes);
        let chosen_for = |count: usize, size: usize, [a, b]: [Transpose; 2]| {
            let call = Call::compact(Shape::cube(size), a, b, ElementType::F32);
            let call = call.repeated(count, ElementType::F32);
            let plan = predictions(call, &h200()).remove(0).0;
            (plan.variant().name, plan.repeats() == 1)
        };
        for transposes in [[no, no], [yes, no], [no, yes]] {
            for (count, size) in [(128, 64), (64, 256), (16, 512)] {
                let (name, is_one_launch) = chosen_for(count, size, transposes);
                assert!(is_one_launch, "{count} x {size}, {transposes:?}: {name}");
            }
            let (name, is_one_launch) = chosen_for(3, 4096, transposes);
            assert!(name == "wide-thread-tile" && !is_one_launch, "{name}");
        }
        // No kernel reads both transposed, so that copies are made for one product at a time.
        assert!(!chosen_for(64, 256, [yes, yes]).1);
    }
}
