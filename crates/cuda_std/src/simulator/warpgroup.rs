//! Multiplications by the 128 threads of a warpgroup.

use std::slice::Chunks;

use super::block::{Awaits, Block, Condition, State, Thread};
use super::extensions::Extension;
use super::groups::Groups;
use super::mma::{Products, truncated_sum, wrapping_sum};
use super::site::CallSite;
use super::{Fault, current};
use crate::wgmma::{Tile, a_place, sum_place};

const THREADS: usize = 128;

/// Where A is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    /// In shared memory.
    Tile(Tile),
    /// In registers: those of one thread.
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

/// Sums that the hardware holds between the first multiplication and the wait.
#[derive(Debug, Default)]
struct PendingSums {
    /// Their address in the thread; 0 if the slot is free.
    address: usize,
    /// As bits.
    values: Vec<u32>,
}

/// A type of sums, of 32 bits.
pub(crate) trait Sum: Copy {
    fn to_bits(self) -> u32;
    fn from_bits(bits: u32) -> Self;
}

impl Sum for f32 {
    fn to_bits(self) -> u32 {
        self.to_bits()
    }

    fn from_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

impl Sum for i32 {
    fn to_bits(self) -> u32 {
        self.cast_unsigned()
    }

    fn from_bits(bits: u32) -> Self {
        bits.cast_signed()
    }
}

/// The multiplications of one thread that have not been performed, and its sums meanwhile.
#[derive(Default)]
struct PendingProducts {
    sums: Vec<PendingSums>,
    groups: Groups<Multiplication>,
    is_fenced: bool,
}

impl Extension for PendingProducts {
    fn begin_block(&mut self) {
        *self = Self::default();
    }
}

impl PendingProducts {
    /// The slot of these sums, if the hardware holds them.
    fn slot_of<S>(&self, sums: &[S]) -> Option<usize> {
        let address = sums.as_ptr().addr();
        self.sums.iter().position(|slot| slot.address == address)
    }

    /// Whether no pending multiplication adds to the sums in this slot.
    fn is_idle(&self, slot: usize) -> bool {
        self.groups.items().all(|one| one.slot != slot)
    }

