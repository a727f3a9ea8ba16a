//! The kernels compiled for devices. The program holds them compressed, by kernel. In a dev build
//! with the feature `on-demand` they are compiled on first use.

#![cfg_attr(not(feature = "opencl"), allow(dead_code))]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lzma_rust2::LzmaReader;

use super::cuda::ptx::{self, Version};
use crate::error::DeviceError;

/// The contents that the build script packed.
struct Compiled {
    /// Whether the blocks are compressed.
    is_compressed: bool,
    /// The target of each module, the version of its PTX, and its kernels: the oldest architecture
    /// first.
    modules: &'static [(&'static str, &'static str, Places)],
    /// For each GPU of the build machine, the number of its architecture, and the machine code of
    /// the kernels of a module.
    machine_code: &'static [(i32, usize, Places)],
    /// The kernels in OpenCL C, in the order of their names; or why there is none.
    opencl: &'static [(&'static str, Result<Place, &'static str>)],
    /// The Rust files of all kernels, with names as in line tables.
    sources: Places,
    blocks: &'static [&'static [u8]],
}

/// The number of a block, and the offset and the length of a text in it.
type Place = (usize, usize, usize);

/// Places by name, in the order of the names.
type Places = &'static [(&'static str, Place)];

static COMPILED: Compiled = include!(concat!(env!("OUT_DIR"), "/compiled.rs"));

/// The bytes at a place.
fn unpack((block, start, length): Place) -> Vec<u8> {
    /// Kernels requested one after the other are mostly in the same block.
    static LAST: Mutex<Option<(usize, Arc<[u8]>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = match &*last {
        Some((number, bytes)) if *number == block => bytes.clone(),
        _ => {
            let packed = COMPILED.blocks.get(block).copied().unwrap_or_default();
            let mut bytes = Vec::new();
            match COMPILED.is_compressed {
                true => {
                    let reader = LzmaReader::new_mem_limit(packed, u32::MAX, None);
                    // Reading fails only in a damaged program; then kernels are missing.
                    let _ = reader.and_then(|mut reader| reader.read_to_end(&mut bytes));
                }
                false => bytes.extend_from_slice(packed),
            }
            let bytes: Arc<[u8]> = bytes.into();
            *last = Some((block, bytes.clone()));
            bytes
        }
    };
    let found = bytes.get(start..start.saturating_add(length));
    found.unwrap_or_default().to_vec()
}

fn unpack_text(place: Place) -> String {
    String::from_utf8(unpack(place)).unwrap_or_default()
}

fn find(places: Places, name: &str) -> Option<Place> {
    let found = places.binary_search_by(|(own, _)| (*own).cmp(name));
    Some(places[found.ok()?].1)
}

/// Texts that were requested before, by name: at most one for each kernel and file. They live as
/// long as the program.
type Kept<T> = Mutex<BTreeMap<String, T>>;

fn kept<T: Copy>(texts: &Kept<T>, name: &str, make: impl FnOnce() -> T) -> T {
    let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
    *texts.entry(name.to_owned()).or_insert_with(make)
}

/// The text of a Rust file that kernels were compiled from, by its name in line tables.
pub fn source(file: &str) -> Option<&'static str> {
    static TEXTS: Kept<Option<&str>> = Mutex::new(BTreeMap::new());
    kept(&TEXTS, file, || {
        let text = match cfg!(kernels_on_demand) {
            // A name is relative to the kernels' folder, or to its parent.
            true => {
                let mut folders = Path::new(env!("GPU_KERNELS")).ancestors().take(2);
                let is_relative = Path::new(file).is_relative();
                let text = folders.find_map(|above| std::fs::read_to_string(above.join(file)).ok());
                text.filter(|_| is_relative)
            }
            false => find(COMPILED.sources, file).map(unpack_text),
        };
        text.map(|text| &*text.leak())
    })
}

/// Distinguishes sets of kernels, for measurements made with them.
pub fn fingerprint(hasher: &mut impl std::hash::Hasher) {
    use std::hash::Hash;
    COMPILED.blocks.hash(hasher);
    if cfg!(kernels_on_demand) {
        // Each folder's files take its place.
        let mut paths = vec![Path::new(env!("GPU_KERNELS")).join("src")];
        while let Some(folder) = paths.iter().position(|path| path.is_dir()) {
            let files = std::fs::read_dir(paths.swap_remove(folder));
            let files = files.into_iter().flatten().flatten();
            paths.extend(files.map(|file| file.path()));
        }
        paths.sort();
        let texts = paths.iter().map(std::fs::read);
        texts.for_each(|text| text.unwrap_or_default().hash(hasher));
    }
}

