//! The elements that a kernel moves, derived from its description with the same formulas for every
//! kernel.
//!
//! - An operand that is staged in shared memory is read from global memory once by each CTA that
//!   needs it, written to shared memory as often, and read there once for each thread tile.
//! - An operand that is not staged is read from global memory once for each thread tile.
//! - C is written once, and read once unless beta is zero.
//!
//! A stream-K kernel also stages each k-iteration of each tile once, whichever CTA does it. Its
//! operand copies and partial sums depend on the device, and are counted by [`Traffic::of_plan`].
//!
//! The counts are of elements that threads request. Caches serve some of them, so memory may move
//! fewer. Tiles at the edges of C are predicated: nothing beyond an edge is read from or written
//! to global memory, but the tiles in shared memory, and the arithmetic on them, are full. A
//! kernel that takes only exact tiles reads zeros there, from padded copies.

mod kernel;
mod plan;

pub use kernel::{Access, By, Direction, Space, Traffic, compulsory_intensity};
pub use plan::Partials;
