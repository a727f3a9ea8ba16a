//! An NCCL without GPUs: it writes down what it is told, and fails where it is told to. `main.rs`
//! compiles it, each test a copy of its own.

#![allow(non_snake_case)] // NVIDIA's names

use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// `version=22105` and names of functions that fail, as in `ncclSend=4`, with blanks between.
static SETTINGS: Mutex<String> = Mutex::new(String::new());
static LOG: Mutex<String> = Mutex::new(String::new());

fn setting(name: &str) -> Option<u32> {
    let settings = SETTINGS.lock().unwrap();
    let mut words = settings.split_whitespace().filter_map(|word| word.split_once('='));
    words.find(|(known, _)| *known == name).map(|(_, value)| value.parse().unwrap())
}

fn said(name: &str, arguments: std::fmt::Arguments<'_>) -> u32 {
    LOG.lock().unwrap().push_str(&format!("{name}{arguments}\n"));
    setting(name).unwrap_or(0)
}

#[repr(C)]
pub struct UniqueId([u8; 128]);

/// # Safety
///
/// `text` is that of a live string of this length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_set(text: *const u8, length: usize) {
    // SAFETY: as documented.
    let text = unsafe { std::slice::from_raw_parts(text, length) };
    *SETTINGS.lock().unwrap() = String::from_utf8(text.to_vec()).unwrap();
}

/// # Safety
///
/// There is room for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_log(target: *mut u8, room: usize) -> usize {
    let log = LOG.lock().unwrap();
    assert!(log.len() <= room);
    // SAFETY: as documented.
    unsafe { target.copy_from_nonoverlapping(log.as_ptr(), log.len()) };
    log.len()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetVersion(version: *mut c_int) -> u32 {
    let number = setting("version").unwrap_or(22105);
    // SAFETY: NCCL's documentation asks for a place that can be written.
    unsafe { version.write(number as c_int) };
    setting("ncclGetVersion").unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: u32) -> *const c_char {
    match status {
        1 => c"unhandled cuda error".as_ptr(),
        4 => c"invalid argument".as_ptr(),
        5 => c"invalid usage".as_ptr(),
        _ => std::ptr::null(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> u32 {
    // SAFETY: NCCL's documentation asks for a place that can be written.
    unsafe { id.write(UniqueId([7; 128])) };
    said("ncclGetUniqueId", format_args!(""))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommInitRank(comm: *mut usize, ranks: c_int, id: UniqueId, rank: c_int) -> u32 {
    assert!(id.0.iter().all(|byte| *byte == 7));
    // SAFETY: NCCL's documentation asks for a place that can be written.
    unsafe { comm.write(42) };
    said("ncclCommInitRank", format_args!(" rank {rank} of {ranks}"))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDestroy(comm: usize) -> u32 {
    said("ncclCommDestroy", format_args!(" {comm}"))
}

#[unsafe(no_mangle)]
extern "C" fn ncclBroadcast(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    kind: c_int,
    root: c_int,
    comm: usize,
    stream: usize,
) -> u32 {
    let (from, to) = (from.addr(), to.addr());
    said(
        "ncclBroadcast",
        format_args!(" {from}->{to} {count} of type {kind} root {root} comm {comm} stream {stream}"),
    )
}

#[cfg(not(without_send))]
#[unsafe(no_mangle)]
extern "C" fn ncclSend(
    from: *const c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: usize,
    stream: usize,
) -> u32 {
    let from = from.addr();
    said(
        "ncclSend",
        format_args!(" {from} {count} of type {kind} to {peer} comm {comm} stream {stream}"),
    )
}

#[unsafe(no_mangle)]
extern "C" fn ncclRecv(
    to: *mut c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: usize,
    stream: usize,
) -> u32 {
    let to = to.addr();
    said(
        "ncclRecv",
        format_args!(" {to} {count} of type {kind} from {peer} comm {comm} stream {stream}"),
    )
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> u32 {
    said("ncclGroupStart", format_args!(""))
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> u32 {
    said("ncclGroupEnd", format_args!(""))
}