/// Why there is no PTX, and what to do about it; `None` if there is.
pub fn why_absent() -> Option<&'static str> {
    match option_env!("CUDA_BUILDER_NO_PTX") {
        Some(reason) => Some(reason),
        #[cfg(kernels_on_demand)]
        None => on_demand::why_absent(),
        #[cfg(not(kernels_on_demand))]
        None if COMPILED.modules.is_empty() => {
            Some("The build script left none, and does not say why.")
        }
        #[cfg(not(kernels_on_demand))]
        None => None,
    }
}

/// The kernels as PTX for one architecture.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    target: &'static str,
    /// The version of its instruction set, if it is known.
    isa: Option<&'static str>,
    from: From,
}

#[derive(Clone, Copy, Debug)]
enum From {
    /// Stored in the program, at this index.
    #[cfg_attr(kernels_on_demand, allow(dead_code))]
    Program(usize),
    /// One module of all kernels.
    Text(&'static str),
    /// Compiled kernel by kernel.
    #[cfg(kernels_on_demand)]
    Demand,
}

/// The modules of this build, the oldest first; none if it has no PTX.
pub fn modules() -> Vec<Module> {
    #[cfg(kernels_on_demand)]
    return on_demand::modules();
    #[cfg(not(kernels_on_demand))]
    {
        let packed = COMPILED.modules.iter().enumerate();
        let module =
            |(index, (target, isa, _)): (usize, &(&'static str, &'static str, Places))| Module {
                target,
                isa: Some(isa),
                from: From::Program(index),
            };
        packed.map(module).collect()
    }
}

/// The newest of `modules`, in ascending order, for a GPU of this architecture (ten times its
/// compute capability) and a driver that supports this version of CUDA (any, if not given). If
/// there is none, the oldest, so that the driver gives the reason for rejecting it.
pub fn newest_for(
    modules: &[Module],
    architecture: i32,
    driver: Option<Version>,
) -> Option<Module> {
    let suits = |module: &&Module| {
        let takes = |isa| ptx::takes(driver, isa);
        ptx::runs_on(module.target, architecture) && module.isa.is_none_or(takes)
    };
    let newest = modules.iter().rfind(suits);
    newest.or(modules.first()).copied()
}

/// The newest module of this build for a GPU of this architecture, whatever its driver.
///
/// # Errors
///
/// There is no PTX.
pub fn module_for(architecture: i32) -> Result<Module, DeviceError> {
    let no_ptx = |reason: &str| DeviceError::NoPtx {
        reason: reason.to_owned(),
    };
    match why_absent() {
        Some(reason) => Err(no_ptx(reason)),
        None => newest_for(&modules(), architecture, None).ok_or_else(|| no_ptx("It has none.")),
    }
}

impl Module {
    /// One module of all kernels.
    pub fn of_text(ptx: &'static str) -> Module {
        let header = ptx::header(ptx);
        Module {
            target: header.target,
            isa: Some(header.isa),
            from: From::Text(ptx),
        }
    }

    /// Its target, such as `sm_90a`.
    pub fn target(&self) -> &'static str {
        self.target
    }

