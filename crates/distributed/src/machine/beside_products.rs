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

use super::Local;
use crate::Element;
use crate::comm::{Outgoing, Ranks};
use crate::layout::{in_strips, overlapped};
use crate::local::LocalError;
use crate::model::{Lie, Machine, Waited};
use crate::volume::Volume;

/// Panels that travel from rank 0 to rank 1, each beside a product.
const PANELS: usize = 4;

/// What ranks wait for rows of B that travel beside such a product of a panel, as a part of what a
/// message of as many elements takes alone (`machine`). All ranks must call it, and all get the same
/// answer.
///
/// # Errors
///
/// A product fails, or there is no memory.
pub(super) fn measure<T: Element>(
    ranks: &Ranks,
    product: Shape,
    local: &Local<'_, T>,
    machine: &Machine,
) -> Result<Waited, LocalError> {
    let message = Volume::of(1, (product.n * product.k) as u64);
    let alone = machine.sending(message, Lie::Together, size_of::<T>());
    let part = |under_way| -> Result<f64, LocalError> {
        let own = wait_for_panels(ranks, product, local, under_way)?.as_secs_f64();
        let longest = ranks.all_gather(&[own]).into_iter().fold(0.0, f64::max);
        Ok(longest / (PANELS as f64 * alone))
    };
    Ok(Waited {
        messages: part(overlapped::AHEAD)?,
        broadcasts: part(0)?,
    })
}

/// How long this rank waits for all panels. Before rank 0 starts to send one, at most so many others
/// are under way.
fn wait_for_panels<T: Element>(
    ranks: &Ranks,
    Shape { m, n, k }: Shape,
    local: &Local<'_, T>,
    under_way: usize,
) -> Result<Duration, LocalError> {
    let (a, b) = (
        vec![T::from_integer(1); m * k],
        vec![T::from_integer(1); k * n],
    );
    let mut c = vec![T::Sum::default(); m * n];
    let mut waited = Duration::ZERO;
    let mut wait = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        waited += started.elapsed();
    };
    let multiplied = |c: &mut Vec<T::Sum>, progress: &mut dyn FnMut()| {
        let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
        let strip = local.product.rows_of_a_strip();
        in_strips(strip, a, ViewMut::new(c, m, n, n), |a, c| {
            local.product.add_product(a, b, c)?;
            progress();
            Ok::<_, LocalError>(())
        })
    };
    ranks.barrier();
    match ranks.rank() {
        0 => {
            let panel = View::new(&b, k, n, n);
            let mut sent: VecDeque<Outgoing<'_, T>> = VecDeque::new();
            let mut started = 0;
            for of_panel in 0..PANELS {
                wait(&mut || {
                    while sent.len() > under_way {
                        sent.pop_front().into_iter().for_each(Outgoing::wait);
                    }
                    while started < PANELS.min(of_panel + 1 + under_way) {
                        sent.push_back(ranks.start_send(&[panel], 1));
                        started += 1;
                    }
                });
                multiplied(&mut c, &mut || {
                    wait(&mut || {
                        sent.iter_mut().for_each(|one| {
                            one.test();
                        });
                    });
                })?;
            }
            wait(&mut || sent.drain(..).for_each(Outgoing::wait));
        }
        1 => {
            let mut room = vec![T::default(); k * n];
            for _ in 0..PANELS {
                let mut arriving = Some(ranks.start_receive(std::mem::take(&mut room), k, n, 0));
                multiplied(&mut c, &mut || {
                    wait(&mut || {
                        arriving.iter_mut().for_each(|one| {
                            one.test();
                        });
                    });
                })?;
                wait(&mut || {
                    if let Some(arriving) = arriving.take() {
                        room = arriving.wait();
                    }
                });
            }
        }
        _ => {
            for _ in 0..PANELS {
                multiplied(&mut c, &mut || ())?;
            }
        }
    }
    Ok(waited)
}
