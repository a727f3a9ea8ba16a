//! How long copies of operands take, and the gap before each launch: a part of every model.

use crate::gpu::DeviceFacts;
use crate::plan::{OperandCopy, Panel};

/// Seconds from the end of a kernel to the start of the next one on the stream.
pub(super) const LAUNCH: f64 = 2.5e-6;
/// The fraction of the memory bandwidth that operand copies reach.
const COPYING: f64 = 0.7;

/// The operand copies: each is read once and written once.
pub(super) fn copies(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let copies = panel.copies().map(|copy| LAUNCH + copying(&copy, facts));
    copies.sum()
}

/// What the bytes of a copy take.
pub(super) fn copying(copy: &OperandCopy, facts: &DeviceFacts) -> f64 {
    let elements = copy.source.0 as f64 * copy.source.1 as f64 + copy.elements() as f64;
    elements * copy.element.bytes() as f64 / (facts.speeds.memory_bytes_per_s * COPYING)
}