    /// The version of its instruction set, if that is known before it is compiled.
    pub fn isa(&self) -> Option<&'static str> {
        self.isa
    }

    /// The number of its kernels, if that is known before it is compiled.
    pub fn count(&self) -> Option<usize> {
        match self.from {
            From::Program(index) => Some(COMPILED.modules[index].2.len()),
            From::Text(ptx) => Some(ptx::header(ptx).entries),
            #[cfg(kernels_on_demand)]
            From::Demand => None,
        }
    }

    /// Whether it has this kernel.
    pub(crate) fn has(&self, entry: &str) -> bool {
        match self.from {
            From::Text(ptx) => ptx.contains(&format!(".entry {entry}(")),
            _ => gpu_kernels::entries().any(|own| own.name == entry),
        }
    }

    /// The kernels of a text.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static str> {
        let text = match self.from {
            From::Text(ptx) => ptx,
            _ => "",
        };
        let named = |line: &'static str| line.split_once(".entry ")?.1.split('(').next();
        text.lines().filter_map(named)
    }

    /// A text with the meaning of each panic at its end. The library's kernels have none.
    pub fn panics(&self) -> &'static str {
        match self.from {
            From::Text(ptx) => ptx,
            _ => "",
        }
    }

    /// A kernel as a module of its own, with the line of each instruction.
    ///
    /// # Errors
    ///
    /// There is no such kernel, or it does not compile.
    pub fn kernel(&self, entry: &str) -> Result<String, DeviceError> {
        let found = match self.from {
            From::Program(index) => find(COMPILED.modules[index].2, entry).map(unpack_text),
            From::Text(ptx) => ptx::with_one_kernel(ptx, entry),
            #[cfg(kernels_on_demand)]
            From::Demand => on_demand::kernels(self.target, &[entry])?.remove(entry),
        };
        found.ok_or_else(|| DeviceError::NoSuchEntry {
            entry: entry.to_owned(),
        })
    }

    /// Compiles kernels that will be needed, which takes less time together.
    ///
    /// # Errors
    ///
    /// One does not compile.
    pub fn prepare(&self, entries: &[&str]) -> Result<(), DeviceError> {
        #[cfg(kernels_on_demand)]
        if matches!(self.from, From::Demand) {
            return on_demand::kernels(self.target, entries).map(drop);
        }
        let _ = entries;
        Ok(())
    }

    /// The machine code of a kernel for exactly this architecture, if the build assembled it.
    pub fn machine_code(&self, entry: &str, architecture: i32) -> Option<Vec<u8>> {
        let From::Program(index) = self.from else {
            return None;
        };
        let mut all = COMPILED.machine_code.iter();
        let own = all.find(|(of, module, _)| (*of, *module) == (architecture, index));
        find(own?.2, entry).map(unpack)
    }
}

/// The architectures that this build has machine code for.
pub fn assembled() -> impl Iterator<Item = i32> {
    COMPILED
        .machine_code
        .iter()
        .map(|(architecture, ..)| *architecture)
}

/// A kernel in OpenCL C, or a clause that says why not. `None` if there is no such kernel.
///
/// # Errors
///
/// It does not compile.
pub(super) fn opencl(
    entry: &str,
) -> Result<Option<Result<&'static str, &'static str>>, DeviceError> {
    #[cfg(kernels_on_demand)]
    return on_demand::opencl(entry);
    #[cfg(not(kernels_on_demand))]
    {
        static TEXTS: Kept<Option<Result<&str, &str>>> = Mutex::new(BTreeMap::new());
        Ok(kept(&TEXTS, entry, || {
            let found = COMPILED
                .opencl
                .binary_search_by(|(name, _)| (*name).cmp(entry));
            let place = COMPILED.opencl[found.ok()?].1;
            Some(place.map(|place| &*unpack_text(place).leak()))
        }))
    }
}

/// Compiles these kernels to OpenCL C, which takes less time together than one by one.
///
/// # Errors
///
/// One does not compile.
pub fn prepare_opencl(entries: &[&str]) -> Result<(), DeviceError> {
    #[cfg(kernels_on_demand)]
    on_demand::compile_opencl(entries)?;
    let _ = entries;
    Ok(())
}

/// The number of kernels in OpenCL C, if that is known before they are compiled.
pub(super) fn opencl_count() -> Option<usize> {
    let are_there = COMPILED.opencl.iter().filter(|(_, text)| text.is_ok());
    (!cfg!(kernels_on_demand)).then(|| are_there.count())
}

#[cfg(kernels_on_demand)]
mod on_demand {
    use cuda_builder::{CudaBuilder, CudaBuilderError, DebugInfo, NvvmArch};

    use super::*;

