//! Operations that the lanes of a warp execute together.

use super::block::{Block, State, Thread};
use super::mma::{Multiplication, Registers};
use super::{Fault, Place, WARP_SIZE, current};
use crate::warp::{Shuffle, WarpReductionOp};
use std::panic::Location;

/// The operation that the lanes execute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WarpOperation {
    Sync,
    VoteAll,
    VoteAny,
    Ballot,
    /// With the requested lane and PTX's operand for the segments.
    Shuffle(Shuffle, u32, u32),
    MatchAny,
    MatchAll,
    /// Of signed integers or not.
    Reduce(WarpReductionOp, bool),
    Multiply(Multiplication),
    LoadMatrices(MatrixLoad),
    /// With the function's name.
    StoreMatrices(&'static str),
}

/// A load of `count` matrices from shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixLoad {
    function: &'static str,
    count: usize,
    is_transposed: bool,
}

impl WarpOperation {
    fn function(self) -> &'static str {
        match self {
            Self::Sync => "sync_warp",
            Self::VoteAll => "warp_vote_all",
            Self::VoteAny => "warp_vote_any",
            Self::Ballot => "warp_vote_ballot",
            Self::Shuffle(Shuffle::Up, ..) => "warp_shuffle_up",
            Self::Shuffle(Shuffle::Down, ..) => "warp_shuffle_down",
            Self::Shuffle(Shuffle::Idx, ..) => "warp_shuffle_idx",
            Self::Shuffle(Shuffle::Xor, ..) => "warp_shuffle_xor",
            Self::MatchAny => "warp_match_any",
            Self::MatchAll => "warp_match_all",
            Self::Reduce(..) => "warp_reduce",
            Self::Multiply(multiplication) => multiplication.function,
            Self::LoadMatrices(load) => load.function,
            Self::StoreMatrices(function) => function,
        }
    }
}

/// A lane's call of a warp operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpCall {
    pub(super) site: &'static Location<'static>,
    operation: WarpOperation,
    mask: u32,
    /// The value that the lane contributes.
    word: u32,
}

impl WarpCall {
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        // As in `BarrierCall::is_same`; most have one `Location`.
        self.mask == other.mask
            && (std::ptr::eq(self.site, other.site) || self.site == other.site)
            && self.operation.function() == other.operation.function()
    }

    pub fn place(self) -> Place {
        Place::Waits {
            function: self.operation.function(),
            site: self.site.into(),
            mask: Some(self.mask),
        }
    }
}

/// Waits for the lanes of `mask`; returns this lane's result.
pub(crate) fn warp_exchange(
    site: &'static Location<'static>,
    operation: WarpOperation,
    mask: u32,
    word: u32,
) -> u32 {
    let (block, thread) = (current::block(), current::thread());
    if block.is_unwinding.get() {
        return word;
    }
    let call = WarpCall {
        site,
        operation,
        mask,
        word,
    };
    let lane = thread.number % WARP_SIZE;
    if mask & (1 << lane) == 0 {
        let function = operation.function();
        current::fail(invalid(
            block,
            thread,
            call,
            format!(
                "{function}() with mask {mask:#010x}, which leaves out the calling lane {lane}."
            ),
        ));
    }
    thread.suspend(State::InWarp(call));
    thread.warp_answer.get()
}

/// Multiplies matrices, together with all other lanes of the warp; returns this lane's sums.
#[track_caller]
pub(crate) fn multiply(
    operation: Multiplication,
    a: Registers,
    b: Registers,
    c: Registers,
) -> Registers {
    exchange_fragments(WarpOperation::Multiply(operation), [a, b, c])
}

/// Loads matrices, together with all other lanes of the warp; returns this lane's part of each.
#[track_caller]
pub(crate) fn load_matrices<const COUNT: usize>(
    function: &'static str,
    row: *const u8,
    is_transposed: bool,
) -> [u32; COUNT] {
    let operation = WarpOperation::LoadMatrices(MatrixLoad {
        function,
        count: COUNT,
        is_transposed,
    });
    // The thread that completes the operation reads there.
    let row = Registers::of(&[row.expose_provenance() as u64], |&address| address);
    let loaded = exchange_fragments(operation, [row, Registers::default(), Registers::default()]);
    std::array::from_fn(|i| loaded.0[i] as u32)
}

