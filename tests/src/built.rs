//! The kernels as PTX, compiled when a test first needs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};
use gpu_gemm::device::compiled::Module;
use gpu_gemm::gpu_kernels::{helpers, variants};

use crate::{is_first, is_representative};

/// A crate of kernels, for one architecture.
#[derive(Clone, Copy)]
pub struct Built {
    pub kernels: &'static str,
    pub arch: NvvmArch,
}

pub const LADDER: &str = "gpu-kernels";
pub const PROBES: &str = "device-kernels";

/// The architectures of the library, and one in the other dialect of NVVM IR for the ladder; and
/// one of each kind for the probes.
const ARCHITECTURES: [NvvmArch; 5] = [
    NvvmArch::Compute75,
    NvvmArch::Compute80,
    NvvmArch::Compute90,
    NvvmArch::Compute90a,
    NvvmArch::Compute100,
];

impl Built {
    /// Its PTX; empty where there is no libNVVM.
    ///
    /// # Panics
    ///
    /// The kernels do not compile.
    pub fn ptx(self) -> &'static str {
        type Texts = BTreeMap<(&'static str, NvvmArch), &'static OnceLock<String>>;
        static TEXTS: Mutex<Texts> = Mutex::new(BTreeMap::new());
        let text = {
            let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
            let text = texts.entry((self.kernels, self.arch));
            *text.or_insert_with(|| Box::leak(Box::default()))
        };
        text.get_or_init(|| self.compile())
    }

    /// Whether it has all kernels. The ladder has all for Hopper, which runs them all, and one variant
    /// of each for the others: their variants differ as Hopper's do.
    pub fn is_whole(self) -> bool {
        self.kernels != LADDER || self.arch == NvvmArch::Compute90a
    }

    fn compile(self) -> String {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = match self.kernels {
            LADDER => tests.join("../gpu-kernels"),
            _ => tests.join(self.kernels),
        };
        let out = Path::new(env!("OUT_DIR"));
        let copy = out.join(format!("{}.{}.ptx", self.kernels, self.arch));
        // This is a machine with a GPU and no Rust, to which the tests and their PTX were copied.
        if !Path::new(env!("CARGO")).exists()
            && let Ok(made) = fs::read_to_string(&copy)
        {
            return made;
        }
        let built = CudaBuilder::new(folder)
            .arch(self.arch)
            .copy_to(copy)
            .debug(DebugInfo::LineTables)
            .panic_messages(self.kernels != LADDER) // none for the ladder, as in the library
            .libnvvm_optional(true);
        let built = match self.is_whole() {
            true => built,
            false => built.only(one_of_each_kernel()),
        };
        let text = built.build_now(out).map(fs::read_to_string);
        text.unwrap_or_else(|error| panic!("{error}"))
            .unwrap_or_default()
    }
}

/// One variant of each kernel of the ladder, and the helpers.
pub fn one_of_each_kernel() -> impl Iterator<Item = &'static str> {
    let firsts = variants().filter(|one| is_first(one, is_representative));
    let helpers = helpers().map(|helper| helper.name);
    firsts.map(|variant| variant.entry.name).chain(helpers)
}

/// All crates of kernels, for all their architectures that differ.
pub fn built() -> impl Iterator<Item = Built> {
    let of = |kernels| move |arch| Built { kernels, arch };
    // For compute_90 its kernels have the code of compute_90a, or are not for it.
    let ladder = ARCHITECTURES
        .into_iter()
        .filter(|arch| *arch != NvvmArch::Compute90);
    let ladder = ladder.map(of(LADDER));
    ladder.chain(ARCHITECTURES.into_iter().map(of(PROBES)))
}

/// The architecture of the first of [`probes`].
pub const OLDEST: &str = "compute_75";

/// The probes as modules for several architectures, oldest first. Every GPU runs the first one.
pub fn probes() -> Vec<&'static str> {
    let probes = built().filter(|built| built.kernels == PROBES);
    probes.map(Built::ptx).collect()
}

/// The module of the probes for the newest architecture that a GPU and its driver support.
pub fn newest_probes(architecture: i32, driver: Option<(u32, u32)>) -> &'static str {
    use gpu_gemm::device::compiled::newest_for;
    let probes = probes();
    let modules: Vec<Module> = probes.iter().map(|ptx| Module::of_text(ptx)).collect();
    let newest = newest_for(&modules, architecture, driver);
    let target = newest.map_or("", |module| module.target());
    let mut all = modules.iter().zip(probes);
    all.find(|(module, _)| module.target() == target)
        .map_or("", |(_, ptx)| ptx)
}
