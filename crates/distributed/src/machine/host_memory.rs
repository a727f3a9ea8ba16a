//! What ranks do in the memory of their hosts, beside products: messages between two ranks in
//! several sizes, memory that is asked for, and sums that are rounded.

use std::time::Instant;

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};
use host::statistics;

use super::{median_of, slowest, slowest_after};
use crate::Element;
use crate::comm::Ranks;
use crate::filled::zeros;
use crate::layout::LayoutError;
use crate::local::gpu::Gpu;
use crate::model::{Case, Lie, Machine, Timed};

/// Round trips without content in a round.
const SHORT_TRIPS: usize = 50;
/// How often all else is timed in a round. There are fewer rounds beside GPUs.
const TIMES: usize = 3;
const TIMES_BESIDE_GPUS: usize = 5;
/// Elements of messages: four times as many each time.
const SHORTEST: usize = 1 << 8;
const LONGEST: usize = 1 << 22;
/// Bytes of messages at most beside GPUs, which multiply larger matrices in the same time.
const LONGEST_BESIDE_GPUS: usize = 1 << 29;
/// Elements of the buffers that messages are taken from, and that are filled with zeros, for large
/// matrices: more than a core's caches hold.
const BUFFER: usize = 4 * LONGEST;
/// Bytes that a rank fills with zeros at most.
const MOST_ZEROED: usize = 1 << 30;

/// What was measured.
pub(super) struct HostMemory {
    latency_s: f64,
    /// None of a group of one.
    messages: Vec<Timed>,
    /// Seconds a byte.
    zeroing: f64,
    /// Seconds a sum; zero where nothing is rounded.
    rounding: f64,
}

impl HostMemory {
    /// All ranks must call it, and all get the same answer.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(super) fn measure<T: Element>(
        ranks: &Ranks,
        case: &Case,
        gpu: Option<&Gpu>,
    ) -> Result<HostMemory, LayoutError> {
        let Shape { m, n, k } = case.shape;
        let (times, most) = match gpu {
            Some(_) => (TIMES_BESIDE_GPUS, LONGEST_BESIDE_GPUS / size_of::<T>()),
            None => (TIMES, LONGEST),
        };
        // C is sent in the type of sums.
        let of_c = m * n * (size_of::<T::Sum>() / size_of::<T>());
        let longest = (m * k + k * n).max(of_c).clamp(SHORTEST, most);
        let room = longest.max(BUFFER.min(4 * longest));
        let mut buffer = match (ranks.size(), ranks.rank()) {
            (2.., 0 | 1) => vec![T::from_integer(1); room],
            _ => Vec::new(),
        };
        let (mut latency_s, mut messages) = (0.0, Vec::new());
        if ranks.size() > 1 {
            latency_s = one_way(ranks, &mut buffer, Lie::Together, 1, SHORT_TRIPS);
            for lie in [Lie::Together, Lie::Apart] {
                let mut elements = SHORTEST;
                loop {
                    messages.push(Timed {
                        lie,
                        bytes: (elements * size_of::<T>()) as f64,
                        seconds: one_way(ranks, &mut buffer, lie, elements, times),
                    });
                    if elements >= longest {
                        break;
                    }
                    elements = (4 * elements).min(longest);
                }
            }
        }
        let threads = gpu.map_or(1, |gpu| gpu.copy_threads);
        let (own, largest) = zeroed(ranks.rank(), case, room, MOST_ZEROED / size_of::<T::Sum>());
        let zeroing = slowest(ranks, times, || zeros::<T::Sum>(own, threads))?;
        let mut rounding = 0.0;
        if T::PRODUCT.inputs != T::PRODUCT.c {
            // Rank 0 alone does it, while the others wait.
            let of_first = if ranks.rank() == 0 { room } else { 0 };
            let sums = || zeros::<T::Sum>(of_first, threads);
            rounding = slowest_after(ranks, times, sums, |sums| T::rounded(sums, threads))?;
        }
        Ok(HostMemory {
            latency_s,
            messages,
            zeroing: zeroing / (largest * size_of::<T::Sum>()) as f64,
            rounding: rounding / room as f64,
        })
    }

    /// What was measured of one case at several times: the medians.
    pub(super) fn median(measured: &[HostMemory]) -> HostMemory {
        let messages = measured.first().map_or(&[][..], |first| &first.messages);
        let messages = messages.iter().enumerate().map(|(index, message)| Timed {
            seconds: median_of(measured, |one| one.messages[index].seconds),
            ..*message
        });
        HostMemory {
            latency_s: median_of(measured, |one| one.latency_s),
            messages: messages.collect(),
            zeroing: median_of(measured, |one| one.zeroing),
            rounding: median_of(measured, |one| one.rounding),
        }
    }

    /// Writes it down as speeds; what takes no time is infinitely fast.
    pub(super) fn tell(self, machine: &mut Machine) {
        machine.latency_s = self.latency_s;
        machine.bytes_per_s = self.messages.last().map_or(f64::INFINITY, |largest| {
            largest.bytes / (largest.seconds - self.latency_s).max(1e-9)
        });
        machine.zeroed_bytes_per_s = 1.0 / self.zeroing;
        machine.rounded_per_s = 1.0 / self.rounding;
        machine.messages = self.messages;
    }
}

