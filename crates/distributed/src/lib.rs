//! One product of matrices on many ranks, over MPI: six layouts, what each sends, what it should
//! take and what it takes.
//!
//! The program is `gemm-mpi`:
//!
//! ```sh
//! cargo build --release -p distributed
//! mpirun -n 4 target/release/gemm-mpi --layout summa --size 2048
//! ```
//!
//! | part | what it does |
//! | --- | --- |
//! | [`share_out`] | who gets what: pure functions of shape and rank count |
//! | [`layout`] | a file for each layout: its formulas, its cost, its messages |
//! | [`comm`] | the only place that knows MPI and sends elements, so the only one that counts them |
//! | [`comm::transport`] | how parts travel between the GPUs of ranks, and why so |
//! | [`local`] | the product of one rank: a CPU rung, the simulator, a GPU in whose memory the parts stay |
//! | [`nccl`] | messages between the GPUs of ranks, by NVIDIA's library |
//! | [`model`], [`machine`], [`predict`] | what messages and products take, and so what a layout should |
//! | [`evaluate`] | proves and times layouts on some ranks |
//! | [`record`], [`plots`] | what was found, as tables, JSON, CSV and plots |
//! | [`aligned`] | memory that starts where vectors should |
//! | [`faults`] | a rank that fails ends the job |
//! | [`program`] | the command line |

pub mod aligned;
mod arguments;
pub mod clock;
pub mod comm;
pub mod evaluate;
pub mod faults;
pub mod layout;
pub mod local;
pub mod machine;
pub mod model;
pub mod nccl;
pub mod plots;
pub mod predict;
pub mod program;
pub mod record;
pub mod share_out;
mod table;
pub mod volume;

use comm::Transmissible;

/// A number that ranks multiply and send to each other.
pub trait Element: host::rung::Element + Transmissible {}

impl<T: host::rung::Element + Transmissible> Element for T {}