/// Stores matrices, together with all other lanes of the warp, each with its part of them.
#[track_caller]
pub(crate) fn store_matrices(function: &'static str, row: *mut u8, parts: [u32; 4]) {
    // The thread that completes the operation writes there.
    let row = Registers::of(&[row.expose_provenance() as u64], |&address| address);
    let parts = Registers::of(&parts, |&part| part.into());
    exchange_fragments(
        WarpOperation::StoreMatrices(function),
        [row, parts, Registers::default()],
    );
}

/// Waits for all lanes of the warp; returns what takes C's place.
#[track_caller]
fn exchange_fragments(operation: WarpOperation, fragments: [Registers; 3]) -> Registers {
    let thread = current::thread();
    thread.fragments.set(fragments);
    warp_exchange(Location::caller(), operation, u32::MAX, 0);
    thread.fragments.get()[2]
}

fn invalid(block: &Block, thread: &Thread, call: WarpCall, problem: String) -> Fault {
    Fault::InvalidWarpOperation {
        block: block.index.get(),
        thread: thread.index,
        site: call.site.into(),
        problem,
    }
}

/// Completes every operation of a warp that all of its lanes have reached; returns whether there
/// was one.
pub(super) fn complete_warp(block: &Block, warp: &[Thread]) -> Result<bool, Fault> {
    let mut any = false;
    for thread in warp {
        if let State::InWarp(call) = thread.state.get()
            && let Some(calls) = participants(warp, call)
        {
            complete(block, warp, &calls)?;
            any = true;
        }
    }
    Ok(any)
}

/// The calls of all lanes of the mask, by lane, if all have reached `call`.
fn participants(warp: &[Thread], call: WarpCall) -> Option<[Option<WarpCall>; 32]> {
    let mut calls = [None; 32];
    for lane in lanes_of(call.mask) {
        match warp.get(lane)?.state.get() {
            State::InWarp(other) if other.is_same(&call) => calls[lane] = Some(other),
            _ => return None,
        }
    }
    Some(calls)
}

/// Gives every participant its result and lets it continue.
fn complete(block: &Block, warp: &[Thread], calls: &[Option<WarpCall>; 32]) -> Result<(), Fault> {
    // All lanes have made the same call.
    match calls[0].map(|call| call.operation) {
        Some(WarpOperation::Multiply(multiplication)) => {
            complete_multiplication(multiplication, warp)
        }
        Some(WarpOperation::LoadMatrices(load)) => complete_load(load, block, warp, calls)?,
        Some(WarpOperation::StoreMatrices(function)) => {
            complete_store(function, block, warp, calls)?
        }
        _ => {}
    }
    let participants = || {
        (0_u32..)
            .zip(warp)
            .zip(calls)
            .filter_map(|((lane, thread), call)| call.map(|call| (lane, thread, call)))
    };
    let lanes_with = |has: &dyn Fn(WarpCall) -> bool| -> u32 {
        participants()
            .filter(|&(_, _, call)| has(call))
            .map(|(lane, ..)| 1 << lane)
            .sum()
    };
    let ballot = lanes_with(&|call| call.word != 0);
    for (lane, thread, call) in participants() {
        let answer = match call.operation {
            WarpOperation::Sync
            | WarpOperation::Multiply(_)
            | WarpOperation::LoadMatrices(_)
            | WarpOperation::StoreMatrices(_) => 0,
            WarpOperation::VoteAll => u32::from(ballot == call.mask),
            WarpOperation::VoteAny => u32::from(ballot != 0),
            WarpOperation::Ballot => ballot,
            WarpOperation::MatchAny => lanes_with(&|other| other.word == call.word),
            WarpOperation::MatchAll => {
                let same = lanes_with(&|other| other.word == call.word);
                if same == call.mask { same } else { 0 }
            }
            WarpOperation::Reduce(op, is_signed) => participants()
                .map(|(_, _, call)| call.word)
                .reduce(|left, right| op.combine(is_signed, left, right))
                .unwrap_or(call.word),
            WarpOperation::Shuffle(shuffle, argument, segments) => {
                let source = shuffle.source(lane, argument, segments).unwrap_or(lane);
                match calls[source as usize] {
                    Some(source) => source.word,
                    None => {
                        let function = call.operation.function();
                        let mask = call.mask;
                        let problem = format!(
                            "{function}() reads lane {source}, which its mask {mask:#010x} leaves out."
                        );
                        return Err(invalid(block, thread, call, problem));
                    }
                }
            }
        };
        thread.warp_answer.set(answer);
        thread.state.set(State::Ready);
    }
    Ok(())
}

