//! Running a launch.

use super::shared_memory::Static;
use super::shared_static::Statics;
use super::worker::{Usage, Worker};
use super::{BarrierSite, Fault, Launch, current, panic_hook, shared_memory};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The maximum number of simulated threads that one launch has at a time. Each takes two memory
/// mappings, of which Linux allows a process 65530.
const MOST_THREADS_AT_A_TIME: usize = 16 * 1024;

/// What the largest GPUs allow.
const MOST_BLOCKS_OF_A_CLUSTER: u32 = 16;

/// The number of CPU threads that launches run on: rayon's.
pub fn cpu_threads() -> usize {
    rayon::current_num_threads()
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of blocks that ran.
    pub blocks: u64,
    /// How often the barrier at each place in the source opened, counted once for each block.
    pub barriers: BTreeMap<BarrierSite, u64>,
    /// How often threads have waited for their copies at each `pipeline::wait_prior()`, each
    /// thread counted.
    pub waits: BTreeMap<BarrierSite, u64>,
    /// Shared memory of one block, static and dynamic, in bytes.
    pub shared_bytes: usize,
    /// The barriers as they opened one after the other, in a block in which most of them did.
    pub(super) openings: Vec<BarrierSite>,
}

impl Launch {
    /// Calls `kernel` once for each thread of the launch, on as many CPU cores as rayon has
    /// threads.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of the lowest block that had one.
    pub fn run(&self, kernel: impl Fn() + Sync) -> Result<Report, Fault> {
        self.run_observed(kernel, &|| {})
    }

    /// [`Self::run`], and calls `block_done` after each block, from several threads at once.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn run_observed(
        &self,
        kernel: impl Fn() + Sync,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Report, Fault> {
        self.simulate(&kernel, block_done)
    }

    /// The same; not generic, as all that it needs would be compiled anew for each kernel.
    fn simulate(
        &self,
        kernel: &(dyn Fn() + Sync),
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Report, Fault> {
        self.check()?;
        panic_hook::install();

        let clusters = self.grid.count() / u64::from(self.cluster);
        let progress = Progress::default();
        let threads = self.cluster as usize * self.block.count() as usize;
        let most_workers = (MOST_THREADS_AT_A_TIME / threads).max(1) as u64;
        let workers = most_workers
            .min(rayon::current_num_threads() as u64)
            .min(clusters) as usize;
        let statics = Statics::take();
        let work = || self.work(clusters, kernel, block_done, &progress, &statics.all);
        // Rayon's threads could wait for the statics that this one holds.
        if !statics.all.is_empty() {
            work();
        } else {
            let workers = (0..workers).into_par_iter().with_max_len(1);
            workers.for_each(|_| work());
        }
        match into_inner(progress.fault) {
            Some((_, fault)) => Err(fault),
            None => Ok(into_inner(progress.report)),
        }
    }

    /// Runs clusters until none remain.
    fn work(
        &self,
        clusters: u64,
        kernel: &(dyn Fn() + Sync),
        block_done: &(dyn Fn() + Sync),
        progress: &Progress,
        statics: &[Static],
    ) {
        let mut worker = Worker::new(self, statics);
        let mut blocks_done = 0;
        // Clusters are handed out in ascending order, so those below a faulty one have been, and
        // will be finished: the fault that is reported does not depend on the number of workers.
        while !progress.has_fault.load(Ordering::Relaxed) {
            let number = progress.next_cluster.fetch_add(1, Ordering::Relaxed);
            if number >= clusters {
                break;
            }
            let blocks = u64::from(self.cluster);
            match worker.run(number * blocks, kernel) {
                Ok(()) => {
                    blocks_done += blocks;
                    (0..blocks).for_each(|_| block_done());
                }
                Err(fault) => progress.note_fault(number * blocks, fault),
            }
        }
        progress.add(blocks_done, worker.finish());
    }

    /// Rejects a launch that every GPU rejects.
    fn check(&self) -> Result<(), Fault> {
        let Self { grid, block, .. } = *self;
        let threads = block.count();
        let problem = if current::is_simulated() {
            "A kernel's thread cannot launch a kernel.".to_owned()
        } else if grid.count() == 0 {
            format!("A grid of {grid} has no blocks; each extent must be at least 1.")
        } else if threads == 0 {
            format!("A block of {block} has no threads; each extent must be at least 1.")
        } else if threads > 1024 {
            format!("A block of {block} has {threads} threads; a block can have at most 1024.")
        } else if block.z > 64 {
            format!(
                "A block of {block} is {} threads deep; along z a block can have at most 64.",
                block.z
            )
        } else if grid.x > i32::MAX as u32 || grid.y > 65535 || grid.z > 65535 {
            format!(
                "A grid of {grid} is too large; it can have at most 2147483647 blocks along x, 65535 along y and 65535 \
                 along z."
            )
        } else if !(1..=MOST_BLOCKS_OF_A_CLUSTER).contains(&self.cluster)
            || !grid.x.is_multiple_of(self.cluster)
        {
            format!(
                "Clusters of {} blocks in a grid of {grid}; they can have from 1 to {MOST_BLOCKS_OF_A_CLUSTER}, and \
                 must divide its blocks along x.",
                self.cluster
            )
        } else if self.dynamic_shared_bytes > shared_memory::MOST_BYTES {
            format!(
                "The launch asks for {} bytes of dynamic shared memory; a block can have at most {}.",
                self.dynamic_shared_bytes,
                shared_memory::MOST_BYTES
            )
        } else {
            return Ok(());
        };
        Err(Fault::InvalidLaunch(problem))
    }
}

/// The progress of the workers of a launch.
#[derive(Default)]
struct Progress {
    next_cluster: AtomicU64,
    has_fault: AtomicBool,
    /// The lowest block that had a fault.
    fault: Mutex<Option<(u64, Fault)>>,
    report: Mutex<Report>,
}

impl Progress {
    fn note_fault(&self, block: u64, fault: Fault) {
        self.has_fault.store(true, Ordering::Relaxed);
        let mut lowest = lock(&self.fault);
        if lowest.as_ref().is_none_or(|(other, _)| block < *other) {
            *lowest = Some((block, fault));
        }
    }

    fn add(&self, blocks: u64, usage: Usage) {
        let mut report = lock(&self.report);
        report.blocks += blocks;
        report.shared_bytes = report.shared_bytes.max(usage.shared_bytes);
        if usage.openings.len() > report.openings.len() {
            report.openings = usage.openings;
        }
        for (site, openings) in usage.barriers {
            *report.barriers.entry(site).or_default() += openings;
        }
        for (site, passed) in usage.waits {
            *report.waits.entry(site).or_default() += passed;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
