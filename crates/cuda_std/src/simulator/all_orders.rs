//! Running a kernel in all orders of the threads, and finding where their order matters.

use super::{BarrierSite, Fault, Launch, Report, ThreadOrder};
use crate::warp::WarpShuffleValue;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicPtr, Ordering};

impl Launch {
    /// Runs the kernel in every order of [`ThreadOrder::ALL`], and in the launch's own if that is
    /// another, each time on the same contents of `memory`, to whose first element the kernel gets
    /// a pointer. All must leave the same bits there. `memory` keeps what the order forward leaves.
    ///
    /// ```
    /// # use cuda_std::simulator::Launch;
    /// # use cuda_std::{shared_array, thread};
    /// let mut data: Vec<f32> = (0..64).map(|i| i as f32).collect();
    /// let reversal = |data: *mut f32| unsafe {
    ///     let staged = shared_array![f32; 64];
    ///     let i = thread::thread_idx_x() as usize;
    ///     *staged.add(i) = *data.add(i);
    ///     thread::sync_threads(); // every element is staged
    ///     *data.add(i) = *staged.add(63 - i);
    /// };
    /// Launch::new(1, 64).run_in_all_orders(&mut data, reversal)?;
    /// assert_eq!(data[0], 63.0);
    /// # Ok::<(), cuda_std::simulator::Fault>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The [`Fault`] of the order forward; or [`Fault::OrderDependent`], which names an order that
    /// has another result, and the barriers between which one is missing.
    pub fn run_in_all_orders<T: WarpShuffleValue + Debug>(
        &self,
        memory: &mut [T],
        kernel: impl Fn(*mut T) + Sync,
    ) -> Result<Report, Fault> {
        let before = memory.to_vec();
        let mut run = |order, order_until| {
            memory.copy_from_slice(&before);
            let start = AtomicPtr::new(memory.as_mut_ptr());
            let launch = Self {
                order,
                order_until,
                ..self.clone()
            };
            let report = launch.run(|| kernel(start.load(Ordering::Relaxed)))?;
            Ok((memory.to_vec(), report))
        };
        let (expected, report) = run(ThreadOrder::Forward, usize::MAX)?;
        let own = (!ThreadOrder::ALL.contains(&self.order)).then_some(self.order);
        for order in ThreadOrder::ALL.into_iter().chain(own) {
            let mut difference = |order_until| match run(order, order_until) {
                Ok((found, _)) => difference(&found, &expected),
                Err(fault) => Some(format!("there is a fault: {fault}")),
            };
            if let Some(difference_of_order) = difference(usize::MAX) {
                let differs = |order_until| difference(order_until).is_some();
                return Err(Fault::OrderDependent {
                    order,
                    difference: difference_of_order,
                    between: interval(&report.openings, differs),
                });
            }
        }
        memory.copy_from_slice(&expected);
        Ok(report)
    }
}

/// The first element whose bits are not the expected ones.
fn difference<T: WarpShuffleValue + Debug>(found: &[T], expected: &[T]) -> Option<String> {
    let mut pairs = found.iter().zip(expected).enumerate();
    let (index, (found, expected)) =
        pairs.find(|(_, (found, expected))| bits(**found) != bits(**expected))?;
    Some(format!("element {index} is {found:?}, not {expected:?}"))
}

fn bits<T: WarpShuffleValue>(value: T) -> u128 {
    let bits = Cell::new(0);
    value.exchange(|word| {
        bits.set(bits.get() << 32 | u128::from(word));
        word
    });
    bits.get()
}

/// Two barriers that open one after the other, and between which the order makes the difference:
/// it is there if the order holds until the second one, and not if it holds until the first one.
/// `None` if it is there without the order. A barrier that is `None` is an end of the kernel.
fn interval(
    openings: &[BarrierSite],
    mut differs: impl FnMut(usize) -> bool,
) -> Option<[Option<BarrierSite>; 2]> {
    if differs(0) {
        return None;
    }
    let (mut same, mut different) = (0, openings.len() + 1);
    while different - same > 1 {
        let middle = same.midpoint(different);
        match differs(middle) {
            true => different = middle,
            false => same = middle,
        }
    }
    let first = same.checked_sub(1).and_then(|before| openings.get(before));
    Some([first.copied(), openings.get(same).copied()])
}
