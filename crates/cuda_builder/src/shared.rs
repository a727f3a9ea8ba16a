//! The folder that all build scripts of a workspace share, and the PTX that libNVVM has compiled
//! before.
//!
//! Cargo runs a build script again for each profile (dev, release), each set of features and for
//! clippy, each time with an empty `OUT_DIR`. The kernels are the same in all of them. So their IR
//! and their PTX are in `target/cuda_builder`, and only the first build compiles them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use nvvm::{NvvmArch, Toolkit};
use sha2::{Digest, Sha256};

use crate::{CudaBuilderError, build_script::write_atomically};

/// How many PTX texts are kept: those used last. A kernel's has 100 kB, and the project's own
/// builds make 750.
const KEPT: usize = 2048;

/// `cuda_builder` in the folder that holds those of the profiles: `OUT_DIR` is
/// `target/PROFILE/build/PACKAGE/out`. Elsewhere it is in `OUT_DIR` itself.
pub(crate) fn folder(out_dir: &Path) -> PathBuf {
    let build = out_dir.ancestors().find(|folder| folder.ends_with("build"));
    let target = build.and_then(|build| build.parent()?.parent());
    target.unwrap_or(out_dir).join("cuda_builder")
}

/// Waits until no other build script of the workspace compiles kernels to IR; the next one waits
/// until the file is dropped.
pub(crate) fn lock(folder: &Path) -> Result<File, CudaBuilderError> {
    let path = folder.join("lock");
    let lock = || {
        fs::create_dir_all(folder)?;
        let file = File::options().create(true).append(true).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|source| CudaBuilderError::NotWritten {
        path: path.clone(),
        source,
    })
}

/// PTX texts that libNVVM wrote, each in a file whose name is a hash of all that it depends on.
pub(crate) struct PtxCache {
    folder: PathBuf,
}

impl PtxCache {
    pub(crate) fn new(out_dir: &Path) -> Self {
        PtxCache {
            folder: folder(out_dir).join("ptx"),
        }
    }

    /// The name of the file for these arguments of [`nvvm::Compiler::compile`].
    pub(crate) fn key(
        toolkit: &Toolkit,
        modules: &[(&str, &[u8])],
        arch: NvvmArch,
        options: &[&str],
    ) -> String {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        // Older versions compiled several modules in one process, and not always to this PTX.
        add(b"one process each");
        // Another libNVVM in the same place has another size or time.
        let file = fs::metadata(&toolkit.libnvvm);
        let file = file.map(|file| (file.len(), file.modified().ok())).ok();
        add(format!("{:?} {file:?} {arch} {options:?}", toolkit.libnvvm).as_bytes());
        for (name, text) in modules {
            add(name.as_bytes());
            add(text);
        }
        let digits = hash.finalize();
        let digits = digits.iter().map(|byte| format!("{byte:02x}"));
        digits.chain([".ptx".to_owned()]).collect()
    }

    /// The PTX under this key, if it was compiled before.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let path = self.folder.join(key);
        let ptx = fs::read_to_string(&path).ok()?;
        // The newest files stay. If the time cannot be set, nothing is wrong.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(ptx)
    }

    /// Keeps the PTX under this key, and returns it.
    pub(crate) fn put(&self, key: &str, ptx: String) -> Result<String, CudaBuilderError> {
        fs::create_dir_all(&self.folder).map_err(|source| CudaBuilderError::NotWritten {
            path: self.folder.clone(),
            source,
        })?;
        write_atomically(&self.folder.join(key), ptx.as_bytes())?;
        Ok(ptx)
    }

    /// Deletes what was not used for longest, beyond what is kept. A file too many only takes
    /// space.
    pub(crate) fn trim(&self) {
        let _ = self.delete_oldest();
    }

    fn delete_oldest(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
        files.sort();
        let old = files.len().saturating_sub(KEPT);
        files[..old]
            .iter()
            .try_for_each(|(_, path)| fs::remove_file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvvm::Origin;
    use std::time::Duration;

    #[test]
    fn build_scripts_of_one_target_folder_share_and_others_do_not() {
        let debug = Path::new("/build/target/debug/build/kernels-1/out");
        let release = Path::new("/build/target/release/build/kernels-2/out");
        assert_eq!(folder(debug), Path::new("/build/target/cuda_builder"));
        assert_eq!(folder(release), folder(debug));
        let other = Path::new("/out");
        assert_eq!(folder(other), Path::new("/out/cuda_builder"));
    }

    #[test]
    fn the_key_depends_on_all_that_the_ptx_depends_on() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvvm.so");
        fs::write(&library, "one").unwrap();
        let toolkit = Toolkit {
            libnvvm: library.clone(),
            libdevice: None,
            ptxas: None,
            origin: Origin::Variable("LIBNVVM_PATH"),
        };
        let key = |modules: &[(&str, &[u8])], arch, options: &[&str]| {
            PtxCache::key(&toolkit, modules, arch, options)
        };
        let arch = NvvmArch::Compute75;
        let one = key(&[("kernels", b"text")], arch, &["-opt=3"]);
        assert_eq!(one, key(&[("kernels", b"text")], arch, &["-opt=3"]));
        let others = [
            key(&[("kernels", b"texts")], arch, &["-opt=3"]),
            key(
                &[("kernels", b"text"), ("libdevice", b"")],
                arch,
                &["-opt=3"],
            ),
            key(
                &[("kernels", b"te"), ("libdevice", b"xt")],
                arch,
                &["-opt=3"],
            ),
            // The same bytes, divided at another place.
            key(&[("kernelst", b"ext")], arch, &["-opt=3"]),
            key(&[("kernels", b"text")], NvvmArch::Compute80, &["-opt=3"]),
            key(&[("kernels", b"text")], arch, &["-opt=0"]),
            key(&[("kernels", b"text")], arch, &[]),
        ];
        assert!(!others.contains(&one));
        fs::write(&library, "another").unwrap();
        assert_ne!(one, key(&[("kernels", b"text")], arch, &["-opt=3"]));
    }

    #[test]
    fn the_ptx_that_was_used_last_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = PtxCache::new(folder.path());
        assert_eq!(cache.get("0"), None);
        for index in 0..KEPT {
            let key = index.to_string();
            assert_eq!(
                cache.put(&key, format!("ptx {key}")).unwrap(),
                format!("ptx {key}")
            );
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(index as u64);
            let file = File::options().append(true).open(cache.folder.join(key));
            file.unwrap().set_modified(then).unwrap();
        }
        assert_eq!(cache.get("0").as_deref(), Some("ptx 0"));
        cache.put("one more", String::new()).unwrap();
        cache.trim();
        assert_eq!(cache.get("0").as_deref(), Some("ptx 0"));
        assert_eq!(cache.get("1"), None);
    }
}
