//! The driver's functions for memory that other processes read, as `cuda.h` documents them: with
//! the setting `ipc`, each allocation is a file in the ranks' folder, which another process maps.
//!
//! Memory that is freed while another process has it open is an abort.

use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;

use crate::gpu::{Gpu, INVALID_VALUE, Outcome, call, put};

const INVALID_CONTEXT: u32 = 201;
const PEER_ACCESS_UNSUPPORTED: u32 = 217;
const NOT_SUPPORTED: u32 = 801;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        may: c_int,
        kind: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
    fn munmap(start: *mut c_void, bytes: usize) -> c_int;
}

/// Memory that is a file: an allocation of this process, or another's that it has opened.
pub struct Mapped {
    number: u64,
    owner: u32,
    opened: u32,
}

impl Mapped {
    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("memory-{}-{}", self.owner, self.number))
    }

    /// A file that there is as long as a process has the memory open.
    fn mark(&self, folder: &Path, process: u32) -> PathBuf {
        folder.join(format!("open-{}-{}-{process}", self.owner, self.number))
    }
}

/// `CUipcMemHandle`.
#[repr(C)]
pub struct Handle {
    owner: u64,
    number: u64,
    bytes: u64,
    unused: [u64; 5],
}

/// Maps a file of so many bytes.
fn map(file: &File, bytes: usize) -> *mut u8 {
    const READ_AND_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    // SAFETY: the file has so many bytes, and the system chooses a free place.
    let start = unsafe {
        let file = file.as_raw_fd();
        mmap(ptr::null_mut(), bytes, READ_AND_WRITE, SHARED, file, 0)
    };
    assert!(start.addr() != usize::MAX, "the host has no {bytes} bytes");
    start.cast()
}

impl Gpu {
    /// Memory for an allocation, as a file.
    pub fn map_new(&mut self, bytes: usize) -> *mut u8 {
        let mapped = Mapped {
            number: self.new_handle() as u64,
            owner: process::id(),
            opened: 0,
        };
        let path = mapped.file(&self.ranks);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = file.expect("the ranks' folder can be written");
        file.set_len(bytes as u64)
            .expect("the ranks' folder can be written");
        let start = map(&file, bytes);
        self.mapped.insert(start.expose_provenance(), mapped);
        start
    }

    /// Gives back memory that is a file; whether it was one.
    ///
    /// # Panics
    ///
    /// If another process has it open.
    pub fn unmap(&mut self, start: u64, bytes: usize) -> bool {
        let Some(mapped) = self.mapped.remove(&(start as usize)) else {
            return false;
        };
        if mapped.owner == process::id() {
            let marks = format!("open-{}-{}-", mapped.owner, mapped.number);
            let files = fs::read_dir(&self.ranks)
                .expect("the ranks' folder is there")
                .flatten();
            let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
            let mark = names.find(|name| name.starts_with(&marks));
            assert_eq!(mark, None, "freed while another process has it open");
            fs::remove_file(mapped.file(&self.ranks)).expect("it was written");
        }
        // SAFETY: `map` made it, and it is gone from the list.
        unsafe { munmap(ptr::with_exposed_provenance_mut(start as usize), bytes) };
        true
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, start: u64) -> u32 {
    call(|gpu| {
        let (begin, length) = gpu.allocation(start).ok_or(INVALID_VALUE)?;
        put(base, begin)?;
        put(bytes, length)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuIpcGetMemHandle(handle: *mut Handle, start: u64) -> u32 {
    call(|gpu| {
        let (begin, bytes) = gpu.allocation(start).ok_or(INVALID_VALUE)?;
        let mapped = gpu.mapped.get(&(begin as usize)).ok_or(NOT_SUPPORTED)?;
        let of_this = Handle {
            owner: mapped.owner.into(),
            number: mapped.number,
            bytes: bytes as u64,
            unused: [0; 5],
        };
        put(handle, of_this)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuIpcOpenMemHandle_v2(start: *mut u64, handle: Handle, _flags: u32) -> u32 {
    call(|gpu| {
        if handle.owner == u64::from(process::id()) {
            return Err(INVALID_CONTEXT);
        }
        if gpu.setting("peers") == 0 {
            return Err(PEER_ACCESS_UNSUPPORTED);
        }
        let is_same = |mapped: &Mapped| {
            u64::from(mapped.owner) == handle.owner && mapped.number == handle.number
        };
        let (bytes, context) = (handle.bytes as usize, gpu.current);
        gpu.log(format_args!("open bytes={bytes} context={context}"));
        let known = gpu.mapped.iter_mut().find(|(_, mapped)| is_same(mapped));
        if let Some((known, mapped)) = known {
            mapped.opened += 1;
            return put(start, *known as u64);
        }
        let mapped = Mapped {
            number: handle.number,
            owner: handle.owner as u32,
            opened: 1,
        };
        let path = mapped.file(&gpu.ranks);
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|_| INVALID_VALUE)?;
        let at = map(&file, bytes).expose_provenance();
        let mark = mapped.mark(&gpu.ranks, process::id());
        fs::write(mark, "").expect("the ranks' folder can be written");
        gpu.mapped.insert(at, mapped);
        gpu.open(at, bytes);
        put(start, at as u64)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuIpcCloseMemHandle(start: u64) -> u32 {
    call(|gpu| close(gpu, start))
}

fn close(gpu: &mut Gpu, start: u64) -> Outcome {
    gpu.run_pending();
    let context = gpu.current;
    gpu.log(format_args!("close context={context}"));
    let mapped = gpu
        .mapped
        .get_mut(&(start as usize))
        .expect("it was opened");
    assert!(mapped.opened > 0, "it was opened");
    mapped.opened -= 1;
    if mapped.opened == 0 {
        let mark = mapped.mark(&gpu.ranks, process::id());
        let bytes = gpu.close(start);
        gpu.unmap(start, bytes);
        fs::remove_file(mark).expect("it was written");
    }
    Ok(())
}
