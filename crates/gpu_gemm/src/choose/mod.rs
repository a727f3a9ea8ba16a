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
//! | `variants.rs` | the kernels that a choice is among |
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
mod variants;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gpu_kernels::spec::{DataType, Rounding, Variant};

use crate::call::{Call, Shape, Transpose};
use crate::device::Device;
use crate::gpu::{DeviceFacts, Properties};
use crate::plan::Plan;

use candidates::candidates;
pub use candidates::predictions;
pub(crate) use candidates::{gated, grouped, grouped_along_k};
pub use choice::Choice;
pub use tuned::{Found, Key, Tuned};
pub(crate) use variants::Variants;

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

    /// The choice for matrices that are stored as `call` says; `None` if no memory is large enough
    /// for them.
    pub fn choose_for(&self, data_type: impl Into<DataType>, call: Call) -> Option<Choice> {
        let plan = self.plan(data_type, call, usize::MAX).ok()?;
        Some(Choice::of(&plan))
    }

    /// The choice among kernels with an epilogue; `None` if none of them multiplies the type.
    pub fn choose_fused(
        &self,
        variants: &'static [Variant],
        data_type: DataType,
        call: Call,
    ) -> Option<Choice> {
        let variants = Variants::fused(variants);
        let plan = self.plan_among(variants, data_type, call, usize::MAX);
        Some(Choice::of(&*plan.ok()?))
    }

    /// The choice of [`gemm_grouped`](crate::gemm_grouped), where the call is a batch of groups
    /// with a stride of B alone; `None` if no kernel multiplies them.
    ///
    /// # Safety
    ///
    /// A launch of its plan gets the ends of the groups for a workspace.
    pub unsafe fn choose_grouped(&self, data_type: DataType, call: Call) -> Option<Choice> {
        Some(Choice::of(&grouped(data_type, call, &self.facts)?))
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
mod tests;