    /// The targets for which the build script compiles, the oldest first.
    fn targets() -> impl Iterator<Item = &'static str> {
        env!("GPU_KERNELS_ARCHITECTURES").split(' ')
    }

    fn builder(target: &str) -> CudaBuilder {
        let arch = target.replace("sm_", "compute_").parse();
        let builder = CudaBuilder::new(env!("GPU_KERNELS"));
        let builder = builder.arch(arch.unwrap_or(NvvmArch::Compute75));
        builder.debug(DebugInfo::LineTables).panic_messages(false)
    }

    fn not_compiled(error: CudaBuilderError) -> DeviceError {
        DeviceError::NotCompiled {
            reason: error.to_string(),
        }
    }

    pub(super) fn modules() -> Vec<Module> {
        let module = |target| Module {
            target,
            isa: None,
            from: From::Demand,
        };
        targets().map(module).collect()
    }

    /// Looks for libNVVM once, and downloads it if there is none.
    pub(super) fn why_absent() -> Option<&'static str> {
        static REASON: Kept<Option<&str>> = Mutex::new(BTreeMap::new());
        kept(&REASON, "", || {
            let reason = cuda_builder::why_no_libnvvm();
            reason.map(|reason| &*reason.leak())
        })
    }

    pub(super) fn kernels(
        target: &str,
        entries: &[&str],
    ) -> Result<BTreeMap<String, String>, DeviceError> {
        let compiled = builder(target).kernels(entries, Path::new(env!("OUT_DIR")));
        compiled.map_err(not_compiled)
    }

    pub(super) fn opencl(
        entry: &str,
    ) -> Result<Option<Result<&'static str, &'static str>>, DeviceError> {
        static TEXTS: Kept<Option<Result<&str, &str>>> = Mutex::new(BTreeMap::new());
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(entry) {
            return Ok(*text);
        }
        let leaked = |text: Result<String, String>| match text {
            Ok(text) => Ok(&*text.leak()),
            Err(reason) => Err(&*reason.leak()),
        };
        let text = compile_opencl(&[entry])?.remove(entry).map(leaked);
        texts.insert(entry.to_owned(), text);
        Ok(text)
    }

    pub(super) fn compile_opencl(
        entries: &[&str],
    ) -> Result<BTreeMap<String, Result<String, String>>, DeviceError> {
        // The oldest uses the fewest features that OpenCL lacks.
        let oldest = targets().next().unwrap_or_default();
        let compiled = builder(oldest).opencl(entries, Path::new(env!("OUT_DIR")));
        compiled.map_err(not_compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_the_newest_module_that_it_and_its_driver_take() {
        const MODULES: [&str; 4] = [
            ".version 8.6\n.target sm_75\n",
            ".version 8.6\n.target sm_80\n",
            ".version 8.8\n.target sm_90a\n",
            ".version 9.0\n.target sm_100\n",
        ];
        let modules = MODULES.map(Module::of_text);
        for (architecture, driver, expected) in [
            (75, None, "sm_75"),
            (80, None, "sm_80"),
            (89, Some((13, 0)), "sm_80"),
            (90, Some((12, 9)), "sm_90a"),
            (90, Some((12, 8)), "sm_80"), // the driver does not read 8.8
            (100, Some((12, 9)), "sm_80"), // nor 9.0, and sm_90a is only for 90
            (100, Some((13, 1)), "sm_100"),
            (70, None, "sm_75"),          // too old a GPU for all
            (90, Some((11, 8)), "sm_75"), // too old a driver for all
        ] {
            let chosen = newest_for(&modules, architecture, driver).unwrap();
            assert_eq!(chosen.target(), expected, "{architecture}, {driver:?}");
        }
        assert!(newest_for(&[], 90, None).is_none());
    }

    #[test]
    fn what_the_program_holds_is_whole() {
        let names = |places: Places| places.is_sorted_by_key(|(name, _)| *name);
        assert!(names(COMPILED.sources));
        for (index, (target, isa, places)) in COMPILED.modules.iter().enumerate() {
            assert!(names(places) && !places.is_empty());
            let module = modules()[index];
            for (name, _) in *places {
                let ptx = module.kernel(name).unwrap();
                let header = ptx::header(&ptx);
                let found = (header.target, header.isa, header.entries);
                assert_eq!(found, (*target, *isa, 1), "{name}");
                assert!(ptx.contains(&format!(".entry {name}(")), "{name}");
            }
        }
        for (architecture, module, places) in COMPILED.machine_code {
            let module = modules()[*module];
            assert!(ptx::runs_on(module.target(), *architecture));
            for (name, _) in *places {
                let code = module.machine_code(name, *architecture).unwrap();
                assert!(code.starts_with(b"\x7fELF"), "{name}");
            }
        }
        let names = COMPILED.opencl.is_sorted_by_key(|(name, _)| *name);
        assert!(names);
    }

    #[test]
    fn this_build_has_ptx_or_a_reason() {
        match why_absent() {
            Some(reason) => assert!(!reason.is_empty()),
            None => {
                let architecture = |module: &Module| ptx::architecture(module.target()).unwrap();
                assert!(modules().is_sorted_by_key(architecture) && !modules().is_empty());
            }
        }
    }
}
