//! What ranks say to each other, and how much: the only place that sends elements of matrices,
//! so the only one that counts them.
//!
//! A message is counted by the rank that it starts from, when it is sent. A broadcast to `s` ranks
//! counts as `s - 1` messages of its root's: so many elements arrive whatever tree MPI forwards
//! them along. Messages without elements are not sent at all. What ranks agree on besides (times,
//! digests, whether a result is right, texts) is not counted.
//!
//! | file | what it does |
//! | --- | --- |
//! | `over_mpi.rs` | ranks that `mpirun` started |
//! | `message.rs` | parts of matrices as one derived datatype |
//! | `pending.rs` | messages under way |
//! | `alone.rs` | without the feature `mpi`: one rank, and nobody to send to |

#[cfg(not(feature = "mpi"))]
mod alone;
#[cfg(feature = "mpi")]
mod message;
#[cfg(feature = "mpi")]
mod over_mpi;
mod pending;

use std::fmt::Display;

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

impl Ranks {
    /// What each rank says, in the order of ranks. All of them must call it.
    pub(crate) fn all_texts(&self, own: &str) -> Vec<String> {
        let lengths = self.all_gather(&[own.len() as u64]);
        // MPI refuses to gather nothing.
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1) as usize;
        let mut bytes = own.as_bytes().to_vec();
        bytes.resize(longest, 0);
        let all = self.all_gather(&bytes);
        let text = |(rank, length): (usize, &u64)| {
            let start = rank * longest;
            String::from_utf8_lossy(&all[start..start + *length as usize]).into_owned()
        };
        lengths.iter().enumerate().map(text).collect()
    }

    /// The first rank that could not do something, and why, without a full stop. All ranks call it,
    /// and all get the same answer.
    pub(crate) fn first_failure(&self, own: Option<impl Display>) -> Option<(usize, String)> {
        let own = own.map_or(String::new(), |why| why.to_string());
        let reasons = self.all_texts(&own);
        let rank = reasons.iter().position(|reason| !reason.is_empty())?;
        Some((rank, reasons[rank].trim_end_matches('.').to_string()))
    }
}

/// The largest number of rows or columns, and the largest leading dimension, that a message can
/// describe: MPI counts with 32-bit integers.
pub const LARGEST: usize = i32::MAX as usize;
