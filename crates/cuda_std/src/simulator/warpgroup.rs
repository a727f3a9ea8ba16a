//! What the 128 threads of a warpgroup multiply.

use super::block::{Block, State, Thread};
use super::call::{Awaits, Call};
use super::mma::Products;
use super::{Fault, current};
use crate::wgmma::{Tile, a_place, sum_place};
use std::collections::VecDeque;

const THREADS: usize = 128;
/// Sums of a thread, at most.
const MOST_SUMS: usize = 128;

/// Where A is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// In shared memory.
    Tile(Tile),
    /// In registers, of which these are one thread's.
    Registers([u32; 4]),
}

/// A multiplication that has been issued.
#[derive(Clone, Copy, Debug)]
struct Multiplication {
    products: Products,
    /// Columns of B, and K.
    shape: (u32, u32),
    a: Operand,
    b: Tile,
    adds: bool,
    /// Where its sums are in [`PendingProducts::sums`].
    slot: usize,
}

/// Sums that are the hardware's.
#[derive(Debug, Default)]
struct PendingSums {
    /// The address by which the thread knows them; 0 if the slot is free.
    address: usize,
    values: Vec<f32>,
}

/// The multiplications of one thread that have not been performed, and its sums meanwhile.
#[derive(Debug, Default)]
pub(super) struct PendingProducts {
    sums: Vec<PendingSums>,
    open: Vec<Multiplication>,
    /// The oldest first.
    groups: VecDeque<Vec<Multiplication>>,
    is_fenced: bool,
}

impl PendingProducts {
    pub fn drop_all(&mut self) {
        *self = Self::default();
    }

    /// The slot of these sums, if they are the hardware's.
    fn slot_of(&self, sums: &[f32]) -> Option<usize> {
        let address = sums.as_ptr().addr();
        self.sums.iter().position(|slot| slot.address == address)
    }

    /// Whether no multiplication is left that adds to the sums in this slot.
    fn is_idle(&self, slot: usize) -> bool {
        let groups = self.groups.iter().chain([&self.open]);
        groups.flatten().all(|one| one.slot != slot)
    }

    /// Takes sums from the thread, and returns their slot.
    fn take(&mut self, sums: &[f32]) -> usize {
        debug_assert!(sums.len() <= MOST_SUMS);
        let free = self.sums.iter().position(|slot| slot.address == 0);
        let slot = free.unwrap_or(self.sums.len());
        if slot == self.sums.len() {
            self.sums.push(PendingSums::default());
        }
        self.sums[slot] = PendingSums {
            address: sums.as_ptr().addr(),
            values: sums.to_vec(),
        };
        slot
    }
}

/// Orders the use of registers.
#[track_caller]
pub(crate) fn warpgroup_fence() {
    if let Some((_, thread)) = current::waits_here() {
        thread.products.borrow_mut().is_fenced = true;
    }
}

/// Closes the current thread's group of multiplications.
#[track_caller]
pub(crate) fn warpgroup_commit() {
    if let Some((_, thread)) = current::waits_here() {
        let mut products = thread.products.borrow_mut();
        let group = std::mem::take(&mut products.open);
        products.groups.push_back(group);
    }
}

/// Issues a multiplication. The sums are NaN until a wait for it.
#[track_caller]
pub(crate) fn warpgroup_multiply(
    function: &'static str,
    products: Products,
    shape: (u32, u32),
    sums: &mut [f32],
    a: Operand,
    b: Tile,
    adds: bool,
) {
    let Some((_, thread)) = current::running() else {
        return;
    };
    let mut pending = thread.products.borrow_mut();
    let known = pending.slot_of(sums);
    let uses_registers = known.is_none() || matches!(a, Operand::Registers(_));
    if uses_registers && !pending.is_fenced {
        let used = match known {
            None => "the sums were used",
            Some(_) => "a wait, after which A came into registers",
        };
        current::refuse_operation(format!(
            "{function}() without a wgmma::fence() since {used}."
        ));
    }
    let slot = known.unwrap_or_else(|| pending.take(sums));
    pending.open.push(Multiplication {
        products,
        shape,
        a,
        b,
        adds,
        slot,
    });
    sums.fill(f32::NAN);
}

/// Waits for all of the warpgroup's groups but the newest. The thread gets its sums back if no
/// group adds to them that is not waited for.
#[track_caller]
pub(crate) fn warpgroup_wait(function: &'static str, but_newest: usize, sums: &mut [f32]) {
    let Some((_, thread)) = current::waits_here() else {
        return;
    };
    current::wait(function, Awaits::Warpgroup { but_newest });
    let mut pending = thread.products.borrow_mut();
    // Without a multiplication before it the wait changes nothing.
    if let Some(slot) = pending.slot_of(sums)
        && pending.is_idle(slot)
    {
        let computed = std::mem::take(&mut pending.sums[slot]);
        sums.copy_from_slice(&computed.values);
        pending.is_fenced = false;
    }
}