/// How many elements this rank fills with zeros while that is timed, and how many the rank that
/// fills the most. That is as many as its part of C has, within `least` and `most`, since more
/// elements are filled at more bytes a second. If rank 0 gathers C it has all of C; the others then
/// fill less in proportion, as rank 0 is much faster beside ranks that fill little.
fn zeroed(rank: usize, case: &Case, least: usize, most: usize) -> (usize, usize) {
    let all = case.shape.m * case.shape.n;
    let largest = if case.gathers {
        all
    } else {
        all.div_ceil(case.ranks)
    };
    let filled = largest.clamp(least, most.max(least));
    match case.gathers && rank > 0 {
        true => (filled / case.ranks, filled),
        false => (filled, filled),
    }
}

/// The median time of one way from rank 0 to rank 1, in seconds, on all ranks. Every message has a
/// place of its own in the buffer, as those of layouts do. On other ranks than these the buffer is
/// empty.
fn one_way<T: Element>(
    ranks: &Ranks,
    buffer: &mut [T],
    lie: Lie,
    elements: usize,
    trips: usize,
) -> f64 {
    let stride = elements.max(SHORTEST);
    let places = (buffer.len() / stride).clamp(1, trips);
    let half = match lie {
        Lie::Together => elements,
        Lie::Apart => elements / 2,
    };
    let mut times = Vec::new();
    ranks.barrier();
    for trip in 0..trips {
        let place = trip % places * stride;
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
                send(&buffer[place..place + elements], 1);
                receive(&mut buffer[place..place + elements], 1);
            }
            1 => {
                receive(&mut buffer[place..place + elements], 0);
                send(&buffer[place..place + elements], 0);
            }
            _ => (),
        }
        times.push(started.elapsed().as_secs_f64() / 2.0);
    }
    let mut time = [statistics::median(&times)];
    ranks.from_first(&mut time);
    time[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_filled_with_zeros_as_a_rank_has_of_c_within_limits() {
        let case = |gathers| Case {
            shape: Shape::new(100, 90, 7),
            ranks: 4,
            panel: 1,
            gathers,
        };
        let each = |gathers, least, most| {
            let filled = |rank| zeroed(rank, &case(gathers), least, most);
            assert_eq!(filled(1), filled(3));
            [filled(0), filled(1)]
        };
        assert_eq!(each(true, 1, 10_000), [(9000, 9000), (2250, 9000)]);
        assert_eq!(each(false, 1, 10_000), [(2250, 2250); 2]);
        // Within both limits; the least counts where it is the larger.
        assert_eq!(each(true, 1, 800), [(800, 800), (200, 800)]);
        assert_eq!(each(false, 4000, 5000), [(4000, 4000); 2]);
        assert_eq!(each(true, 10_000, 1000), [(10_000, 10_000), (2500, 10_000)]);
    }

    #[test]
    fn what_was_measured_several_times_is_told_as_the_median_of_its_times() {
        let measured = |latency_s, seconds, zeroing, rounding| HostMemory {
            latency_s,
            messages: vec![Timed {
                lie: Lie::Apart,
                bytes: 60.0,
                seconds,
            }],
            zeroing,
            rounding,
        };
        let mut machine = Machine::default();
        let times = [
            measured(1.0, 12.0, 0.75, 0.0),
            measured(2.0, 50.0, 0.25, 0.0),
            measured(7.0, 3.0, 0.5, 0.0),
        ];
        HostMemory::median(&times).tell(&mut machine);
        assert_eq!((machine.latency_s, machine.bytes_per_s), (2.0, 60.0 / 10.0));
        assert_eq!(machine.messages[0].seconds, 12.0);
        assert_eq!(machine.zeroed_bytes_per_s, 2.0);
        assert_eq!(machine.rounded_per_s, f64::INFINITY);
        let alone = HostMemory {
            messages: Vec::new(),
            ..measured(0.0, 0.0, 1.0, 4.0)
        };
        alone.tell(&mut machine);
        assert_eq!(
            (machine.bytes_per_s, machine.rounded_per_s),
            (f64::INFINITY, 0.25)
        );
    }
}
