//! Operations that the lanes of a warp execute together.

use super::block::{Awaits, Block, Call, State, Thread};
use super::mma::{Multiplication, Registers};
use super::site::CallSite;
use super::warp_operation::{WarpCall, WarpOperation};
use super::{Fault, WARP_SIZE, current};

/// Waits for the lanes of `mask`; returns this lane's result.
pub(crate) fn warp_exchange(site: CallSite, operation: WarpOperation, mask: u32, word: u32) -> u32 {
    let Some((block, thread)) = current::running() else {
        return word;
    };
    let lane = thread.number % WARP_SIZE;
    if mask & (1 << lane) == 0 {
        let problem = format!("with mask {mask:#010x}, which leaves out the calling lane {lane}.");
        current::fail(current::invalid_operation(block, thread, site, problem));
    }
    let awaits = Awaits::Warp(WarpCall {
        operation,
        mask,
        word,
    });
    thread.suspend(State::Waits(Call { site, awaits }));
    thread.warp_answer.get()
}

/// Multiplies matrices, together with all other lanes of the warp; returns this lane's sums.
#[track_caller]
pub(crate) fn multiply(
    function: &'static str,
    multiplication: Multiplication,
    fragments: [Registers; 3],
) -> Registers {
    let operation = WarpOperation::Multiply(multiplication);
    exchange_fragments(CallSite::here(function), operation, fragments)
}

/// Loads matrices, together with all other lanes of the warp; returns this lane's part of each.
#[track_caller]
pub(crate) fn load_matrices<const COUNT: usize>(
    function: &'static str,
    row: *const u8,
    is_transposed: bool,
) -> [u32; COUNT] {
    let operation = WarpOperation::LoadMatrices {
        count: COUNT,
        is_transposed,
    };
    // The thread that completes the operation reads there.
    let row = Registers::of(&[row.expose_provenance() as u64], |&address| address);
    let fragments = [row, Registers::default(), Registers::default()];
    let loaded = exchange_fragments(CallSite::here(function), operation, fragments);
    std::array::from_fn(|i| loaded.0[i] as u32)
}

/// Stores matrices, together with all other lanes of the warp, each with its part of them.
#[track_caller]
pub(crate) fn store_matrices(function: &'static str, row: *mut u8, parts: [u32; 4]) {
    // The thread that completes the operation writes there.
    let row = Registers::of(&[row.expose_provenance() as u64], |&address| address);
    let parts = Registers::of(&parts, |&part| part.into());
    let fragments = [row, parts, Registers::default()];
    exchange_fragments(
        CallSite::here(function),
        WarpOperation::StoreMatrices,
        fragments,
    );
}

/// Waits for all lanes of the warp; returns what takes C's place.
fn exchange_fragments(
    site: CallSite,
    operation: WarpOperation,
    fragments: [Registers; 3],
) -> Registers {
    let thread = current::thread();
    thread.fragments.set(fragments);
    warp_exchange(site, operation, u32::MAX, 0);
    thread.fragments.get()[2]
}

/// Completes every operation of a warp that all of its lanes have reached; returns whether there
/// was one.
pub(super) fn complete_warp(block: &Block, warp: &[Thread]) -> Result<bool, Fault> {
    let mut any = false;
    for thread in warp {
        if let Some(call) = thread.warp_call()
            && let Some(calls) = participants(warp, call)
        {
            complete(block, warp, call.0, &calls)?;
            any = true;
        }
    }
    Ok(any)
}

/// The calls of all lanes of the mask, by lane, if all have reached `call`.
fn participants(
    warp: &[Thread],
    (site, of_warp): (CallSite, WarpCall),
) -> Option<[Option<WarpCall>; 32]> {
    let mut calls = [None; 32];
    for lane in lanes_of(of_warp.mask) {
        let (other, of_other) = warp.get(lane)?.warp_call()?;
        if of_other.mask != of_warp.mask || !other.is_same(&site) {
            return None;
        }
        calls[lane] = Some(of_other);
    }
    Some(calls)
}

/// Gives every participant its result and lets it continue.
fn complete(
    block: &Block,
    warp: &[Thread],
    site: CallSite,
    calls: &[Option<WarpCall>; 32],
) -> Result<(), Fault> {
    // All lanes have made the same call.
    match calls[0].map(|call| call.operation) {
        Some(WarpOperation::Multiply(multiplication)) => {
            complete_multiplication(multiplication, warp)
        }
        Some(WarpOperation::LoadMatrices {
            count,
            is_transposed,
        }) => complete_load(count, is_transposed, block, warp, site)?,
        Some(WarpOperation::StoreMatrices) => complete_store(block, warp, site)?,
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
            | WarpOperation::LoadMatrices { .. }
            | WarpOperation::StoreMatrices => 0,
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
                        let mask = call.mask;
                        let problem =
                            format!("reads lane {source}, which its mask {mask:#010x} leaves out.");
                        return Err(current::invalid_operation(block, thread, site, problem));
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
    count: usize,
    is_transposed: bool,
    block: &Block,
    warp: &[Thread],
    site: CallSite,
) -> Result<(), Fault> {
    let mut rows = [[[0_u8; 2]; 8]; 32];
    for (thread, row) in warp.iter().zip(&mut rows).take(8 * count) {
        let pointer = row_of_matrix(block, thread, site)?;
        // SAFETY: 16 bytes of the block's shared memory, which is initialized, and whose threads
        // are all suspended.
        *row = unsafe { pointer.read() };
    }
    for (lane, thread) in warp.iter().enumerate() {
        let [a, b, mut parts] = thread.fragments.get();
        for (matrix, part) in parts.0.iter_mut().enumerate().take(count) {
            let element = |row: usize, col: usize| match is_transposed {
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
fn complete_store(block: &Block, warp: &[Thread], site: CallSite) -> Result<(), Fault> {
    for (number, thread) in warp.iter().enumerate() {
        let pointer = row_of_matrix(block, thread, site)?;
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

/// The row whose address a lane gives.
fn row_of_matrix(
    block: &Block,
    thread: &Thread,
    site: CallSite,
) -> Result<*mut [[u8; 2]; 8], Fault> {
    let address = thread.fragments.get()[0].0[0] as usize;
    let pointer: *mut [[u8; 2]; 8] = std::ptr::with_exposed_provenance_mut(address);
    let is_shared = block.shared_memory.borrow().contains(pointer.cast(), 16);
    if is_shared && address.is_multiple_of(16) {
        return Ok(pointer);
    }
    let problem = format!(
        "of a row at {pointer:p}; it must be 16 bytes of the block's shared memory, at a multiple of 16."
    );
    Err(current::invalid_operation(block, thread, site, problem))
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}
