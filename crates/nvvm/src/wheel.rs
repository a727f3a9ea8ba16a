//! The wheel that is fetched where no libNVVM is installed: version, checksums, contents.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

/// A wheel of Python's, pinned to its last bit, and what of it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Wheel {
    /// Its name and version, as pip expects them.
    pub requirement: &'static str,
    /// The platform that pip is told to download for.
    pub platform: &'static str,
    /// Its size, for people who wait for it.
    pub megabytes: u32,
    /// SHA-256 of the wheel itself.
    pub sha256: &'static str,
    /// The folder below the cache that its contents are kept in.
    pub folder: &'static str,
    /// The files that are kept.
    pub members: &'static [Member],
}

/// One file of a [`Wheel`].
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its path in the wheel.
    pub path: &'static str,
    /// Where it is kept, in the layout of a CUDA SDK.
    pub kept_as: &'static str,
    /// Its SHA-256.
    pub sha256: &'static str,
    /// Whether it is a program.
    pub executable: bool,
}

impl Wheel {
    /// Where a wheel's `libnvvm.so` is kept; the other files of the toolkit are found relative to
    /// it.
    pub(crate) const LIBNVVM: &str = "nvvm/lib64/libnvvm.so";

    /// The compiler of CUDA 12.9.1 for x86-64 Linux, which compiles for every GPU from Turing to
    /// Blackwell.
    pub const NVCC_12_9: Wheel = Wheel {
        requirement: "nvidia-cuda-nvcc-cu12==12.9.86",
        platform: "manylinux2010_x86_64",
        megabytes: 40,
        sha256: "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
        folder: "nvvm-12.9.86",
        members: &[
            Member {
                path: "nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so",
                kept_as: Wheel::LIBNVVM,
                sha256: "7915b9e3eaed7f686774ee82f99cfacebaefcd00296f44bdb979e57d363a7ca8",
                executable: false,
            },
            Member {
                path: "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
                kept_as: "nvvm/libdevice/libdevice.10.bc",
                sha256: "9e84b504f25d26ec775ef91f7122e68dac77fa1f776f1044128f5028356265d8",
                executable: false,
            },
            Member {
                path: "nvidia/cuda_nvcc/bin/ptxas",
                kept_as: "bin/ptxas",
                sha256: "983b0e9283855979f42cebfd80d43f9b6e786eb84f03f7570bf941c4d3a3c461",
                executable: true,
            },
            // The terms under which NVIDIA lets the three above be used.
            Member {
                path: "nvidia_cuda_nvcc_cu12-12.9.86.dist-info/licenses/License.txt",
                kept_as: "License.txt",
                sha256: "ad6f5853fba0ca0d159d0f58d49ae49830c2f8c93f7a92648b9ce90adb4c6ccd",
                executable: false,
            },
        ],
    };

    /// Its name and version, in words: `nvidia-cuda-nvcc-cu12 12.9.86`.
    pub fn name_and_version(&self) -> String {
        self.requirement.replace("==", " ")
    }

    /// Whether `folder` holds every member, intact to the last bit. To read them takes a quarter of
    /// a second, so a file beside them notes when they were last found so.
    pub(crate) fn is_whole_in(&self, folder: &Path) -> bool {
        let Some(seen) = self.seen_in(folder) else {
            return false;
        };
        let note = folder.join("checked");
        if fs::read_to_string(&note).is_ok_and(|noted| noted == seen.text) {
            return true;
        }
        let whole = self.members.iter().all(|member| {
            sha256_of(&folder.join(member.kept_as)).is_ok_and(|found| found == member.sha256)
        });
        // What has just been written may be written again, and have the same time after it.
        let settled = seen.newest.elapsed().is_ok_and(|age| age > SETTLED);
        if whole && settled {
            // Without the note they are read again next time.
            let _ = fs::write(note, seen.text);
        }
        whole
    }

    /// None if a member is missing.
    fn seen_in(&self, folder: &Path) -> Option<Seen> {
        let mut text = String::new();
        let mut newest = SystemTime::UNIX_EPOCH;
        for member in self.members {
            let file = fs::metadata(folder.join(member.kept_as)).ok()?;
            let changed = file.modified().ok()?;
            newest = newest.max(changed);
            text += &format!("{} {} {changed:?}\n", member.sha256, file.len());
        }
        Some(Seen { text, newest })
    }
}

/// What can be told of members without reading them.
struct Seen {
    /// The checksum that each must have, its length and when it was written.
    text: String,
    newest: SystemTime,
}

/// Longer than a tick of the clock by which files have their times.
const SETTLED: Duration = Duration::from_secs(2);

/// SHA-256 of a file, in lower-case hexadecimal.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hasher))?;
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Feeds what is written to it to a hasher.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
