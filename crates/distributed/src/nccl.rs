//! NCCL, NVIDIA's library of messages between GPUs, found when the program runs: nothing is linked,
//! and a machine without it says so.
//!
//! The functions and numbers are those of NVIDIA's documentation of NCCL 2. All that is unsafe
//! about it is in this file.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use gpu_gemm::{Element, ElementType};
use libloading::Library;
use thiserror::Error;

/// The file that NCCL 2 is in.
pub const FILE: &str = "libnccl.so.2";

/// The first version with `ncclSend` and `ncclRecv`.
const OLDEST: Version = Version(2, 7, 0);

/// A version: major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32, u32, u32);

impl Version {
    /// From the number that `ncclGetVersion` returns: 2708 is 2.7.8, and from 2.9 on, 20901 is
    /// 2.9.1.
    pub fn of(number: u32) -> Version {
        let unit = if number < 10_000 { 1000 } else { 10_000 };
        Version(number / unit, number % unit / 100, number % 100)
    }

    /// As `ncclGetVersion` returns it.
    pub fn number(self) -> u32 {
        let Version(major, minor, patch) = self;
        let unit = if self < Version(2, 9, 0) {
            1000
        } else {
            10_000
        };
        major * unit + minor * 100 + patch
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(major, minor, patch) = self;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// Why NCCL cannot be used, or what it could not do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NcclError {
    #[error("There is no NCCL on this machine ({file}): {why}.")]
    Missing { file: String, why: String },
    #[error("This NCCL has no function {function}: it is not NCCL 2, or it is damaged.")]
    NoFunction { function: &'static str },
    #[error("This is NCCL {found}, but messages take NCCL 2 from {OLDEST} on.")]
    Version { found: Version },
    #[error("NCCL failed in {function}: {what} (status {status}).")]
    Failed {
        function: &'static str,
        what: String,
        status: u32,
    },
    #[error("A GPU of rank {rank} of {ranks} cannot exist: ranks are counted from 0.")]
    NoSuchRank { rank: usize, ranks: usize },
}

/// `ncclUniqueId`: what rank 0 tells the others, so that they find each other.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId {
    bytes: [u8; UniqueId::BYTES],
}

impl UniqueId {
    /// `NCCL_UNIQUE_ID_BYTES`.
    pub const BYTES: usize = 128;

    /// From what another rank sent.
    pub fn from_bytes(bytes: [u8; UniqueId::BYTES]) -> UniqueId {
        UniqueId { bytes }
    }

    pub fn bytes(&self) -> &[u8; UniqueId::BYTES] {
        &self.bytes
    }
}

type Comm = *mut c_void;
type Stream = *mut c_void;

/// The functions, with their types in NCCL 2.
struct Functions {
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> u32,
    comm_init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> u32,
    comm_destroy: unsafe extern "C" fn(Comm) -> u32,
    get_error_string: unsafe extern "C" fn(u32) -> *const c_char,
    broadcast:
        unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> u32,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, Stream) -> u32,
    recv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, Stream) -> u32,
    group_start: unsafe extern "C" fn() -> u32,
    group_end: unsafe extern "C" fn() -> u32,
}

/// NCCL, loaded.
#[derive(Clone)]
pub struct Nccl(Arc<Loaded>);

struct Loaded {
    functions: Functions,
    version: Version,
    /// Keeps the functions loaded.
    _library: Library,
}

impl Nccl {
    /// Finds NCCL where libraries are found.
    ///
    /// # Errors
    ///
    /// There is none, or one of another version.
    pub fn load() -> Result<Nccl, NcclError> {
        Nccl::load_from(FILE.as_ref())
    }

