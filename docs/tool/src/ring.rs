//! A ring of stages with two mbarriers each, as `warp-specialized` has it: a trace of the
//! simulator, and the picture of it, `mbarrier.svg`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::simulator::Launch;
use cuda_std::tma::{self, Swizzle, Tiles};
use cuda_std::{shared, shared_array, thread};
use serde::Serialize;

const STAGES: usize = 3;
const ITERATIONS: usize = 8;
/// The bytes of a tile.
const BYTES: usize = 16;
/// How long things take, in turns of the simulator's threads.
const REQUEST: usize = 1;
const COPY: usize = 2;
const PRODUCT: [usize; 2] = [3, 4];

/// The threads of the block.
const WHO: [&str; 4] = ["producer", "copy engine", "consumer 0", "consumer 1"];
const CLOCK: usize = WHO.len();

/// What happened, in turns of the simulator.
#[derive(Serialize)]
pub struct Trace {
    stages: usize,
    who: [&'static str; 4],
    turns: usize,
    spans: Vec<Span>,
    arrivals: Vec<Arrival>,
}

/// What one of [`WHO`] does with the tile of an iteration.
#[derive(Clone, Copy, Serialize)]
struct Span {
    who: usize,
    what: What,
    iteration: usize,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Waits,
    Requests,
    Copies,
    Multiplies,
}

/// An arrival at a barrier; for `full`, also that of the bytes. Two end a phase.
#[derive(Clone, Copy, Serialize)]
struct Arrival {
    turn: usize,
    barrier: Barrier,
    stage: usize,
    who: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Barrier {
    Full,
    Empty,
}

/// What the threads write down.
#[derive(Default)]
struct Log {
    clock: AtomicUsize,
    requested: AtomicUsize,
    ended: AtomicUsize,
    spans: Mutex<Vec<Span>>,
    arrivals: Mutex<Vec<Arrival>>,
}

impl Log {
    fn now(&self) -> usize {
        self.clock.load(Ordering::Relaxed)
    }

    /// Does something that takes a while, and notes it if it took any time.
    fn span(&self, who: usize, what: What, iteration: usize, action: impl FnOnce()) {
        let from = self.now();
        action();
        let to = self.now();
        let span = Span {
            who,
            what,
            iteration,
            from,
            to,
        };
        if from < to
            && let Ok(mut spans) = self.spans.lock()
        {
            spans.push(span);
        }
    }

    fn arrival(&self, who: usize, barrier: Barrier, stage: usize) {
        let turn = self.now();
        if let Ok(mut arrivals) = self.arrivals.lock() {
            arrivals.push(Arrival {
                turn,
                barrier,
                stage,
                who,
            });
        }
    }

