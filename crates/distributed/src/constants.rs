//! The three constants of the model, measured: the latency and the bandwidth of messages, and the
//! speed of products.

use std::time::Instant;

use gpu_gemm::Shape;
use host::statistics;
use verification::cpu::view::{View, ViewMut};

use crate::Element;
use crate::clock::{Clock, Phase};
use crate::comm::Ranks;
use crate::layout::LayoutError;
use crate::local::{LocalProduct, are_all_on_gpus};
use crate::model::Machine;

/// Elements of the long message that is timed, of f32.
const LONG: usize = 1 << 20;
/// Messages, and products, of which the median is taken.
const MESSAGES: usize = 11;
const PRODUCTS: usize = 3;

/// The longest side of the product that is timed: one that takes a CPU milliseconds, and one that
/// fills a GPU.
const SIDE: usize = 512;
const SIDE_ON_GPUS: usize = 4096;

/// Measures the three constants: messages between ranks 0 and 1, and products on all ranks at once, of
/// at most this shape. All ranks call it, and all get the same answer.
pub fn measure<T: Element>(
    ranks: &Ranks,
    shape: Shape,
    local: &dyn LocalProduct<T>,
) -> Result<Machine, LayoutError> {
    let longest = match are_all_on_gpus(ranks, local) {
        true => SIDE_ON_GPUS,
        false => SIDE,
    };
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size.clamp(1, longest));
    let shape = Shape::new(m, n, k);
    let (a, b) = (
        vec![T::from_integer(1); m * k],
        vec![T::from_integer(1); k * n],
    );
    let mut c = vec![T::Sum::default(); m * n];
    let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
    let mut product_s = Vec::new();
    // The first may compile its kernel.
    for run in 0..=PRODUCTS {
        ranks.barrier();
        let clock = Clock::default();
        local.begin(m, n)?;
        let c = ViewMut::new(&mut c, m, n, n);
        local.add(&clock, Phase::Distribute, (a, b), c, None)?;
        local.wait(&clock)?;
        let all = ranks.all_gather(&[clock.times().compute_s]);
        if run > 0 {
            product_s.push(all.into_iter().fold(1e-9, f64::max));
        }
    }
    let mut found = [0.0, f64::INFINITY];
    if ranks.size() > 1 {
        let (short, long) = (one_way(ranks, 1), one_way(ranks, LONG));
        let bytes = (LONG * size_of::<f32>()) as f64;
        found = [short, bytes / (long - short).max(1e-9)];
        // The others may share cores with these two.
        ranks.rest_until_all_are_here();
        found = ranks.from_first(found);
    }
    ranks.take_sent();
    Ok(Machine {
        latency_s: found[0],
        bytes_per_s: found[1],
        flops_per_s: shape.flops() / statistics::median(&product_s),
    })
}

/// The time of a message of `elements` from rank 0 to rank 1: half of a round trip.
fn one_way(ranks: &Ranks, elements: usize) -> f64 {
    let mut buffer = vec![0.0_f32; elements];
    let mut times = Vec::new();
    for _ in 0..MESSAGES {
        let started = Instant::now();
        let other = match ranks.rank() {
            0 => 1,
            1 => 0,
            _ => return 0.0,
        };
        for turn in 0..2 {
            match turn == ranks.rank() {
                true => ranks.send(&[View::new(&buffer, 1, elements, elements)], other),
                false => {
                    let to = ViewMut::new(&mut buffer, 1, elements, elements);
                    ranks.receive(vec![to], other);
                }
            }
        }
        times.push(started.elapsed().as_secs_f64() / 2.0);
    }
    statistics::median(&times)
}