    /// Takes sums from the thread, and returns their slot.
    fn take<S: Sum>(&mut self, sums: &[S]) -> usize {
        let free = self.sums.iter().position(|slot| slot.address == 0);
        let slot = free.unwrap_or(self.sums.len());
        if slot == self.sums.len() {
            self.sums.push(PendingSums::default());
        }
        self.sums[slot] = PendingSums {
            address: sums.as_ptr().addr(),
            values: sums.iter().map(|sum| sum.to_bits()).collect(),
        };
        slot
    }
}

/// Orders the use of registers.
#[track_caller]
pub(crate) fn warpgroup_fence() {
    if let Some((_, thread)) = current::waits_here() {
        thread.extensions.get::<PendingProducts>().is_fenced = true;
    }
}

/// Closes the current thread's group of multiplications.
#[track_caller]
pub(crate) fn warpgroup_commit() {
    if let Some((_, thread)) = current::waits_here() {
        thread.extensions.get::<PendingProducts>().groups.commit();
    }
}

/// Issues a multiplication. The sums are NaN until a wait for it, or integers of the same bits.
#[track_caller]
pub(crate) fn warpgroup_multiply<S: Sum>(
    function: &'static str,
    products: Products,
    shape: (u32, u32),
    sums: &mut [S],
    a: Operand,
    b: Tile,
    adds: bool,
) {
    let Some((_, thread)) = current::running() else {
        return;
    };
    let mut pending = thread.extensions.get::<PendingProducts>();
    let known = pending.slot_of(sums);
    let uses_registers = known.is_none() || matches!(a, Operand::Registers(_));
    if uses_registers && !pending.is_fenced {
        let used = match known {
            None => "the sums were used",
            Some(_) => "a wait, after which A came into registers",
        };
        let problem = format!("without a wgmma::fence() since {used}.");
        current::refuse_operation(function, problem);
    }
    let slot = known.unwrap_or_else(|| pending.take(sums));
    pending.groups.issue(Multiplication {
        products,
        shape,
        a,
        b,
        adds,
        slot,
    });
    sums.fill(S::from_bits(f32::NAN.to_bits()));
}

/// Waits for all of the warpgroup's groups but the newest. The thread gets its sums back if no
/// group adds to them that is not waited for.
#[track_caller]
pub(crate) fn warpgroup_wait<S: Sum>(
    function: &'static str,
    pending_groups: usize,
    sums: &mut [S],
) {
    let Some((_, thread)) = current::waits_here() else {
        return;
    };
    let first = thread.number as usize / THREADS * THREADS;
    let wait = Awaits::Condition(&WARPGROUP, [first, pending_groups]);
    current::wait(function, wait);
    let mut pending = thread.extensions.get::<PendingProducts>();
    // Without a multiplication before it the wait changes nothing.
    if let Some(slot) = pending.slot_of(sums)
        && pending.is_idle(slot)
    {
        let computed = std::mem::take(&mut pending.sums[slot]);
        for (sum, bits) in sums.iter_mut().zip(computed.values) {
            *sum = S::from_bits(bits);
        }
        pending.is_fenced = false;
    }
}

/// The wait of a whole warpgroup, by its first thread and how many groups may stay pending.
static WARPGROUP: Condition = Condition {
    release: complete_warpgroup,
};

fn complete_warpgroup(block: &Block, numbers: [usize; 2]) -> Result<bool, Fault> {
    let [first, pending_groups] = numbers;
    let Some((warpgroup, site)) = block
        .threads
        .get(first..first + THREADS)
        .and_then(|warpgroup| Some((warpgroup, common_call(warpgroup)?)))
    else {
        return Ok(false);
    };
    perform(block, warpgroup, site, pending_groups)?;
    for thread in warpgroup {
        thread.state.set(State::Ready);
    }
    Ok(true)
}

/// The call that all threads wait in.
fn common_call(warpgroup: &[Thread]) -> Option<CallSite> {
    let call = |thread: &Thread| Some(thread.call_awaiting(&WARPGROUP)?.0);
    let first = call(warpgroup.first()?)?;
    let is_same = |thread| call(thread).is_some_and(|other| other.is_same(&first));
    warpgroup.iter().all(is_same).then_some(first)
}

/// Performs the multiplications of all groups but the newest, for each thread.
fn perform(
    block: &Block,
    warpgroup: &[Thread],
    site: CallSite,
    pending_groups: usize,
) -> Result<(), Fault> {
    let shared = block.shared_memory.borrow();
    let read = |place| shared.read_async(place);
    // All threads have issued the same.
    let mut issued: Vec<Vec<Multiplication>> = Vec::new();
    for thread in warpgroup {
        let mut pending = thread.extensions.get::<PendingProducts>();
        issued.push(pending.groups.take_all_but_newest(pending_groups).collect());
        if issued.last().map(Vec::len) != issued.first().map(Vec::len) {
            let problem =
                "after other multiplications than the first thread of its warpgroup has issued.";
            let problem = problem.to_owned();
            return Err(current::invalid_operation(block, thread, site, problem));
        }
    }
    for (index, multiplication) in issued[0].iter().enumerate() {
        let fragments = issued.iter().map(|of_thread| of_thread[index].a);
        let depth = multiplication.shape.1 as usize;
        let [a, b] = operands(multiplication, fragments, &read);
        let [a, b] = [&a, &b].map(|bits| bits.chunks(depth));
        let products = multiplication.products;
        if let Products::Integers8(..) = products {
            let integers = |operand| move |row: &[u64]| products.integers(row, operand);
            let a: Vec<_> = a.map(integers(0)).collect();
            let b: Vec<_> = b.map(integers(1)).collect();
            replace_sums(multiplication, warpgroup, |row, col, c| {
                wrapping_sum(&a[row], &b[col], c)
            });
        } else if depth <= 16 {
            multiply_floats::<16>(multiplication, warpgroup, [a, b]);
        } else {
            multiply_floats::<32>(multiplication, warpgroup, [a, b]);
        }
    }
    Ok(())
}

/// Multiplies rows of A and columns of B, each of at most `MOST` floats.
fn multiply_floats<const MOST: usize>(
    multiplication: &Multiplication,
    warpgroup: &[Thread],
    [a, b]: [Chunks<'_, u64>; 2],
) {
    let products = multiplication.products;
    let factors = |operand| move |row: &[u64]| products.factors::<MOST>(row, operand);
    let a: Vec<_> = a.map(factors(0)).collect();
    let b: Vec<_> = b.map(factors(1)).collect();
    let accumulator = products.accumulator();
    replace_sums(multiplication, warpgroup, |row, col, c| {
        truncated_sum(&a[row], &b[col], c, accumulator)
    });
}

/// Replaces each thread's sums, or zeros if the multiplication does not add, by `sum` of their row,
/// column and value.
fn replace_sums(
    multiplication: &Multiplication,
    warpgroup: &[Thread],
    sum: impl Fn(usize, usize, u32) -> u32,
) {
    for (number, thread) in (0..).zip(warpgroup) {
        let mut pending = thread.extensions.get::<PendingProducts>();
        let values = &mut pending.sums[multiplication.slot].values;
        for (i, value) in (0..).zip(values) {
            let (row, col) = sum_place(number, i);
            let c = match multiplication.adds {
                true => *value,
                false => 0,
            };
            *value = sum(row as usize, col as usize, c);
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
    let element_bytes = 32 / depth as usize;
    let matrix = |tile: Tile, rows: u32| -> Vec<u64> {
        let places = (0..rows).flat_map(|row| (0..16).map(move |half| (row, half)));
        let bytes: Vec<u8> = places
            .flat_map(|(row, half)| read(tile.place(row, half)))
            .collect();
        let number = |bytes: &[u8]| {
            let upwards = bytes.iter().rev();
            upwards.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        };
        bytes.chunks(element_bytes).map(number).collect()
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
