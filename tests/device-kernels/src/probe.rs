//! A probe: a kernel from words to words, its launch, and its expected output.

/// Reads words, writes words: every probe has this signature, so that one launcher serves them
/// all.
pub type ProbeFn = unsafe fn(input: &[u32], output: *mut u32);

/// A kernel and its claim.
pub struct Probe {
    /// Its entry point in the PTX and its name in reports.
    pub entry: &'static str,
    /// The kernel, for the simulator.
    pub function: ProbeFn,
    pub launch: Launch,
    /// Its input.
    pub input: fn() -> Vec<u32>,
    /// Its expected output, computed without `cuda_std`. The output buffer is filled with
    /// [`UNWRITTEN`] before.
    pub expected: fn(&Launch, &[u32]) -> Vec<u32>,
    /// Texts that its PTX must contain, but not the PTX of architectures older than `ptx_since`.
    pub ptx: &'static [&'static str],
    /// The oldest architecture with these texts in its PTX.
    pub ptx_since: &'static str,
    /// The oldest architecture that it supports: compiled for an older one it fails.
    pub runs_since: &'static str,
    /// The allowed error of a result, as an `f32`, in units in the last place; 0 compares bits.
    pub ulps: u32,
}

/// A launch: CTAs of the grid and threads of a CTA, as x, y, z.
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// CTAs of a cluster, along x: the kernel's `cluster_dim`.
    pub cluster: u32,
    pub dynamic_shared_bytes: u32,
}

/// The value of an output word before the kernel writes it.
pub const UNWRITTEN: u32 = 0xDEAD_BEEF;

/// One CTA of `threads` threads along x.
pub const fn one_block(threads: u32) -> Launch {
    Launch {
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        cluster: 1,
        dynamic_shared_bytes: 0,
    }
}

/// No input.
pub fn nothing() -> Vec<u32> {
    Vec::new()
}

/// 64 words that look random, but are always the same (a multiplicative hash).
pub fn scrambled() -> Vec<u32> {
    (1..=64u32).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

/// The words that each of 64 threads writes.
pub fn of_threads<W: IntoIterator<Item = u32>>(words: impl FnMut(usize) -> W) -> Vec<u32> {
    (0..64).flat_map(words).collect()
}

/// The words that are written for each word of the input.
pub fn of_words<W: IntoIterator<Item = u32>>(
    input: &[u32],
    words: impl FnMut(u32) -> W,
) -> Vec<u32> {
    input.iter().copied().flat_map(words).collect()
}

impl Launch {
    /// Every thread as (CTA index, thread index), CTAs in order, x fastest.
    pub fn threads(&self) -> impl Iterator<Item = ([u32; 3], [u32; 3])> + '_ {
        points(self.grid)
            .flat_map(move |block| points(self.block).map(move |thread| (block, thread)))
    }
}

fn points(extent: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let [x, y, z] = extent;
    (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
}

/// A [`Probe`] with its entry point named only once.
macro_rules! probe {
    ($entry:ident, $($field:ident: $value:expr),* $(,)?) => {
        $crate::probe::Probe {
            entry: stringify!($entry),
            function: $entry,
            $($field: $value,)*
            ..$crate::probe::Probe {
                entry: "",
                function: $entry,
                launch: $crate::probe::one_block(64),
                input: $crate::probe::nothing,
                expected: |_, _| Vec::new(),
                ptx: &[],
                ptx_since: "compute_75",
                runs_since: "compute_75",
                ulps: 0,
            }
        }
    };
}
pub(crate) use probe;
