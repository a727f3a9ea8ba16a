// What the random functions use that neither a host nor a device has by itself. It is text for
// their crate, not a module of this one.

use cuda_std::block::block_reduce;
use cuda_std::warp::{self, WarpMatchValue, WarpReduceValue, WarpReductionOp, WarpShuffleValue};
#[cfg(cuda_device)]
use cuda_std::GpuFloat as _; // `mul_add`
use cuda_std::{bf16, f16, shared_array, thread};

/// A float of 16 bits.
pub trait Half: Copy {
    /// Its bits; of any NaN those of one.
    fn bits16(self) -> u16;
    /// The same number, or that NaN.
    fn canonical(self) -> Self;
}

macro_rules! halves {
    ($($ty:ty)*) => {
        $(
            impl Half for $ty {
                #[inline(always)]
                fn bits16(self) -> u16 {
                    if self.is_nan() { 0x7fe0 } else { self.to_bits() }
                }

                #[inline(always)]
                fn canonical(self) -> Self {
                    Self::from_bits(self.bits16())
                }
            }
        )*
    };
}
halves! { f16 bf16 }

/// Threads of a block.
const THREADS: u32 = 64;
const WHOLE_WARP: u32 = u32::MAX;

/// What the threads of a block do together.
macro_rules! together {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $(<$ty:ident: $bound:path>)? (
            $value:ident: $value_ty:ty $(, $argument:ident: $argument_ty:ty)*
        ) -> $result:ty
        $device:block
        model [$($passed:expr),*] $model:expr;
    )*) => {
        pub trait Together {
            $($(#[$doc])*
            fn $name $(<$ty: Bits + $bound>)? (
                &self, $value: $value_ty $(, $argument: $argument_ty)*
            ) -> $result;)*
        }

        impl Together for Block {
            $(#[inline(always)]
            fn $name $(<$ty: Bits + $bound>)? (
                &self, $value: $value_ty $(, $argument: $argument_ty)*
            ) -> $result {
                // All threads of the block reach it.
                unsafe { $device }
            })*
        }

        #[cfg(not(cuda_device))]
        impl Together for Model<'_> {
            $(fn $name $(<$ty: Bits + $bound>)? (
                &self, $value: $value_ty $(, $argument: $argument_ty)*
            ) -> $result {
                let arguments = [$($passed),*].to_vec();
                <$result>::from_word(self.step($value.word(), arguments, $model))
            })*
        }
    };
}

