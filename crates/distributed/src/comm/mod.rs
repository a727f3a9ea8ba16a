//! What ranks say to each other, and how much: the only place that sends elements of matrices,
//! so the only one that counts them.
//!
//! A message is counted by the rank that it starts from, when it is sent. A broadcast to `s` ranks
//! counts as `s - 1` messages of its root's: so many elements arrive whatever tree MPI forwards
//! them along. Messages without elements are not sent at all. What ranks agree on besides (times,
//! digests, whether a result is right) is some bytes for each rank, and is not counted. What NCCL
//! sends from one GPU to another (`layout/between_gpus`) is counted here, too, by the same rules.
//!
//! | file | what it does |
//! | --- | --- |
//! | `over_mpi.rs` | ranks that `mpirun` started |
//! | `message.rs` | parts of matrices as one derived datatype |
//! | `pending.rs` | messages under way |
//! | `transport.rs` | how parts travel between GPUs: NCCL, MPI or page-locked memory, and why |
//! | `alone.rs` | without the feature `mpi`: one rank, and nobody to send to |

#[cfg(not(feature = "mpi"))]
mod alone;
#[cfg(feature = "mpi")]
mod message;
#[cfg(feature = "mpi")]
mod over_mpi;
mod pending;
pub mod transport;

use gpu_gemm::{Bf16, F16};

#[cfg(not(feature = "mpi"))]
pub use alone::{
    Equivalence, Job, Ranks, abort, alone_because, host_name, library, rank_of_all, rank_on_host,
    ranks_on_these_cores, start,
};
#[cfg(feature = "mpi")]
pub use over_mpi::{
    Equivalence, Job, Ranks, abort, alone_because, host_name, library, rank_of_all, rank_on_host,
    ranks_on_these_cores, start,
};

#[cfg(not(feature = "mpi"))]
pub(crate) use alone::Request;
#[cfg(feature = "mpi")]
pub(crate) use over_mpi::Request;
pub(crate) use pending::{Broadcasting, Incoming, Outgoing, OutgoingCopy, Panel};

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

/// A compact matrix at some place of a buffer: its first element there, its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: usize,
    pub rows: usize,
    pub columns: usize,
}

/// Bytes of a text that ranks say to each other: at least those of a host's name
/// (`MPI_MAX_PROCESSOR_NAME`).
const TEXT: usize = 256;

impl Ranks {
    /// What each rank says, in the order of ranks; the end of a text of more than 256 bytes is left
    /// out. All of them must call it.
    pub fn all_texts(&self, own: &str) -> Vec<String> {
        let mut bytes = own.as_bytes().to_vec();
        bytes.resize(TEXT, 0);
        let all = self.all_gather(&bytes);
        let texts = all.chunks(TEXT).map(String::from_utf8_lossy);
        texts
            .map(|text| text.trim_end_matches('\0').to_string())
            .collect()
    }
}

/// The largest number of rows or columns, and the largest leading dimension, that a message can
/// describe: MPI counts with 32-bit integers.
pub const LARGEST: usize = i32::MAX as usize;