/// Completes the wait of a warpgroup that all of its threads have reached; returns whether there
/// was one.
pub(super) fn complete_warpgroup(block: &Block) -> Result<bool, Fault> {
    for warpgroup in block.threads.chunks(THREADS) {
        let Some((call, but_newest)) = common_call(warpgroup) else {
            continue;
        };
        perform(block, warpgroup, call, but_newest)?;
        for thread in warpgroup {
            thread.state.set(State::Ready);
        }
        return Ok(true);
    }
    Ok(false)
}

/// The call that all threads wait in, and how many of their groups it does not wait for.
fn common_call(warpgroup: &[Thread]) -> Option<(Call, usize)> {
    let call = |thread: &Thread| match thread.call()? {
        call @ Call {
            awaits: Awaits::Warpgroup { but_newest },
            ..
        } => Some((call, but_newest)),
        _ => None,
    };
    let first = call(warpgroup.first()?)?;
    let is_same = |thread| call(thread).is_some_and(|other| other.0.is_same(&first.0));
    (warpgroup.len() == THREADS && warpgroup.iter().all(is_same)).then_some(first)
}

/// Performs the multiplications of all groups but the newest, for each thread.
fn perform(
    block: &Block,
    warpgroup: &[Thread],
    call: Call,
    but_newest: usize,
) -> Result<(), Fault> {
    let shared = block.shared_memory.borrow();
    loop {
        // All threads have issued the same.
        let mut next = Vec::new();
        for (thread, number) in warpgroup.iter().zip(0..) {
            let mut pending = thread.products.borrow_mut();
            let group = match pending.groups.len() > but_newest {
                true => pending.groups.pop_front(),
                false => None,
            };
            next.push((thread, number, group));
        }
        let count = |group: &Option<Vec<Multiplication>>| group.as_ref().map(Vec::len);
        let differs = next.iter().find(|one| count(&one.2) != count(&next[0].2));
        if let Some((thread, ..)) = differs {
            let problem = format!(
                "{}() after other multiplications than the first thread of its warpgroup has issued.",
                call.function
            );
            return Err(current::invalid_operation(
                block, thread, call.site, problem,
            ));
        }
        let Some(multiplications) = next[0].2.clone() else {
            return Ok(());
        };
        for (index, multiplication) in multiplications.into_iter().enumerate() {
            let fragments = next.iter().filter_map(|one| one.2.as_ref());
            let fragments = fragments.map(|group| group[index].a);
            let read = |place| shared.read_of_copy(place);
            let format = multiplication.products.format();
            let Some(format) = format else {
                unreachable!("warpgroups multiply no f64")
            };
            let [a, b] = operands(&multiplication, fragments, &read).map(|bits| -> Vec<_> {
                bits.into_iter().map(|bits| format.number(bits)).collect()
            });
            let depth = multiplication.shape.1 as usize;
            for &(thread, number, _) in &next {
                let mut pending = thread.products.borrow_mut();
                let sums = &mut pending.sums[multiplication.slot].values;
                for (i, sum) in (0..).zip(sums) {
                    let (row, col) = sum_place(number, i);
                    let a = &a[row as usize * depth..][..depth];
                    let b = &b[col as usize * depth..][..depth];
                    let c = match multiplication.adds {
                        true => *sum,
                        false => 0.0,
                    };
                    *sum = f32::from_bits(format.sum(a, b, c.to_bits()));
                }
            }
        }
    }
}

/// The elements of A, row by row, and of B, column by column, as bits. `fragments` are A as each
/// thread has it.
fn operands(
    multiplication: &Multiplication,
    fragments: impl Iterator<Item = Operand>,
    read: &dyn Fn(usize) -> [u8; 2],
) -> [Vec<u64>; 2] {
    let (columns, depth) = multiplication.shape;
    let element_bytes = 32 / depth;
    let element = |tile: Tile, row: u32, k: u32| {
        let halves = (0..element_bytes / 2).map(|half| {
            let bytes = read(tile.place(row, k, element_bytes, 2 * half));
            u64::from(u16::from_le_bytes(bytes)) << (16 * half)
        });
        halves.sum()
    };
    let matrix = |tile: Tile, rows: u32| -> Vec<u64> {
        let places = (0..rows).flat_map(|row| (0..depth).map(move |k| (row, k)));
        places.map(|(row, k)| element(tile, row, k)).collect()
    };
    let a = match multiplication.a {
        Operand::Tile(tile) => matrix(tile, 64),
        Operand::Registers(_) => {
            let mut a = vec![0; 64 * depth as usize];
            for (thread, fragment) in (0..).zip(fragments) {
                if let Operand::Registers(registers) = fragment {
                    for (i, bits) in (0..).zip(registers) {
                        let (row, k) = a_place(thread, i);
                        a[(row * depth + k) as usize] = bits.into();
                    }
                }
            }
            a
        }
    };
    [a, matrix(multiplication.b, columns)]
}