together! {
    fn all(value: bool) -> bool { warp::warp_vote_all(WHOLE_WARP, value) }
    model [] |all, own| warp(all, own).iter().all(|step| step.value != 0).word();

    fn any(value: bool) -> bool { warp::warp_vote_any(WHOLE_WARP, value) }
    model [] |all, own| warp(all, own).iter().any(|step| step.value != 0).word();

    fn ballot(value: bool) -> u32 { warp::warp_vote_ballot(WHOLE_WARP, value) }
    model [] |all, own| lanes(all, own, |step| step.value != 0);

    fn match_any<V: WarpMatchValue>(value: V) -> u32 { warp::warp_match_any(WHOLE_WARP, value) }
    model [] |all, own| lanes(all, own, |step| step.value == all[own].value);

    /// 0 if it is not the same in all lanes.
    fn match_all<V: WarpMatchValue>(value: V) -> u32 {
        warp::warp_match_all(WHOLE_WARP, value).unwrap_or(0)
    }
    model [] |all, own| match lanes(all, own, |step| step.value == all[own].value) as u32 {
        WHOLE_WARP => WHOLE_WARP.word(),
        _ => 0,
    };

    fn shuffle<V: WarpShuffleValue>(value: V, kind: u32, argument: u32, width: u32) -> V {
        shuffle(value, kind, argument, width).0
    }
    model [kind, argument, width] |all, own| {
        let lane = source(all, own).unwrap_or(own as u32 % 32);
        warp(all, own)[lane as usize].value
    };

    /// Whether the lane that a shuffle names is in reach.
    fn reaches<V: WarpShuffleValue>(value: V, kind: u32, argument: u32, width: u32) -> bool {
        shuffle(value, kind, argument, width).1
    }
    model [kind, argument, width] |all, own| source(all, own).is_some().word();

    fn reduce<V: WarpReduceValue>(value: V, operation: WarpReductionOp) -> V {
        warp::warp_reduce(WHOLE_WARP, value, operation)
    }
    model [operation as u32] |all, own| combined(warp(all, own));

    fn block_reduce<V: WarpReduceValue>(value: V, operation: WarpReductionOp) -> V {
        block_reduce(value, operation)
    }
    model [operation as u32] |all, _| combined(all);

    fn block_all(value: bool) -> bool { thread::sync_threads_and(value.into()) != 0 }
    model [] |all, _| all.iter().all(|step| step.value != 0).word();

    fn block_any(value: bool) -> bool { thread::sync_threads_or(value.into()) != 0 }
    model [] |all, _| all.iter().any(|step| step.value != 0).word();

    fn block_count(value: bool) -> u32 { thread::sync_threads_count(value.into()) }
    model [] |all, _| all.iter().filter(|step| step.value != 0).count() as u128;

    /// Each thread writes to a place of its own in shared memory, and reads from any.
    fn shared<V: Copy>(value: V, factor: u32, from: u32, array: impl Fn() -> *mut V) -> V {
        let array = array();
        array.add(place(thread::thread_idx_x(), factor)).write(value);
        thread::sync_threads(); // every value is written
        let other = array.add((from % THREADS) as usize).read();
        thread::sync_threads(); // every value is read
        other
    }
    model [factor, from] |all, own| {
        let [factor, from] = all[own].arguments[..] else { unreachable!() };
        let mut writers = (0..THREADS).filter(|thread| place(*thread, factor) as u32 == from % THREADS);
        all[writers.next().unwrap() as usize].value
    };
}

/// Where a thread writes, in shared memory; the factor is odd.
#[inline(always)]
fn place(thread: u32, factor: u32) -> usize {
    (thread.wrapping_mul(factor).wrapping_add(factor >> 1) % THREADS) as usize
}

/// The threads of a block that a GPU or the simulator runs.
pub struct Block;

#[inline(always)]
unsafe fn shuffle<V: WarpShuffleValue>(value: V, kind: u32, argument: u32, width: u32) -> (V, bool) {
    let argument = argument & 31;
    unsafe {
        match kind {
            0 => warp::warp_shuffle_up(WHOLE_WARP, value, argument, width),
            1 => warp::warp_shuffle_down(WHOLE_WARP, value, argument, width),
            2 => warp::warp_shuffle_idx(WHOLE_WARP, value, argument, width),
            _ => warp::warp_shuffle_xor(WHOLE_WARP, value, argument, width),
        }
    }
}

/// A value as a word, with a sign if it has one.
pub trait Bits: Copy {
    fn word(self) -> u128;
    fn from_word(word: u128) -> Self;
}

macro_rules! bits {
    ($($ty:ty: |$value:ident| $to:expr, |$word:ident| $from:expr;)*) => {
        $(impl Bits for $ty {
            #[inline(always)]
            fn word(self) -> u128 {
                let $value = self;
                ($to) as u128
            }

            #[inline(always)]
            fn from_word($word: u128) -> Self {
                $from
            }
        })*
    };
}
bits! {
    bool: |value| value, |word| word != 0;
    f16: |value| value.to_bits(), |word| f16::from_bits(word as u16);
    bf16: |value| value.to_bits(), |word| bf16::from_bits(word as u16);
    f32: |value| value.to_bits(), |word| f32::from_bits(word as u32);
    f64: |value| value.to_bits(), |word| f64::from_bits(word as u64);
}
macro_rules! integers {
    ($($ty:ty)*) => { bits! { $($ty: |value| value, |word| word as $ty;)* } };
}
integers! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 }

