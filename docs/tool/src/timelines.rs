//! Timelines of an SM for the steps of `hopper-steps.md`, in clocks and to scale.
//!
//! What an SM takes for 128 x 256 of C is measured: at 4096, back to back, at the mean clock, with
//! its share of the last round's idle SMs. The time of a product is counted: 2048 multiply-adds a
//! clock. Other constants name their source.

use crate::figures::{MAIN_SIZE, at};
use crate::measured::passed;

/// The names of the pictures' files.
pub const ALL: [&str; 10] = [
    "hopper-1",
    "hopper-2",
    "hopper-3",
    "hopper-4",
    "hopper-6",
    "hopper-7",
    "hopper-8",
    "hopper-tiles",
    "hopper-ping-pong",
    "hopper-multicast",
];

/// A k-iteration of 128 x 256 x 64 on the tensor cores, in instructions of 64 x 256 x 16. It takes
/// longer, before step 8 and after it: `tuning.md`, "The gap between two products".
const PRODUCT: f64 = 1024.0;
const BEFORE: f64 = 1076.0;
const AFTER: f64 = PRODUCT / 0.972;
const INSTRUCTION: f64 = PRODUCT / 8.0;
/// Eight boxes, with their rounding and barriers: `hopper-steps.md`, step 7.
const BOXES: f64 = 1500.0;
/// The speed and the clock of ping-pong: `tuning.md`, "Consumers in other orders".
const PING_PONG: (f64, f64) = (645e12, 1424e6);

/// What lasts `length` clocks from `from` on, and again each `period`. A label of `#` is its
/// number.
struct Bar {
    period: f64,
    from: f64,
    length: f64,
    what: &'static str,
    label: &'static str,
}

