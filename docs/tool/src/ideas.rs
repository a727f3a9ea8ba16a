//! What single ideas of a rung gain: variants that have one idea more each, measured in one process
//! on an H200. The ladder does not have them; `results/ideas.patch` makes them.

use host::bench::Results;

use crate::measured::proven;

const FILE: &str = "results/h200-ideas.json";

/// Of a rung: its variants, and the idea that each adds to the one before.
const RUNGS: [(&str, &[(&str, &str)]); 2] = [
    (
        "double-buffer",
        &[
            (
                "conflict-free-sn8",
                "none: [conflict-free](conflict-free.md)",
            ),
            ("double-buffer-sn8-step1", "two buffers"),
            (
                "double-buffer-sn8-step2",
                "lanes 4 × 8, in pairs; a warp tile of 32 × 64",
            ),
            ("double-buffer-sn8-step3", "reading ahead"),
            ("double-buffer-sn8-step4", "a copy of B without registers"),
            ("double-buffer-sn8", "serpentine order: `double-buffer`"),
        ],
    ),
    (
        "async-pipeline",
        &[
            ("async-pipeline-unrotated", "all others"),
            ("async-pipeline", "the loop, rotated"),
        ],
    ),
];

/// A row for each idea of a rung.
///
/// # Errors
///
/// There is no such rung, or the results are not right.
pub fn table(rung: &str) -> Result<String, String> {
    let (_, ideas) = RUNGS
        .iter()
        .find(|(name, _)| *name == rung)
        .ok_or_else(|| format!("the ideas of `{rung}` were not measured"))?;
    let results: Results = proven(FILE)?;
    let [size] = &results.sizes[..] else {
        return Err(format!("{FILE} is of one size"));
    };
    let tflops = |variant: &str| {
        let record = size.record(variant);
        let speed = record.and_then(|record| record.flops_per_s);
        speed
            .map(|speed| speed / 1e12)
            .ok_or_else(|| format!("{FILE} has no {variant}"))
    };
    let mut table = "\n| one idea more | TFLOP/s | step |\n| --- | ---: | ---: |\n".to_owned();
    let mut before = None;
    for (variant, idea) in *ideas {
        let speed = tflops(variant)?;
        let step = before.map_or(String::new(), |before| format!("{:.2} x", speed / before));
        table += &format!("| {idea} | {speed:.1} | {step} |\n");
        before = Some(speed);
    }
    Ok(table + "\n")
}
