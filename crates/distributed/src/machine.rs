//! What a model needs to know about this machine, measured: a ping-pong between two ranks, and
//! one product on each rank.

use std::time::Instant;

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};
use host::statistics;

use crate::Element;
use crate::comm::Ranks;
use crate::local::{LocalError, LocalProduct};
use crate::model::{Case, Machine};
use crate::share_out::largest_share;

/// Round trips without content, and with.
const SHORT_TRIPS: usize = 50;
const LONG_TRIPS: usize = 7;
/// Elements of the long messages at most.
const LONG: usize = 1 << 22;
/// Rows of the product that is timed at most, and how often it is.
const ROWS: usize = 256;
const PRODUCTS: usize = 3;

/// Measures latency and bandwidth between ranks 0 and 1, and the speed of a product such as
/// `case` gives each rank while all multiply. All ranks must call it, and all get the same
/// answer. A group of one sends nothing: its latency is zero, its bandwidth infinite.
///
/// # Errors
///
/// The product fails.
pub fn measure<T: Element>(
    ranks: &Ranks,
    case: &Case,
    local: &dyn LocalProduct<T>,
    offload: bool,
) -> Result<Machine, LocalError> {
    let Shape { m, n, k } = case.shape;
    let (mut latency_s, mut bytes_per_s) = (0.0, f64::INFINITY);
    if ranks.size() > 1 {
        latency_s = ping_pong::<T>(ranks, 1, SHORT_TRIPS);
        let elements = (largest_share(m, ranks.size()) * k + k * n).clamp(2, LONG);
        let travelling = ping_pong::<T>(ranks, elements, LONG_TRIPS) - latency_s;
        bytes_per_s = (elements * size_of::<T>()) as f64 / travelling.max(1e-9);
    }
    let (m, n, k) = (
        largest_share(m, ranks.size()).clamp(1, ROWS),
        n.max(1),
        k.max(1),
    );
    let (a, b) = (
        vec![T::from_integer(1); m * k],
        vec![T::from_integer(1); k * n],
    );
    let mut c = vec![T::default(); m * n];
    let mut fastest = f64::INFINITY;
    for _ in 0..PRODUCTS {
        ranks.barrier();
        let started = Instant::now();
        let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
        local.add_product(a, b, ViewMut::new(&mut c, m, n, n))?;
        let slowest = ranks
            .all_gather(&[started.elapsed().as_secs_f64()])
            .into_iter()
            .fold(0.0, f64::max);
        fastest = slowest.min(fastest);
    }
    let mut measured = [
        latency_s,
        bytes_per_s,
        Shape::new(m, n, k).flops() / fastest,
    ];
    ranks.from_first(&mut measured);
    let [latency_s, bytes_per_s, flops_per_s] = measured;
    ranks.take_sent();
    Ok(Machine {
        latency_s,
        bytes_per_s,
        flops_per_s,
        offload,
    })
}

/// The median time of one way between ranks 0 and 1, in seconds; 0 on the others. The message has
/// two parts, as those of the layouts have.
fn ping_pong<T: Element>(ranks: &Ranks, elements: usize, trips: usize) -> f64 {
    let mut buffer = vec![T::default(); elements];
    let mut times = Vec::new();
    ranks.barrier();
    for _ in 0..trips {
        let half = elements / 2;
        let started = Instant::now();
        let send = |buffer: &[T], to| {
            let (one, other) = buffer.split_at(half);
            let parts = [one, other].map(|part| View::new(part, 1, part.len(), part.len()));
            ranks.send(&parts, to);
        };
        let receive = |buffer: &mut [T], from| {
            let (one, other) = buffer.split_at_mut(half);
            let parts = [one, other].map(|part| {
                let length = part.len();
                ViewMut::new(part, 1, length, length)
            });
            ranks.receive(parts.into(), from);
        };
        match ranks.rank() {
            0 => {
                send(&buffer, 1);
                receive(&mut buffer, 1);
            }
            1 => {
                receive(&mut buffer, 0);
                send(&buffer, 0);
            }
            _ => (),
        }
        times.push(started.elapsed().as_secs_f64() / 2.0);
    }
    match ranks.rank() {
        0 => statistics::median(&times),
        _ => 0.0,
    }
}
