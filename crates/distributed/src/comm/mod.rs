//! What ranks say to each other, and how much: the only place that sends elements of matrices,
//! so the only one that counts them.
//!
//! A message is counted by the rank that it starts from, when it is sent. A broadcast to `s` ranks
//! counts as `s - 1` messages of its root's: so many elements arrive whatever tree MPI forwards
//! them along. Messages without elements are not sent at all. What ranks agree on besides (times,
//! digests, whether a result is right) is some bytes for each rank, and is not counted.
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

#[cfg(not(feature = "mpi"))]
pub use alone::{
    Equivalence, Job, Ranks, abort, alone_because, host_name, library, rank_of_all, rank_on_host,
    start,
};
#[cfg(feature = "mpi")]
pub use over_mpi::{
    Equivalence, Job, Ranks, abort, alone_because, host_name, library, rank_of_all, rank_on_host,
    start,
};

#[cfg(not(feature = "mpi"))]
use alone::Request;
#[cfg(feature = "mpi")]
use over_mpi::Request;
pub(crate) use pending::{Broadcasting, Incoming, Outgoing, OutgoingCopy, Panel};

/// The largest number of rows or columns, and the largest leading dimension, that a message can
/// describe: MPI counts with 32-bit integers.
pub const LARGEST: usize = i32::MAX as usize;
