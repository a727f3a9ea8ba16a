//! What ranks wait for messages that travel while they multiply.
//!
//! An adapter of a network carries a message meanwhile. Inside one machine a core copies it: the
//! receiver's, all at once, where MPI may read another process's memory. Where it may not, both
//! ranks copy it piece by piece, whenever they are inside of MPI: in between they multiply a strip,
//! and the message takes many times as long as alone.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};

use super::{Local, LocalShape, median_of};
use crate::Element;
use crate::comm::{Outgoing, Ranks};
use crate::layout::{in_strips, overlapped};
use crate::local::LocalError;
use crate::model::Waited;
use crate::volume::Volume;

/// Panels that travel from rank 0 to rank 1, all but the first beside a product.
const PANELS: usize = 6;

/// What rank 0 does once it has started to send a panel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// It multiplies, and starts to send others, before it waits, as in `overlapped`.
    GoesOn,
    /// It waits before it multiplies the panel, as the root of a broadcast does.
    Waits,
}

/// How long a rank waits.
#[derive(Clone, Copy, Default)]
struct Waiting {
    /// For the first panel, beside which it does not multiply.
    first: Duration,
    others: Duration,
}

/// Seconds that ranks wait for one panel.
pub(super) struct Waits {
    /// The first, while its sender goes on.
    first: f64,
    /// Another, while its sender goes on.
    messages: f64,
    /// Another, whose sender waits.
    broadcasts: f64,
}

impl Waits {
    /// What was measured of one product at several times: the medians.
    pub(super) fn median(measured: &[Waits]) -> Waits {
        Waits {
            first: median_of(measured, |one| one.first),
            messages: median_of(measured, |one| one.messages),
            broadcasts: median_of(measured, |one| one.broadcasts),
        }
    }

    /// As a part of the seconds that such a panel takes alone.
    pub(super) fn beside(&self, alone: f64) -> Waited {
        Waited {
            first: self.first / alone,
            messages: self.messages / alone,
            broadcasts: self.broadcasts / alone,
        }
    }
}

/// What ranks wait for panels of A and B that travel beside their product; of B alone, if panels
/// are columns of it. All ranks must call it, and all get the same answer.
///
/// # Errors
///
/// A product fails.
pub(super) fn measure<T: Element>(
    ranks: &Ranks,
    product: &LocalShape,
    local: &Local<'_, T>,
) -> Result<Waits, LocalError> {
    let longest = |sender| -> Result<[f64; 2], LocalError> {
        let own = wait_for_panels(ranks, product, local, sender)?;
        let own = [own.first, own.others].map(|waiting| waiting.as_secs_f64());
        let all = ranks.all_gather(&own);
        let (all, _) = all.as_chunks();
        let longest = |of: usize| all.iter().map(|one: &[f64; 2]| one[of]).fold(0.0, f64::max);
        Ok([longest(0), longest(1) / (PANELS - 1) as f64])
    };
    let [first, messages] = longest(Sender::GoesOn)?;
    let [_, broadcasts] = longest(Sender::Waits)?;
    Ok(Waits {
        first,
        messages,
        broadcasts,
    })
}

/// What travels for one product.
pub(super) fn message(product: &LocalShape) -> Volume {
    let (rows, columns) = travelling(product);
    Volume::of(1, (rows * columns) as u64)
}

/// Rows and columns of what travels. A panel of A, which lies before B's, has as many rows of `m`
/// elements as it has columns.
fn travelling(product: &LocalShape) -> (usize, usize) {
    let Shape { m, n, k } = product.shape;
    match product.adds {
        true => (k, m + n),
        false => (k, n),
    }
}

/// How long this rank waits for all panels.
fn wait_for_panels<T: Element>(
    ranks: &Ranks,
    product: &LocalShape,
    local: &Local<'_, T>,
    sender: Sender,
) -> Result<Waiting, LocalError> {
    let Shape { m, n, k } = product.shape;
    let operands = vec![T::from_integer(1); m * k + k * n];
    let (a, b) = operands.split_at(m * k);
    let (rows, columns) = travelling(product);
    let elements = rows * columns;
    let mut c = vec![T::Sum::default(); m * n];
    let multiply = |c: &mut Vec<T::Sum>, progress: &mut dyn FnMut()| {
        let (a, b) = (View::new(a, m, k, k), View::new(b, k, n, n));
        let strip = local.product.rows_of_a_strip();
        in_strips(strip, a, ViewMut::new(c, m, n, n), |a, c| {
            local.product.add_product(a, b, c)?;
            progress();
            Ok::<_, LocalError>(())
        })
    };
    let mut waiting = Waiting::default();
    ranks.barrier();
    match ranks.rank() {
        0 => {
            let panel = &operands[operands.len() - elements..];
            let panel = View::new(panel, rows, columns, columns);
            let (ahead, kept) = match sender {
                Sender::GoesOn => (overlapped::AHEAD, overlapped::AHEAD),
                Sender::Waits => (1, 0),
            };
            let mut sent: VecDeque<Outgoing<'_, T>> = VecDeque::new();
            sent.push_back(ranks.start_send(&[panel], 1));
            if sender == Sender::Waits {
                timed(&mut waiting.first, || {
                    sent.drain(..).for_each(Outgoing::wait);
                });
            }
            let mut started = 1;
            for multiplied in 0..PANELS {
                timed(&mut waiting.others, || {
                    while sent.len() > kept {
                        sent.pop_front().into_iter().for_each(Outgoing::wait);
                    }
                    while started < PANELS.min(multiplied + 1 + ahead) {
                        sent.push_back(ranks.start_send(&[panel], 1));
                        started += 1;
                    }
                });
                multiply(&mut c, &mut || {
                    timed(&mut waiting.others, || {
                        sent.iter_mut().for_each(|one| {
                            one.test();
                        });
                    });
                })?;
            }
            timed(&mut waiting.others, || {
                sent.drain(..).for_each(Outgoing::wait);
            });
        }
        1 => {
            let receive = |room| ranks.start_receive(room, rows, columns, 0);
            let mut arriving = receive(vec![T::default(); elements]);
            let mut room = vec![T::default(); elements];
            let mut phase = &mut waiting.first;
            for _ in 1..PANELS {
                let arrived = timed(phase, || arriving.wait());
                phase = &mut waiting.others;
                arriving = receive(std::mem::replace(&mut room, arrived));
                multiply(&mut c, &mut || {
                    timed(phase, || {
                        arriving.test();
                    });
                })?;
            }
            timed(phase, || arriving.wait());
            multiply(&mut c, &mut || ())?;
        }
        _ => {
            for _ in 0..PANELS {
                multiply(&mut c, &mut || ())?;
            }
        }
    }
    Ok(waiting)
}

/// Adds the time of this work.
fn timed<R>(to: &mut Duration, work: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let made = work();
    *to += started.elapsed();
    made
}