    /// Lets the other threads run.
    fn pass(&self, turns: usize) {
        let end = self.now() + turns;
        while self.now() < end {
            thread::nanosleep(1);
        }
    }
}

/// Runs the ring in the simulator.
///
/// # Errors
///
/// The simulator found a mistake in it.
pub fn trace() -> Result<Trace, String> {
    let log = Log::default();
    let mut matrix = [0u128; ITERATIONS];
    let tiles = Tiles {
        global: matrix.as_mut_ptr().cast(),
        element_bytes: 1,
        rounds_to_tf32: false,
        width: BYTES,
        height: ITERATIONS,
        row_bytes: BYTES,
        planes: None,
        box_width: BYTES,
        box_height: 1,
        swizzle: Swizzle::None,
    };
    let map = tiles.simulated()?;
    let launch = Launch::new(1, CLOCK as u32 + 1).dynamic_shared_bytes(STAGES * 128);
    let run = launch.run(|| {
        let thread = thread::thread_idx_x() as usize;
        let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        let (full, empty) = (
            shared_array![Mbarrier; STAGES],
            shared_array![Mbarrier; STAGES],
        );
        for stage in (0..STAGES).filter(|_| thread == 0) {
            // SAFETY: the barriers are this block's, and nobody uses them yet.
            unsafe {
                mbarrier::init(full.wrapping_add(stage), 1);
                mbarrier::init(empty.wrapping_add(stage), 2);
            }
            mbarrier::fence_init();
        }
        thread::sync_threads();
        for iteration in 0..ITERATIONS {
            let stage = iteration % STAGES;
            let parity = (iteration / STAGES % 2) as u32;
            let (full, empty) = (full.wrapping_add(stage), empty.wrapping_add(stage));
            // SAFETY: the barriers were initialised; the copy engine loads into a stage that both
            // consumers have read, since the producer has waited for them.
            unsafe {
                match thread {
                    0 => {
                        log.span(0, What::Waits, iteration, || {
                            mbarrier::wait(empty, parity ^ 1)
                        });
                        mbarrier::arrive_expect_tx(full, BYTES as u32);
                        log.arrival(0, Barrier::Full, stage);
                        log.requested.fetch_add(1, Ordering::Relaxed);
                        log.span(0, What::Requests, iteration, || log.pass(REQUEST));
                    }
                    1 => {
                        while log.requested.load(Ordering::Relaxed) <= iteration {
                            thread::nanosleep(1);
                        }
                        log.span(1, What::Copies, iteration, || log.pass(COPY));
                        let target = ring.wrapping_add(stage * 128);
                        tma::load_2d(target, &map, 0, iteration as u32, full);
                        log.arrival(1, Barrier::Full, stage);
                    }
                    2 | 3 => {
                        log.span(thread, What::Waits, iteration, || {
                            mbarrier::wait(full, parity)
                        });
                        let turns = PRODUCT[thread - 2];
                        log.span(thread, What::Multiplies, iteration, || log.pass(turns));
                        mbarrier::arrive(empty);
                        log.arrival(thread, Barrier::Empty, stage);
                    }
                    _ => {}
                }
            }
        }
        log.ended.fetch_add(1, Ordering::Relaxed);
        while thread == CLOCK && log.ended.load(Ordering::Relaxed) <= CLOCK {
            log.clock.fetch_add(1, Ordering::Relaxed);
            thread::nanosleep(1);
        }
    });
    run.map_err(|fault| fault.to_string())?;
    let turns = log.now();
    Ok(Trace {
        stages: STAGES,
        who: WHO,
        turns,
        spans: log.spans.into_inner().map_err(|error| error.to_string())?,
        arrivals: log
            .arrivals
            .into_inner()
            .map_err(|error| error.to_string())?,
    })
}

/// Turns and rows of the picture, in pixels.
const TURN: usize = 15;
const ROW: usize = 26;
const LEFT: usize = 110;
const TOP: usize = 62;

/// The picture of the trace: what the four do, and the phases of the six barriers.
///
/// # Errors
///
/// As [`trace`].
pub fn picture() -> Result<String, String> {
    let trace = trace()?;
    let (width, height) = (LEFT + trace.turns * TURN + 16, TOP + 12 * ROW + 58);
    let title =
        "A ring of three stages: two consumers, eight tiles, and the phases of its barriers";
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n<style>\n\
         text {{ font: 13px sans-serif; fill: #1a1a1a }} .small {{ font-size: 11px; fill: #444 }} \
         .head {{ font-weight: bold }} .middle {{ text-anchor: middle }}\n\
         rect {{ stroke: #777 }} .waits {{ fill: #fff; stroke-dasharray: 3 3 }} \
         .requests {{ fill: #b85c00 }} .copies {{ fill: #8fb8f0 }} .multiplies {{ fill: #9dd495 }} \
         .parity0 {{ fill: #fde7cf }} .parity1 {{ fill: #f5b267 }} \
         .arrival {{ stroke: #1a1a1a; stroke-width: 2 }}\n</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fdfcf8\" stroke=\"none\"/>\n\
         <text class=\"head\" x=\"16\" y=\"24\">{title}</text>\n"
    );
    let mut bar = |row: usize, (from, to): (usize, usize), class: &str, text: String| {
        let (x, y, width) = (LEFT + from * TURN, TOP + row * ROW, (to - from) * TURN);
        svg += &format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"20\"/>\n"
        );
        if !text.is_empty() {
            // In the middle, but not where an arrival in the phase may be drawn.
            let x = x + if class.starts_with("parity") {
                8
            } else {
                width / 2
            };
            let y = y + 14;
            svg += &format!("<text class=\"small middle\" x=\"{x}\" y=\"{y}\">{text}</text>\n");
        }
    };
    for Span {
        who,
        what,
        iteration,
        from,
        to,
    } in &trace.spans
    {
        let (class, text) = match what {
            What::Waits => ("waits", String::new()),
            What::Requests => ("requests", String::new()),
            What::Copies => ("copies", format!("{iteration}")),
            What::Multiplies => ("multiplies", format!("{iteration}")),
        };
        bar(*who, (*from, *to), class, text);
    }
    // The barriers, after a row of distance.
    let rows = [Barrier::Full, Barrier::Empty].into_iter().enumerate();
    let rows = rows.flat_map(|(kind, barrier)| {
        (0..STAGES).map(move |stage| (WHO.len() + 1 + kind * (STAGES + 1) + stage, barrier, stage))
    });
    let rows: Vec<_> = rows.collect();
    for &(row, barrier, stage) in &rows {
        let ends = trace.phase_ends(barrier, stage);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let ends = ends.iter().copied().chain([trace.turns]);
        for (phase, (from, to)) in begins.zip(ends).enumerate() {
            if from < to {
                let parity = phase % 2;
                bar(
                    row,
                    (from, to),
                    &format!("parity{parity}"),
                    format!("{parity}"),
                );
            }
        }
    }
    for arrival in &trace.arrivals {
        let row = rows
            .iter()
            .find(|(_, barrier, stage)| (*barrier, *stage) == (arrival.barrier, arrival.stage));
        if let Some((row, ..)) = row {
            let (x, y) = (LEFT + arrival.turn * TURN, TOP + row * ROW);
            svg += &format!("<path class=\"arrival\" d=\"M{x} {y}v20\"/>\n");
        }
    }
    let mut name = |row: usize, name: &str| {
        let y = TOP + row * ROW + 15;
        svg += &format!("<text x=\"16\" y=\"{y}\">{name}</text>\n");
    };
    for (row, who) in trace.who.iter().enumerate() {
        name(row, who);
    }
    for (row, barrier, stage) in &rows {
        let kind = match barrier {
            Barrier::Full => "full",
            Barrier::Empty => "empty",
        };
        name(*row, &format!("{kind}[{stage}]"));
    }
    let legend = [
        "Above: numbers are tiles, dashes are waits; tile t is in stage t mod 3, and a request by the producer is dark.",
        "Below: the parity of each barrier's current phase; a thick line is an arrival, and the second one ends the phase.",
    ];
    svg += &format!(
        "<text class=\"small\" x=\"16\" y=\"46\">{}</text>\n",
        legend[0]
    );
    let y = TOP + 12 * ROW + 34;
    svg += &format!(
        "<text class=\"small\" x=\"16\" y=\"{y}\">{}</text>\n</svg>\n",
        legend[1]
    );
    Ok(svg)
}

impl Trace {
    /// When each phase of a barrier ended, except the one that still lasts.
    fn phase_ends(&self, barrier: Barrier, stage: usize) -> Vec<usize> {
        let at = |arrival: &&Arrival| (arrival.barrier, arrival.stage) == (barrier, stage);
        let arrivals: Vec<usize> = self
            .arrivals
            .iter()
            .filter(at)
            .map(|one| one.turn)
            .collect();
        arrivals.chunks_exact(2).map(|pair| pair[1]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_multiplied_after_it_has_landed_and_replaced_after_both_have_read_it() {
        let trace = trace().unwrap();
        let spans = |what| trace.spans.iter().filter(move |span| span.what == what);
        for iteration in 0..ITERATIONS {
            let of = |span: &&Span| span.iteration == iteration;
            let copied = spans(What::Copies).find(of).unwrap();
            let products: Vec<&Span> = spans(What::Multiplies).filter(of).collect();
            assert_eq!(products.len(), 2);
            let next = spans(What::Copies).find(|span| span.iteration == iteration + STAGES);
            for product in products {
                assert!(copied.to <= product.from, "iteration {iteration}");
                assert!(
                    next.is_none_or(|next| product.to <= next.from),
                    "iteration {iteration}"
                );
            }
        }
        // Eight tiles on three stages: three, three and two phases of each kind.
        for barrier in [Barrier::Full, Barrier::Empty] {
            let phases = [0, 1, 2].map(|stage| trace.phase_ends(barrier, stage).len());
            assert_eq!(phases, [3, 3, 2], "{barrier:?}");
        }
    }
}
