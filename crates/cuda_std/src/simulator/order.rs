//! The order in which the threads of a block are scheduled.

use super::WARP_SIZE;

/// The order in which a block's threads run between two barriers.
///
/// A correct kernel gives the same result in every order.
///
/// In an order by threads, each thread of the block runs to its next wait of any kind before any of
/// them continues. So a shuffle synchronizes all warps, which may hide a missing barrier. In an
/// order by warps, a shuffle synchronizes only the lanes of its warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// From the first thread to the last.
    #[default]
    Forward,
    /// From the last thread to the first.
    Reverse,
    /// Warp by warp, from the first to the last, each to the next barrier of its block or its end:
    /// the first warp runs ahead of all the others, the last one lags behind them.
    FirstWarpAhead,
    /// The same from the last warp to the first. Of any two warps, each runs ahead of the other in
    /// one of these two orders.
    LastWarpAhead,
    /// At once: what a thread writes to its block's shared memory, others see only after all of them
    /// have come to their next wait of any kind. So of two that add to one word without an atomic,
    /// one is lost, and it shows if a thread reads what another writes between the same barriers.
    /// That is no order for kernels with atomics in shared memory, whose results would be lost, too:
    /// it is not one of [`Self::ALL`].
    ///
    /// ```
    /// # use cuda_std::simulator::{Launch, ThreadOrder};
    /// # use cuda_std::{block, shared_array, thread};
    /// let count = |data: *mut u32| unsafe {
    ///     let sum = shared_array![u32; 1];
    ///     if thread::thread_idx_x() == 0 {
    ///         *sum = 0;
    ///     }
    ///     thread::sync_threads();
    ///     *sum += 1; // read, add, write: another thread may do the same meanwhile
    ///     thread::sync_threads();
    ///     *data = *sum;
    /// };
    /// let launch = Launch::new(1, 64).thread_order(ThreadOrder::AtOnce);
    /// let fault = launch.run_in_all_orders(&mut [0], count).unwrap_err();
    /// assert!(fault.to_string().contains("in the order AtOnce, element 0 is 1, not 64"));
    /// ```
    AtOnce,
    /// Shuffled at each barrier, in a way that depends only on the seed and the block. If the seed
    /// is odd, the copy engine reads what it stores as early as it may, otherwise as late. If it is
    /// even, a thread whose arrival ends a phase of an `mbarrier` continues as late as it may, after
    /// those that waited for it, otherwise at once.
    Random(u64),
}

impl ThreadOrder {
    /// One of each kind that suits all kernels, and both kinds of seeds: the orders in which to test a kernel, as
    /// [`Launch::run_in_all_orders`](super::Launch::run_in_all_orders) does.
    pub const ALL: [Self; 6] = [
        Self::Forward,
        Self::Reverse,
        Self::FirstWarpAhead,
        Self::LastWarpAhead,
        Self::Random(1),
        Self::Random(2),
    ];

    /// Whether the copy engine reads what it stores as early as it may.
    pub(super) fn stores_read_early(self) -> bool {
        matches!(self, ThreadOrder::Random(seed) if seed % 2 == 1)
    }

    /// Whether a thread that has ended a phase of a barrier continues as late as it may.
    pub(super) fn arrivals_yield(self) -> bool {
        matches!(self, ThreadOrder::Random(seed) if seed % 2 == 0)
    }
}

/// The schedule of one block.
pub(super) struct Schedule {
    threads: Vec<u32>,
    /// Whether each warp runs as far as it can before the next one does.
    by_warp: bool,
    pub at_once: bool,
    /// The number of openings of the block's barrier after which threads run forward.
    until: usize,
    /// State of the generator, if the order is random.
    random: Option<u64>,
}

impl Schedule {
    /// The schedule of the first pass of block number `block`. Threads run in this order until the
    /// block's barrier has opened `until` times, and forward from then on.
    pub fn new(order: ThreadOrder, until: usize, threads: u32, block: u64) -> Self {
        let order = match until {
            0 => ThreadOrder::Forward,
            _ => order,
        };
        let mut schedule = Self {
            threads: (0..threads).collect(),
            by_warp: matches!(
                order,
                ThreadOrder::FirstWarpAhead | ThreadOrder::LastWarpAhead
            ),
            at_once: order == ThreadOrder::AtOnce,
            until,
            random: None,
        };
        match order {
            ThreadOrder::Forward | ThreadOrder::FirstWarpAhead | ThreadOrder::AtOnce => {}
            ThreadOrder::Reverse | ThreadOrder::LastWarpAhead => schedule.threads.reverse(),
            ThreadOrder::Random(seed) => {
                schedule.random = Some(mix(seed).wrapping_add(block));
                schedule.next_pass(0);
            }
        }
        schedule
    }

    pub fn first(&self) -> u32 {
        self.threads.first().copied().unwrap_or(0)
    }

    /// The threads that run without others in between: those of a warp if the order is by warps,
    /// else all.
    pub fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.threads
            .chunk_by(|a, b| !self.by_warp || a / WARP_SIZE == b / WARP_SIZE)
    }

    /// Whether each warp runs as far as it can before the next one does.
    pub fn by_warp(&self) -> bool {
        self.by_warp
    }

    /// Advances to the next pass; `openings` is how often the block's barrier has opened so far.
    pub fn next_pass(&mut self, openings: usize) {
        if openings >= self.until {
            self.threads.sort_unstable();
            (self.by_warp, self.at_once, self.random) = (false, false, None);
        }
        let Some(state) = &mut self.random else {
            return;
        };
        // Fisher and Yates; the bias of a remainder of 64 bits by at most 1024 does not matter
        // here.
        for last in (1..self.threads.len()).rev() {
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let other = mix(*state) % (last as u64 + 1);
            self.threads.swap(last, other as usize);
        }
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_three_threads_turns_up() {
        let random = |number: u64| {
            let order = ThreadOrder::Random(number % 10);
            Schedule::new(order, usize::MAX, 3, number / 10).threads
        };
        let mut orders: Vec<_> = (0..100).map(random).collect();
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 6);
    }
}
