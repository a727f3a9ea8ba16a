//! GPUs that can be explained without being present, from NVIDIA's data sheets and architecture
//! white papers.

use gpu_gemm::gpu::{Capability, Gpu};

/// A GPU, by its data sheet: its name for `--gpu`, full name, compute capability, SMs, boost clock
/// in MHz, and memory bandwidth in bytes a second.
type Sheet = (&'static str, &'static str, (i32, i32), u32, u32, f64);

#[rustfmt::skip]
const SHEETS: [Sheet; 6] = [
    ("h200",    "NVIDIA H200",             (9, 0), 132, 1980, 4.8e12),
    ("h100",    "NVIDIA H100 SXM",         (9, 0), 132, 1980, 3.35e12),
    ("a100",    "NVIDIA A100 80GB SXM",    (8, 0), 108, 1410, 2.039e12),
    ("rtx4090", "NVIDIA GeForce RTX 4090", (8, 9), 128, 2520, 1.008e12),
    ("rtx4070", "NVIDIA GeForce RTX 4070", (8, 9),  46, 2475, 0.504e12),
    ("t4",      "NVIDIA T4",               (7, 5),  40, 1590, 0.32e12),
];

/// The default without a GPU and without `--gpu`: the GPU of this project's measurements.
pub const DEFAULT: &str = SHEETS[0].0;

/// The names that [`find`] knows.
pub fn keys() -> impl Iterator<Item = &'static str> {
    SHEETS.iter().map(|sheet| sheet.0)
}

/// The GPU of this name.
pub fn find(key: &str) -> Option<Gpu> {
    let sheet = SHEETS.iter().find(|sheet| sheet.0 == key)?;
    let &(_, name, capability, sms, clock_mhz, bandwidth_bytes_per_s) = sheet;
    Some(Gpu {
        name: name.to_string(),
        capability: Capability::of(capability)?,
        sms,
        clock_mhz,
        bandwidth_bytes_per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::ElementType;

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let sheets = [67.0, 67.0, 19.5, 82.6, 29.1, 8.1];
        assert_eq!(keys().count(), sheets.len());
        for (key, tflops) in keys().zip(sheets) {
            let peak = find(key).unwrap().peak(ElementType::F32) / 1e12;
            assert!((peak - tflops).abs() < 0.1, "{key}: {peak}");
        }
    }
}