    /// Loads the NCCL that is in a file.
    ///
    /// # Errors
    ///
    /// As for [`Nccl::load`].
    pub fn load_from(file: &OsStr) -> Result<Nccl, NcclError> {
        // SAFETY: loading NVIDIA's library has no requirements of its own.
        let library = unsafe { Library::new(file) }.map_err(|error| NcclError::Missing {
            file: file.to_string_lossy().into_owned(),
            why: error.to_string().trim_end_matches('.').to_string(),
        })?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type where it is stored is that of NCCL 2's function of this name,
                // and it is called only while the library is loaded.
                match unsafe { library.get(concat!($name, "\0").as_bytes()) } {
                    Ok(function) => *function,
                    Err(_) => return Err(NcclError::NoFunction { function: $name }),
                }
            };
        }
        let get_version: unsafe extern "C" fn(*mut c_int) -> u32 = function!("ncclGetVersion");
        let get_error_string = function!("ncclGetErrorString");
        let mut number = 0;
        // SAFETY: the target outlives the call.
        let status = unsafe { get_version(&mut number) };
        checked("ncclGetVersion", status, get_error_string)?;
        // Before the other functions: an older one does not have all of them.
        let found = Version::of(u32::try_from(number).unwrap_or(0));
        if found < OLDEST || found.0 != OLDEST.0 {
            return Err(NcclError::Version { found });
        }
        let functions = Functions {
            get_unique_id: function!("ncclGetUniqueId"),
            comm_init_rank: function!("ncclCommInitRank"),
            comm_destroy: function!("ncclCommDestroy"),
            get_error_string,
            broadcast: function!("ncclBroadcast"),
            send: function!("ncclSend"),
            recv: function!("ncclRecv"),
            group_start: function!("ncclGroupStart"),
            group_end: function!("ncclGroupEnd"),
        };
        Ok(Nccl(Arc::new(Loaded {
            functions,
            version: found,
            _library: library,
        })))
    }

    pub fn version(&self) -> Version {
        self.0.version
    }

    /// What rank 0 sends to the others before all of them join.
    ///
    /// # Errors
    ///
    /// NCCL finds no way for messages.
    pub fn unique_id(&self) -> Result<UniqueId, NcclError> {
        let mut id = UniqueId::from_bytes([0; UniqueId::BYTES]);
        // SAFETY: the target outlives the call.
        let status = unsafe { (self.0.functions.get_unique_id)(&mut id) };
        self.check("ncclGetUniqueId", status)?;
        Ok(id)
    }

    /// Joins `ranks` ranks, of which this is one, on the GPU whose context is current. All call it,
    /// with the same identity, and it returns when all have.
    ///
    /// # Errors
    ///
    /// NCCL fails, for example as two ranks have the same GPU.
    pub fn join(&self, id: UniqueId, rank: usize, ranks: usize) -> Result<Communicator, NcclError> {
        let no_such = || NcclError::NoSuchRank { rank, ranks };
        let number = |number: usize| c_int::try_from(number).map_err(|_| no_such());
        if rank >= ranks {
            return Err(no_such());
        }
        let mut comm = ptr::null_mut();
        let (size, number) = (number(ranks)?, number(rank)?);
        // SAFETY: the target outlives the call.
        let status = unsafe { (self.0.functions.comm_init_rank)(&mut comm, size, id, number) };
        self.check("ncclCommInitRank", status)?;
        Ok(Communicator {
            nccl: self.clone(),
            comm,
        })
    }

    /// Starts what `messages` sends and receives as one operation: without that, two ranks that
    /// send to each other wait for each other.
    ///
    /// # Errors
    ///
    /// That of `messages`, or NCCL fails.
    pub fn group(&self, messages: impl FnOnce() -> Result<(), NcclError>) -> Result<(), NcclError> {
        // SAFETY: it has no requirements.
        let status = unsafe { (self.0.functions.group_start)() };
        self.check("ncclGroupStart", status)?;
        let started = messages();
        // SAFETY: a group was started. It ends whatever happened.
        let status = unsafe { (self.0.functions.group_end)() };
        started.and(self.check("ncclGroupEnd", status))
    }

    fn check(&self, function: &'static str, status: u32) -> Result<(), NcclError> {
        checked(function, status, self.0.functions.get_error_string)
    }
}

