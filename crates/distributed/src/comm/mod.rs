//! Messages between ranks, and their counts: the only place that sends elements of matrices, so the
//! only one that counts them.
//!
//! A message is counted by the rank that it starts from, when it is sent. A broadcast to `s` ranks
//! counts as `s - 1` messages of its root's: as many arrive, whatever tree MPI forwards them along.
//! Messages without elements are not sent at all. Other data that ranks exchange (times, digests,
//! verdicts, texts) is not counted.
//!
//! | file | what it does |
//! | --- | --- |
//! | `ranks.rs` | groups of the ranks that `mpirun` started |
//! | `message.rs` | parts of matrices as one derived datatype |
//! | `under_way.rs` | messages under way |

mod message;
mod ranks;
mod under_way;

use gpu_gemm::{Bf16, F16};
use mpi::datatype::Equivalence;

pub use ranks::{Ranks, abort, host_name, is_launched, library, start};
pub(crate) use under_way::{Compact, Panel, UnderWay};

/// A number that matrices hold, as MPI sends it. MPI knows no floats of 16 bits: they are sent as
/// integers of as many, with the same bits.
pub trait Transmissible {
    type As: Equivalence;
}

macro_rules! transmissible {
    ($($number:ty as $sent:ty),*) => {
        $(impl Transmissible for $number {
            type As = $sent;
        })*
    };
}

transmissible!(f32 as f32, f64 as f64, i32 as i32, Bf16 as u16, F16 as u16);

/// The largest number of rows or columns, and the largest leading dimension, that a message can
/// describe: MPI counts with 32-bit integers.
pub const LARGEST: usize = i32::MAX as usize;
