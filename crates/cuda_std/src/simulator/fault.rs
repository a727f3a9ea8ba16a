//! What ends a launch early.

use super::{BarrierSite, Dim3, ThreadOrder, shared_memory};
use std::fmt;
use std::time::Duration;

/// Why a launch was refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The launch has a shape that no GPU accepts. The sentence says what is wrong.
    InvalidLaunch(String),
    /// The kernel's launch bounds allow fewer threads a block than it was launched with.
    LaunchBounds { max_threads: u32, block_size: Dim3 },
    /// A block's arrays in shared memory, and the dynamic shared memory, are more than a block
    /// can have.
    SharedMemory {
        block: Dim3,
        thread: Dim3,
        /// Where the array is named that does not fit, and its size.
        site: BarrierSite,
        bytes: usize,
        /// Of all arrays, with this one.
        static_bytes: usize,
        dynamic_bytes: usize,
    },
    /// A thread has written past the end of its block's shared memory: to byte `at` of an array of
    /// `bytes`, or of dynamic shared memory.
    SharedMemoryOverrun {
        block: Dim3,
        /// The thread, and where it was next: `None` if it wrote more than 64 bytes behind the
        /// end, and wrote elsewhere when its block ran again to find it.
        thread: Option<(Dim3, Place)>,
        /// Where the array is named: `None` for dynamic shared memory.
        array: Option<BarrierSite>,
        bytes: usize,
        at: usize,
    },
    /// A thread of a cluster of several blocks has used a static in shared memory. The simulator
    /// has one, for one block at a time.
    SharedStaticOfCluster {
        /// Where the static is declared.
        site: BarrierSite,
    },
    /// Some threads of a block wait at a place that the others will never reach.
    DivergentBarrier {
        block: Dim3,
        block_size: Dim3,
        /// All threads of the block, grouped by where they are.
        threads: Vec<Waiting>,
    },
    /// Some lanes of a warp wait for lanes that will never arrive.
    DivergentWarp {
        block: Dim3,
        /// The warp's number in its block.
        warp: u32,
        /// All lanes of the warp, grouped by where they are.
        lanes: Vec<Waiting>,
    },
    /// A thread called a warp operation in a way that is undefined on a GPU. The sentence says
    /// how.
    InvalidWarpOperation {
        block: Dim3,
        thread: Dim3,
        site: BarrierSite,
        problem: String,
    },
    /// A thread issued an asynchronous copy that no GPU can perform, or that reads what the launch
    /// does not let it read. The sentence says why.
    InvalidCopy {
        block: Dim3,
        thread: Dim3,
        site: BarrierSite,
        problem: String,
    },
    /// A thread panicked.
    Panic {
        block: Dim3,
        thread: Dim3,
        message: String,
        /// `file:line:column` of the panic, if it is known.
        location: Option<String>,
    },
    /// The result depends on the order of the threads: in this order it is another than forward.
    OrderDependent {
        order: ThreadOrder,
        /// What is different, in words.
        difference: String,
        /// The order matters between these two barriers, of which one that is `None` is an end of
        /// the kernel. `None` if the difference is there without the order: blocks affect each
        /// other, or copies are used too early.
        between: Option<[Option<BarrierSite>; 2]>,
    },
    /// No thread of the block has ended, or come past a barrier, for the launch's time limit.
    NoProgress {
        block: Dim3,
        /// A thread that runs all the time or again and again, and where it has waited last, if it
        /// has.
        thread: Dim3,
        last_wait: Option<BarrierSite>,
        limit: Duration,
    },
    /// There was not enough memory for the stacks of a block's threads.
    OutOfStacks { threads: u32, reason: String },
}

