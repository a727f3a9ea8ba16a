//! The order in which the threads of a block are scheduled.

/// The order in which a block's threads run between two barriers.
///
/// A correct kernel gives the same result in every order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// From the first thread to the last.
    #[default]
    Forward,
    /// From the last thread to the first.
    Reverse,
    /// Shuffled at each barrier, in a way that depends only on the seed and the block. If the seed
    /// is odd, the copy engine reads what it stores as early as it may, otherwise as late. If it is
    /// even, a thread whose arrival ends a phase of an `mbarrier` continues as late as it may, after
    /// those that waited for it, otherwise at once.
    Random(u64),
}

impl ThreadOrder {
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
pub(super) struct Turns {
    threads: Vec<u32>,
    /// State of the generator, if the order is random.
    random: Option<u64>,
}

impl Turns {
    /// The schedule of the first pass of block number `block`.
    pub fn new(order: ThreadOrder, threads: u32, block: u64) -> Self {
        let mut turns = Self {
            threads: (0..threads).collect(),
            random: None,
        };
        match order {
            ThreadOrder::Forward => {}
            ThreadOrder::Reverse => turns.threads.reverse(),
            ThreadOrder::Random(seed) => {
                turns.random = Some(mix(seed).wrapping_add(block));
                turns.next_pass();
            }
        }
        turns
    }

    pub fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// Advances to the order after a barrier.
    pub fn next_pass(&mut self) {
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
    fn random_turns_are_a_permutation_that_seed_block_and_pass_change() {
        let first = Turns::new(ThreadOrder::Random(7), 100, 0);
        let mut sorted = first.threads().to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());

        let same = Turns::new(ThreadOrder::Random(7), 100, 0);
        assert_eq!(first.threads(), same.threads());
        let other_block = Turns::new(ThreadOrder::Random(7), 100, 1);
        assert_ne!(first.threads(), other_block.threads());
        let other_seed = Turns::new(ThreadOrder::Random(8), 100, 0);
        assert_ne!(first.threads(), other_seed.threads());
        let mut next_pass = same;
        next_pass.next_pass();
        assert_ne!(first.threads(), next_pass.threads());
    }

    #[test]
    fn every_order_of_three_threads_turns_up() {
        let mut orders: Vec<_> = (0..100)
            .map(|seed| Turns::new(ThreadOrder::Random(seed), 3, 0).threads)
            .collect();
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 6);
    }
}