/// A row is idle where it has no bar.
type Row = (&'static str, Vec<Bar>);

fn bar(period: f64, from: f64, length: f64, what: &'static str, label: &'static str) -> Bar {
    Bar {
        period,
        from,
        length,
        what,
        label,
    }
}

/// Two consumers whose instructions alternate, and the tensor cores.
fn alternating(names: [&'static str; 3], period: f64) -> [Row; 3] {
    let in_flight = 7.0 * INSTRUCTION;
    let one = |i: usize| {
        let (what, from) = (["first", "second"][i % 2], i as f64 * INSTRUCTION);
        bar(period, from, INSTRUCTION, what, "")
    };
    [
        (names[0], vec![bar(period, 0.0, in_flight, "first", "#")]),
        (
            names[1],
            vec![bar(period, INSTRUCTION, in_flight, "second", "#")],
        ),
        (names[2], (0..8).map(one).collect()),
    ]
}

/// The timeline of this name.
///
/// # Errors
///
/// Something was not measured.
pub fn picture(name: &str) -> Result<String, String> {
    let results = passed("results/h200-hopper-steps.json")?;
    let size = at(&results, MAIN_SIZE).ok_or("the steps were not measured")?;
    let sms = f64::from(results.machine.multiprocessors.ok_or("of unknown SMs")?);
    let clocks = |(speed, clock)| 2.0 * 128.0 * 256.0 * MAIN_SIZE as f64 * sms / speed * clock;
    let measured = |kernel: &str| {
        let sustained = size.record(kernel).and_then(|one| one.sustained.as_ref());
        let both = sustained.and_then(|one| Some((one.flops_per_s, one.sm_clock_mhz? * 1e6)));
        both.map(clocks)
            .ok_or_else(|| format!("`{kernel}` was not measured"))
    };
    // The tiles of A and B for 64 columns of A: of 64 x 64, 64 x 256 and 128 x 256.
    let iterations = (MAIN_SIZE / 64) as f64;
    let step1 = measured("warpgroup-64x64")? / iterations / 8.0;
    let step2 = measured("warpgroup")? / iterations / 2.0;
    let step3 = measured("warp-specialized-step3")? / iterations / 2.0;
    let copy = step3 * 48.0 / 40.0;
    let step5 = measured("warp-specialized-step5")?;
    let step6 = measured("warp-specialized-step6")?;
    let step7 = measured("warp-specialized-step7")?;
    let step8 = measured("warp-specialized")?;
    let tiles = measured("warp-specialized-tiles")?;
    let (multiplied, multiplied8) = (step7 - BOXES, step8 - BOXES);
    let pair = clocks(PING_PONG);
    let (half, once) = (pair / 2.0, f64::INFINITY);
    let (short, long) = ((2200.0, 500.0), (176_000.0, 40_000.0));

    let (title, notes, scale, rows): (_, _, _, Vec<Row>) = match name {
        "hopper-1" => (
            "1: wgmma on tiles of 64 × 64 by TMA",
            [
                format!("16 KiB arrive every {step1:.0} clocks; their product takes 128."),
                "All six CTAs of the SM (three are shown) wait for the L2.".to_string(),
            ],
            short,
            vec![
                ("copy engine", vec![bar(step1, 0.0, step1, "copies", "#")]),
                ("CTA 0", vec![bar(6.0 * step1, step1, 128.0, "first", "")]),
                (
                    "CTA 1",
                    vec![bar(6.0 * step1, 2.0 * step1, 128.0, "first", "")],
                ),
                (
                    "CTA 2",
                    vec![bar(6.0 * step1, 3.0 * step1, 128.0, "first", "")],
                ),
                ("tensor cores", vec![bar(step1, step1, 128.0, "first", "#")]),
            ],
        ),
        "hopper-2" => (
            "2: a larger tile, 64 × 256",
            [
                format!("40 KiB arrive every {step2:.0} clocks; their product takes 512."),
                "Two CTAs an SM; the tensor cores still wait for the L2.".to_string(),
            ],
            short,
            vec![
                ("copy engine", vec![bar(step2, 0.0, step2, "copies", "#")]),
                ("CTA 0", vec![bar(2.0 * step2, step2, 512.0, "first", "")]),
                (
                    "CTA 1",
                    vec![bar(2.0 * step2, 2.0 * step2, 512.0, "first", "")],
                ),
                ("tensor cores", vec![bar(step2, step2, 512.0, "first", "#")]),
            ],
        ),
        "hopper-3" => (
            "3: producer and consumer, 64 × 256",
            [
                format!("One CTA. 40 KiB still take {step3:.0} clocks: the L2's limit."),
                "A stage that has been read is requested again at once.".to_string(),
            ],
            short,
            vec![
                ("producer", vec![bar(step3, 512.0, 40.0, "requests", "")]),
                ("copy engine", vec![bar(step3, 0.0, step3, "copies", "#")]),
                ("consumer", vec![bar(step3, step3, 512.0, "first", "#")]),
                ("tensor cores", vec![bar(step3, step3, 512.0, "first", "#")]),
            ],
        ),
        "hopper-4" => {
            let names = ["consumer 0", "consumer 1", "tensor cores"];
            let mut rows = vec![
                ("producer", vec![bar(BEFORE, 0.0, 40.0, "requests", "")]),
                ("copy engine", vec![bar(BEFORE, 40.0, copy, "copies", "")]),
            ];
            rows.extend(alternating(names, BEFORE));
            let notes = [
                format!("48 KiB at the rate of step 3: {copy:.0} clocks. Product: {PRODUCT:.0}."),
                format!("Instructions alternate, {BEFORE:.0} clocks a k-iteration."),
            ];
            ("4: two consumers, 128 × 256", notes, short, rows)
        }
        "hopper-6" => {
            let before = ["5: consumer 0", "5: consumer 1", "5: tensor cores"];
            let after = ["6: consumer 0", "6: consumer 1", "6: tensor cores"];
            let both = [(before, 128.0), (after, 1.0)].map(|(names, arrivals)| {
                let mut rows = alternating(names, BEFORE);
                for (_, bars) in &mut rows[..2] {
                    let read = bars[0].from + bars[0].length;
                    bars.push(bar(BEFORE, read, arrivals, "requests", ""));
                }
                rows
            });
            let notes = [
                "Arrivals (orange), at one a clock: 128 a consumer, then 1.".to_string(),
                format!("A tile of C: {step5:.0} clocks in step 5, {step6:.0} in step 6."),
            ];
            let title = "6: one arrival of each consumer";
            (title, notes, short, both.into_iter().flatten().collect())
        }
        "hopper-7" => (
            "7: the copy engine stores C",
            [
                format!("A tile of C: {step6:.0} clocks in step 6, {step7:.0} in step 7."),
                format!(
                    "Store: {:.0} clocks by threads, {BOXES:.0} by boxes.",
                    step6 - multiplied
                ),
            ],
            (110_000.0, 20_000.0),
            vec![
                (
                    "6: copies",
                    vec![bar(once, 0.0, multiplied, "copies", "64 × 48 KiB")],
                ),
                (
                    "6: consumers",
                    vec![
                        bar(once, 0.0, multiplied, "first", "64 k-iterations"),
                        bar(once, multiplied, step6 - multiplied, "stores", "store"),
                    ],
                ),
                (
                    "7: copies",
                    vec![bar(once, 0.0, multiplied, "copies", "64 × 48 KiB")],
                ),
                (
                    "7: consumers",
                    vec![
                        bar(once, 0.0, multiplied, "first", "64 k-iterations"),
                        bar(once, multiplied, BOXES, "stores", ""),
                    ],
                ),
            ],
        ),
        "hopper-8" => {
            let before = ["7: consumer 0", "7: consumer 1", "7: tensor cores"];
            let after = ["8: consumer 0", "8: consumer 1", "8: tensor cores"];
            let rows = [alternating(before, BEFORE), alternating(after, AFTER)];
            let notes = [
                format!(
                    "{BEFORE:.0} clocks a k-iteration, then {AFTER:.0}; products: {PRODUCT:.0}."
                ),
                "The gap in the tensor cores' row is halved.".to_string(),
            ];
            let title = "8: nothing between two products";
            (title, notes, short, rows.into_iter().flatten().collect())
        }
        "hopper-tiles" => (
            "A CTA for each tile, and persistent CTAs",
            [
                format!("A tile of C takes {tiles:.0} clocks with a CTA of its own,"),
                format!("and {step8:.0} where the next tiles load during the store."),
            ],
            long,
            vec![
                ("a CTA a tile", {
                    let begin = tiles - step8;
                    vec![
                        bar(tiles, begin, multiplied8, "first", "tile #"),
                        bar(tiles, begin + multiplied8, BOXES, "stores", ""),
                    ]
                }),
                (
                    "8: copies",
                    vec![bar(step8, 0.0, step8, "copies", "for tile #")],
                ),
                (
                    "8: consumers",
                    vec![
                        bar(step8, 0.0, multiplied8, "first", "tile #"),
                        bar(step8, multiplied8, BOXES, "stores", ""),
                    ],
                ),
            ],
        ),
        "hopper-ping-pong" => {
            let consumer = |from, what| {
                let product = bar(pair, from, half, what, "#");
                vec![product, bar(pair, from + half, BOXES, "stores", "")]
            };
            let tensor_cores = vec![
                bar(pair, 0.0, half, "first", "#"),
                bar(pair, half, half, "second", "#"),
            ];
            let notes = [
                "While one consumer stores, the other multiplies.".to_string(),
                format!(
                    "Two tiles take {pair:.0} clocks, at {:.0} MHz.",
                    PING_PONG.1 / 1e6
                ),
            ];
            let rows = vec![
                ("consumer 0", consumer(0.0, "first")),
                ("consumer 1", consumer(half, "second")),
                ("tensor cores", tensor_cores),
            ];
            ("Ping-pong: each a tile of 128 × 128", notes, long, rows)
        }
        "hopper-multicast" => {
            let third = AFTER / 3.0;
            let loads = |left, right| {
                vec![
                    bar(AFTER, 0.0, third, "copies", "A"),
                    bar(AFTER, third, third, left, "½ B"),
                    bar(AFTER, 2.0 * third, third, right, "½ B"),
                ]
            };
            let products = || vec![bar(AFTER, AFTER, PRODUCT, "first", "#")];
            let notes = [
                "Each loads 32 KiB a k-iteration (strong) in place of 48;".to_string(),
                "the neighbour's load brings the other half of B.".to_string(),
            ];
            let rows = vec![
                ("SM 0: copies", loads("copies", "arrives")),
                ("SM 0: products", products()),
                ("SM 1: copies", loads("arrives", "copies")),
                ("SM 1: products", products()),
            ];
            ("Multicast: two SMs share a tile of B", notes, short, rows)
        }
        _ => return Err(format!("there is no timeline `{name}`")),
    };
    Ok(drawn(title, &notes, scale, &rows))
}

/// As wide as a page on a telephone, so that labels keep their size there.
const WIDTH: f64 = 420.0;
const LEFT: f64 = 114.0;
const RIGHT: f64 = 408.0;
const TOP: f64 = 72.0;
const ROW: f64 = 26.0;

/// The picture of rows over `end` clocks, with a line at each `tick`.
fn drawn(title: &str, notes: &[String; 2], (end, tick): (f64, f64), rows: &[Row]) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
    let (height, below) = (bottom + 26.0, bottom + 16.0);
    let x = |clock: f64| LEFT + clock.min(end) / end * (RIGHT - LEFT);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n<style>\n\
         text {{ font: 13px sans-serif; fill: #1a1a1a }} .head {{ font-weight: bold }} \
         .middle {{ text-anchor: middle }} .tick {{ stroke: #bbb }}\n\
         rect {{ stroke: #777 }} .idle {{ fill: #fff; stroke-dasharray: 3 3 }} \
         .requests {{ fill: #b85c00 }} .copies {{ fill: #8fb8f0 }} .arrives {{ fill: #dbe8fb }} \
         .first {{ fill: #9dd495 }} .second {{ fill: #dff2dc }} .stores {{ fill: #f5b267 }}\n\
         </style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fdfcf8\" stroke=\"none\"/>\n\
         <text class=\"head\" x=\"12\" y=\"20\">{title}</text>\n\
         <text x=\"12\" y=\"40\">{}</text>\n<text x=\"12\" y=\"57\">{}</text>\n\
         <text x=\"12\" y=\"{below}\">clocks</text>\n",
        notes[0], notes[1]
    );
    let text = |x: f64, y: f64, label: &str| {
        format!("<text class=\"middle\" x=\"{x:.1}\" y=\"{y}\">{label}</text>\n")
    };
    let ticks = (0..).map(|i| f64::from(i) * tick);
    for clock in ticks.take_while(|clock| *clock < end) {
        let at = x(clock);
        svg += &format!("<path class=\"tick\" d=\"M{at:.1} {TOP}V{bottom}\"/>\n");
        svg += &text(at, below, &clock.to_string());
    }
    for ((name, bars), row) in rows.iter().zip(0..) {
        let y = TOP + ROW * f64::from(row) + 3.0;
        let rect = |what: &str, from: f64, to: f64| {
            let (from, width) = (x(from), x(to) - x(from));
            format!(
                "<rect class=\"{what}\" x=\"{from:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"20\"/>\n"
            )
        };
        svg += &format!("<text x=\"12\" y=\"{}\">{name}</text>\n", y + 15.0);
        svg += &rect("idle", 0.0, end);
        for bar in bars {
            let mut from = bar.from;
            let mut number = 0;
            while from < end {
                let to = from + bar.length;
                svg += &rect(bar.what, from, to);
                let label = bar.label.replace('#', &number.to_string());
                // Only where there is room for it.
                if x(to) - x(from) > 8.0 * label.len() as f64 {
                    svg += &text((x(from) + x(to)) / 2.0, y + 15.0, &label);
                }
                from += bar.period;
                number += 1;
            }
        }
    }
    svg + "</svg>\n"
}