/// Threads that are in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub place: Place,
    /// Their numbers in the block (in the warp, for [`Fault::DivergentWarp`]), ascending.
    pub threads: Vec<u32>,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It waits in a call of this function here. For a warp operation, with the mask of the lanes
    /// that it waits for.
    Waits {
        function: &'static str,
        site: BarrierSite,
        mask: Option<u32>,
    },
    /// It has returned from the kernel.
    Returned,
    /// The block is too small to have this lane.
    Missing,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidLaunch(sentence) => f.write_str(sentence),
            Self::LaunchBounds {
                max_threads,
                block_size,
            } => write!(
                f,
                "The kernel's launch bounds promise at most {max_threads} {} a block, but it was launched with \
                 blocks of {block_size}, which is {} threads.",
                if *max_threads == 1 {
                    "thread"
                } else {
                    "threads"
                },
                block_size.count()
            ),
            Self::SharedMemory {
                block,
                thread,
                site,
                bytes,
                static_bytes,
                dynamic_bytes,
            } => write!(
                f,
                "Thread {thread} of block {block}, at {site}: with this array of {bytes} bytes the block needs \
                 {static_bytes} bytes of shared memory for its arrays and {dynamic_bytes} bytes of dynamic shared \
                 memory. A block can have {} bytes for arrays and {} bytes in all; make the tile smaller, or use \
                 dynamic shared memory for what is above {0} bytes.",
                shared_memory::MOST_STATIC_BYTES,
                shared_memory::MOST_BYTES,
            ),
            Self::SharedMemoryOverrun {
                block,
                thread,
                array,
                bytes,
                at,
            } => {
                match thread {
                    Some((thread, _)) => write!(f, "Thread {thread}")?,
                    None => write!(f, "A thread")?,
                }
                let past = format!("of block {block} has written past the end of shared memory");
                match thread {
                    None => write!(f, " {past}: ")?,
                    Some((_, Place::Waits { function, site, .. })) => {
                        write!(f, " {past}, before it came to {function}() at {site}: ")?
                    }
                    Some(_) => write!(f, " {past}, before it returned: ")?,
                }
                write!(f, "to byte {at} of ")?;
                match array {
                    Some(site) => write!(
                        f,
                        "the array of {bytes} bytes that is named at {site}. Check the index, or make the array longer."
                    ),
                    None => write!(
                        f,
                        "{bytes} bytes of dynamic shared memory. Check the index, or request more: by \
                         `Launch::dynamic_shared_bytes` in the simulator, and in the launch on a GPU."
                    ),
                }
            }
            Self::SharedStaticOfCluster { site } => write!(
                f,
                "A block of a cluster has used the static in shared memory at {site}. In the simulator one block at a \
                 time can use it, but those of a cluster run together: take `shared_array!`."
            ),
            Self::DivergentBarrier {
                block,
                block_size,
                threads,
            } => {
                write!(
                    f,
                    "In block {block}, the threads did not all come to the same barrier: "
                )?;
                list(f, "thread", threads, Some(*block_size))?;
                f.write_str(". Every thread of a block must reach a barrier, or none.")
            }
            Self::DivergentWarp { block, warp, lanes } => {
                write!(
                    f,
                    "In block {block}, warp {warp}, lanes wait for others that will not come: "
                )?;
                list(f, "lane", lanes, None)?;
                f.write_str(
                    ". Every lane of the mask must come to the same call with the same mask.",
                )
            }
            Self::InvalidWarpOperation {
                block,
                thread,
                site,
                problem,
            }
            | Self::InvalidCopy {
                block,
                thread,
                site,
                problem,
            } => write!(f, "Thread {thread} of block {block}, at {site}: {problem}"),
            Self::Panic {
                block,
                thread,
                message,
                location,
            } => {
                write!(f, "Thread {thread} of block {block} panicked")?;
                if let Some(location) = location {
                    write!(f, " at {location}")?;
                }
                write!(f, ": {message}")
            }
            Self::OrderDependent {
                order,
                difference,
                between,
            } => {
                write!(
                    f,
                    "The result depends on the order of the threads: in the order {order:?}, {difference}. "
                )?;
                let Some([first, second]) = between else {
                    return f.write_str(
                        "It does so even if the threads run forward, so blocks affect each other, or an asynchronous \
                         copy is not waited for.",
                    );
                };
                f.write_str("The order matters after ")?;
                match first {
                    Some(site) => write!(f, "the barrier at {site}")?,
                    None => f.write_str("the start of the kernel")?,
                }
                f.write_str(" and before ")?;
                match second {
                    Some(site) => write!(f, "the next one, at {site}")?,
                    None => f.write_str("its end")?,
                }
                f.write_str(match order {
                    ThreadOrder::AtOnce => {
                        ": a barrier is missing there, or several threads change one word without an atomic."
                    }
                    _ => ": a barrier is missing there, unless the kernel adds floats by atomics.",
                })
            }
            Self::NoProgress {
                block,
                thread,
                last_wait,
                limit,
            } => {
                write!(
                    f,
                    "Block {block} makes no progress: for {limit:?} none of its threads has ended or come past a barrier. \
                     Thread {thread} runs, which "
                )?;
                match last_wait {
                    Some(site) => write!(f, "waited last at {site}")?,
                    None => f.write_str("has not waited yet")?,
                }
                f.write_str(
                    ". A loop that waits for other threads must call `thread::nanosleep`, in which these run, and they \
                     must be in its block: others may come later. If the kernel only takes long, set `Launch::time_limit`.",
                )
            }
            Self::OutOfStacks { threads, reason } => write!(
                f,
                "The system gave no memory for the stacks of a block of {threads} simulated threads ({reason}). Run \
                 fewer launches at a time, or set RAYON_NUM_THREADS to a smaller number."
            ),
        }
    }
}

/// Writes which threads are where: "threads 0-31 wait in sync_threads() at k.rs:10:5; threads
/// 32-63 have returned".
fn list(
    f: &mut fmt::Formatter<'_>,
    noun: &str,
    groups: &[Waiting],
    block_size: Option<Dim3>,
) -> fmt::Result {
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            f.write_str("; ")?;
        }
        let one = group.threads.len() == 1;
        write!(f, "{noun}{} ", if one { "" } else { "s" })?;
        write_ranges(f, &group.threads)?;
        if let (Some(block_size), Some(&first)) = (block_size, group.threads.first()) {
            let first = block_size.place(u64::from(first));
            write!(f, " ({}{first})", if one { "" } else { "from " })?;
        }
        match group.place {
            Place::Waits {
                function,
                site,
                mask,
            } => {
                let verb = if one { "waits" } else { "wait" };
                write!(f, " {verb} in {function}() at {site}")?;
                if let Some(mask) = mask {
                    write!(f, " with mask {mask:#010x}")?;
                }
            }
            Place::Returned => write!(f, " {} returned", if one { "has" } else { "have" })?,
            Place::Missing => write!(f, " {} not in the block", if one { "is" } else { "are" })?,
        }
    }
    Ok(())
}

/// Writes ascending numbers as `0-31, 40, 42-43`, at most eight ranges of them.
fn write_ranges(f: &mut fmt::Formatter<'_>, numbers: &[u32]) -> fmt::Result {
    const MOST_RANGES: usize = 8;
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b);
    for (written, range) in ranges.enumerate() {
        if written == MOST_RANGES {
            return write!(f, ", ... ({} in all)", numbers.len());
        }
        if written > 0 {
            f.write_str(", ")?;
        }
        match range {
            [one] => write!(f, "{one}")?,
            [first, .., last] => write!(f, "{first}-{last}")?,
            [] => {}
        }
    }
    Ok(())
}