#[cfg(not(cuda_device))]
mod host {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Block, Together};

    /// What one thread brings to something that all do together.
    #[derive(Clone)]
    pub struct Step {
        pub value: u128,
        pub arguments: Vec<u32>,
        /// The result for the thread of this number.
        meaning: Meaning,
    }

    type Meaning = fn(&[Step], usize) -> u128;

    /// One thread of a block that runs on a host by itself: the results of what all do together are
    /// known, but for the last.
    pub struct Model<'a> {
        thread: usize,
        results: &'a [Vec<u128>],
        at: Cell<usize>,
        next: RefCell<Option<Step>>,
    }

    impl Model<'_> {
        pub fn step(&self, value: u128, arguments: Vec<u32>, meaning: Meaning) -> u128 {
            let at = self.at.replace(self.at.get() + 1);
            match self.results.get(at) {
                Some(results) => results[self.thread],
                None => {
                    let step = Step { value, arguments, meaning };
                    self.next.borrow_mut().get_or_insert(step);
                    0
                }
            }
        }
    }

    /// Runs all threads from their start again for each thing that they do together: then its
    /// result is known.
    pub fn model(
        inputs: &[[u64; 8]],
        outputs: &mut [u64],
        function: impl Fn(&[u64; 8], &Model<'_>) -> u64,
    ) -> bool {
        let mut results = Vec::new();
        loop {
            let mut steps = Vec::new();
            for (thread, input) in inputs.iter().enumerate() {
                let model = Model { thread, results: &results, at: Cell::new(0), next: RefCell::new(None) };
                outputs[thread] = function(input, &model);
                steps.extend(model.next.into_inner());
            }
            if steps.is_empty() {
                return true;
            }
            if steps.len() != inputs.len() {
                eprintln!("{} threads of {} arrive", steps.len(), inputs.len());
                return false;
            }
            results.push((0..steps.len()).map(|own| (steps[own].meaning)(&steps, own)).collect());
        }
    }

    /// Runs all threads in the simulator of `cuda_std`.
    pub fn simulated(
        inputs: &[[u64; 8]],
        outputs: &mut [u64],
        function: impl Fn(&[u64; 8], &Block) -> u64 + Sync,
    ) -> bool {
        let found: Vec<AtomicU64> = inputs.iter().map(|_| AtomicU64::new(0)).collect();
        let report = cuda_std::simulator::Launch::new(1, inputs.len() as u32).run(|| {
            let thread = cuda_std::thread::thread_idx_x() as usize;
            found[thread].store(function(&inputs[thread], &Block), Ordering::Relaxed);
        });
        for (output, found) in outputs.iter_mut().zip(found) {
            *output = found.into_inner();
        }
        report.inspect_err(|fault| eprintln!("{fault}")).is_ok()
    }

    /// The threads of the same warp.
    pub fn warp(all: &[Step], own: usize) -> &[Step] {
        &all[own / 32 * 32..][..32]
    }

    pub fn lanes(all: &[Step], own: usize, is_in: impl Fn(&Step) -> bool) -> u128 {
        let lanes = warp(all, own).iter().enumerate();
        lanes.map(|(lane, step)| u128::from(is_in(step)) << lane).sum()
    }

    /// The lane that a shuffle reads, if it is in reach.
    pub fn source(all: &[Step], own: usize) -> Option<u32> {
        let [kind, argument, width] = all[own].arguments[..] else { unreachable!() };
        let (lane, argument) = (own as u32 % 32, argument & 31);
        let segment = lane / width * width;
        match kind {
            0 => lane.checked_sub(argument).filter(|source| *source >= segment),
            1 => Some(lane + argument).filter(|source| *source < segment + width),
            2 => Some(segment + argument % width),
            _ => Some(lane ^ argument).filter(|source| *source < segment + width),
        }
    }

    /// All values combined; the argument is the operation.
    pub fn combined(steps: &[Step]) -> u128 {
        let values = steps.iter().map(|step| step.value as i128);
        let result = match steps[0].arguments[0] {
            0 => Some(values.sum()),
            1 => values.min(),
            2 => values.max(),
            3 => values.reduce(|left, right| left & right),
            4 => values.reduce(|left, right| left | right),
            _ => values.reduce(|left, right| left ^ right),
        };
        result.unwrap_or_default() as u128
    }
}

#[cfg(not(cuda_device))]
pub use host::*;