/// Gives every lane its sums.
fn complete_multiplication(multiplication: Multiplication, warp: &[Thread]) {
    let mut fragments: Vec<[Registers; 3]> =
        warp.iter().map(|thread| thread.fragments.get()).collect();
    multiplication.perform(&mut fragments);
    for (thread, fragments) in warp.iter().zip(fragments) {
        thread.fragments.set(fragments);
    }
}

/// Gives every lane its part of the matrices.
fn complete_load(
    load: MatrixLoad,
    block: &Block,
    warp: &[Thread],
    calls: &[Option<WarpCall>; 32],
) -> Result<(), Fault> {
    let mut rows = [[[0_u8; 2]; 8]; 32];
    for ((thread, call), row) in warp.iter().zip(calls).zip(&mut rows).take(8 * load.count) {
        let pointer = row_of_matrix(load.function, block, thread, *call)?;
        // SAFETY: 16 bytes of the block's shared memory, which is initialized, and whose threads
        // are all suspended.
        *row = unsafe { pointer.read() };
    }
    for (lane, thread) in warp.iter().enumerate() {
        let [a, b, mut parts] = thread.fragments.get();
        for (matrix, part) in parts.0.iter_mut().enumerate().take(load.count) {
            let element = |row: usize, col: usize| match load.is_transposed {
                false => rows[8 * matrix + row][col],
                true => rows[8 * matrix + col][row],
            };
            let [first, second] = [0, 1].map(|i| element(lane / 4, 2 * (lane % 4) + i));
            let word = [first[0], first[1], second[0], second[1]];
            *part = u32::from_le_bytes(word).into();
        }
        thread.fragments.set([a, b, parts]);
    }
    Ok(())
}

/// Writes every lane's part of the matrices.
fn complete_store(
    function: &'static str,
    block: &Block,
    warp: &[Thread],
    calls: &[Option<WarpCall>; 32],
) -> Result<(), Fault> {
    for (number, (thread, call)) in warp.iter().zip(calls).enumerate() {
        let pointer = row_of_matrix(function, block, thread, *call)?;
        let (matrix, row) = (number / 8, number % 8);
        let lanes = warp.iter().skip(4 * row).take(4);
        for (word, lane) in lanes.enumerate() {
            let part = lane.fragments.get()[1].0[matrix] as u32;
            // SAFETY: within 16 bytes of the block's shared memory, whose threads are all
            // suspended.
            unsafe {
                pointer
                    .cast::<[u8; 4]>()
                    .add(word)
                    .write(part.to_le_bytes())
            };
        }
    }
    Ok(())
}

/// Where the row lies that a lane gives.
fn row_of_matrix(
    function: &'static str,
    block: &Block,
    thread: &Thread,
    call: Option<WarpCall>,
) -> Result<*mut [[u8; 2]; 8], Fault> {
    let address = thread.fragments.get()[0].0[0] as usize;
    let pointer: *mut [[u8; 2]; 8] = std::ptr::with_exposed_provenance_mut(address);
    let is_shared = block.shared_memory.borrow().contains(pointer.cast(), 16);
    match call {
        Some(call) if !(is_shared && address.is_multiple_of(16)) => {
            let problem = format!(
                "{function}() of a row at {pointer:p}; it must be 16 bytes of the block's shared memory, at a multiple of 16."
            );
            Err(invalid(block, thread, call, problem))
        }
        _ => Ok(pointer),
    }
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}
