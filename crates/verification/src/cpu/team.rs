//! The threads that rungs run on, and their settings from the command line.

use gpu_gemm::text::plural;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use thiserror::Error;

use super::schedule::Schedule;

/// A product with a smallest dimension of at most this is left to `cpu-divide`.
///
/// Measured with `--cutoff`, f32, on a core of a Xeon with AVX-512 beside other programs: the
/// time with one level over that with none was 1.2 to 1.3 at 1024 (it does not pay), 0.7 to 0.95
/// at 2048 (it does). Further levels made no difference that was larger than the noise.
pub const CUTOFF: usize = 1024;

/// The settings of the CPU rungs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads of the rungs that have several; by default as many as the machine has.
    pub threads: Option<usize>,
    /// How work is assigned to them.
    pub schedule: Schedule,
    /// The least number of pieces that a free thread takes, for schedules that have free threads
    /// take them; at least 1.
    pub chunk: usize,
    /// The size up to which Strassen's algorithm leaves a product to `cpu-divide`.
    pub cutoff: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            threads: None,
            schedule: Schedule::Static,
            chunk: 1,
            cutoff: CUTOFF,
        }
    }
}

/// Why there are no threads.
#[derive(Debug, Error)]
#[error("{} cannot be started: {source}. Choose fewer with `--threads`.", plural(.threads, "thread"))]
pub struct TeamError {
    threads: usize,
    source: ThreadPoolBuildError,
}

/// Threads that are kept from one run to the next.
pub struct Team {
    pool: ThreadPool,
    settings: Settings,
}

impl Team {
    /// Starts the threads.
    pub fn new(settings: Settings) -> Result<Team, TeamError> {
        let threads = settings
            .threads
            .unwrap_or_else(rayon::current_num_threads)
            .max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|source| TeamError { threads, source })?;
        Ok(Team { pool, settings })
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The pool that runs their work.
    pub fn pool(&self) -> &ThreadPool {
        &self.pool
    }
}