/// The error that a status stands for, in NCCL's words.
fn checked(
    function: &'static str,
    status: u32,
    get_error_string: unsafe extern "C" fn(u32) -> *const c_char,
) -> Result<(), NcclError> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: it takes any number, and returns text that lives as long as the library, or nothing.
    let what = unsafe {
        let text = get_error_string(status);
        match text.is_null() {
            true => "an error without a name".to_string(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    };
    Err(NcclError::Failed {
        function,
        what,
        status,
    })
}

/// `ncclDataType_t` of an element type.
fn data_type(element: ElementType) -> c_int {
    match element {
        ElementType::I32 => 2,
        ElementType::F16 => 6,
        ElementType::F32 => 7,
        ElementType::F64 => 8,
        ElementType::Bf16 => 9,
    }
}

/// One rank among those that have joined.
pub struct Communicator {
    nccl: Nccl,
    comm: Comm,
}

impl Communicator {
    /// Starts to copy `count` elements at `from` on the GPU of rank `root` to `to` on every rank's.
    ///
    /// # Errors
    ///
    /// NCCL fails.
    ///
    /// # Safety
    ///
    /// All ranks call it alike. On the root `from`, and everywhere `to`, is memory of this rank's
    /// GPU with room for so many elements, which lives, and which nothing else changes, until the
    /// stream has done it; `stream` is a stream of that GPU.
    pub unsafe fn broadcast<T: Element>(
        &self,
        from: *const T,
        to: *mut T,
        count: usize,
        root: usize,
        stream: *mut c_void,
    ) -> Result<(), NcclError> {
        let (kind, root) = (data_type(T::TYPE), root as c_int);
        // SAFETY: the caller vouches for the memory and for the stream.
        let status = unsafe {
            (self.nccl.0.functions.broadcast)(
                from.cast(),
                to.cast(),
                count,
                kind,
                root,
                self.comm,
                stream,
            )
        };
        self.nccl.check("ncclBroadcast", status)
    }

    /// Starts to send `count` elements to another rank, which receives as many.
    ///
    /// # Errors
    ///
    /// NCCL fails.
    ///
    /// # Safety
    ///
    /// As for [`Communicator::broadcast`] on the root.
    pub unsafe fn send<T: Element>(
        &self,
        from: *const T,
        count: usize,
        to: usize,
        stream: *mut c_void,
    ) -> Result<(), NcclError> {
        let (kind, peer) = (data_type(T::TYPE), to as c_int);
        // SAFETY: as above.
        let status = unsafe {
            (self.nccl.0.functions.send)(from.cast(), count, kind, peer, self.comm, stream)
        };
        self.nccl.check("ncclSend", status)
    }

    /// Starts to receive `count` elements from another rank, which sends as many.
    ///
    /// # Errors
    ///
    /// NCCL fails.
    ///
    /// # Safety
    ///
    /// As for [`Communicator::broadcast`] where it is received.
    pub unsafe fn receive<T: Element>(
        &self,
        to: *mut T,
        count: usize,
        from: usize,
        stream: *mut c_void,
    ) -> Result<(), NcclError> {
        let (kind, peer) = (data_type(T::TYPE), from as c_int);
        // SAFETY: as above.
        let status = unsafe {
            (self.nccl.0.functions.recv)(to.cast(), count, kind, peer, self.comm, stream)
        };
        self.nccl.check("ncclRecv", status)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: `join` made it, and nothing uses it any longer. If NCCL fails, nothing can be
        // done.
        let _ = unsafe { (self.nccl.0.functions.comm_destroy)(self.comm) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_nccl_writes_them_before_and_after_its_change() {
        assert_eq!(Version::of(2604), Version(2, 6, 4));
        assert_eq!(Version::of(2708), Version(2, 7, 8));
        assert_eq!(Version::of(20901), Version(2, 9, 1));
        assert_eq!(Version::of(22105).to_string(), "2.21.5");
        assert!(Version::of(2604) < OLDEST && OLDEST < Version::of(22105));
        for number in [2604, 2708, 20901, 22105] {
            assert_eq!(Version::of(number).number(), number);
        }
    }
}
