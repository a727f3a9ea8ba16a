//! NCCL's functions, as NVIDIA documents them, between processes: a message is a file.
//!
//! Sends and receives are done when their stream gets there, so that one that no event holds back
//! sends what is not written yet. Each message says what it is, and is received only as that: ranks
//! that do not call alike, or in another order, are an abort.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::gpu::{Gpu, Outcome, call, put};

const INVALID_USAGE: u32 = 5;

/// How long a message may take, before it is taken for one that never comes.
const PATIENCE: Duration = Duration::from_secs(60);

#[repr(C)]
pub struct UniqueId([u8; 128]);

/// One rank of a communicator.
pub struct Communicator {
    folder: PathBuf,
    rank: usize,
    ranks: usize,
    context: usize,
    /// How many messages there were from a rank to another.
    sent: BTreeMap<(usize, usize), u64>,
}

/// A part of a broadcast, or a message.
pub struct Message {
    communicator: usize,
    /// What both sides must say of it.
    header: String,
    from: usize,
    to: usize,
    start: u64,
    bytes: usize,
    stream: usize,
}

fn element_bytes(kind: c_int) -> usize {
    match kind {
        2 | 7 => 4,
        6 | 9 => 2,
        8 => 8,
        other => panic!("elements of type {other} are not known"),
    }
}

/// Waits until something is there.
fn wait_for<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what} never came");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Writes a file that others see only when it is complete.
fn publish(path: &Path, content: &[u8]) {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, content).expect("the ranks' folder can be written");
    fs::rename(unfinished, path).expect("the ranks' folder can be written");
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetVersion(version: *mut c_int) -> u32 {
    call(|gpu| put(version, gpu.setting("nccl") as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: u32) -> *const c_char {
    match status {
        INVALID_USAGE => c"invalid usage".as_ptr(),
        _ => c"unhandled cuda error".as_ptr(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut bytes = [0; 128];
    bytes[..4].copy_from_slice(&process::id().to_le_bytes());
    bytes[4..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    call(|_| put(id, UniqueId(bytes)))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommInitRank(handle: *mut usize, ranks: c_int, id: UniqueId, rank: c_int) -> u32 {
    call(|gpu| {
        assert!(gpu.current != 0 && gpu.group.is_none() && (0..ranks).contains(&rank));
        let name: String = id.0[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = gpu.ranks.join(name);
        fs::create_dir_all(&folder).expect("the ranks' folder can be written");
        let joined = |rank: c_int| folder.join(format!("joined-{rank}"));
        publish(&joined(rank), gpu.current.to_string().as_bytes());
        let mut contexts: Vec<String> = (0..ranks)
            .map(|rank| wait_for("a rank", || fs::read_to_string(joined(rank)).ok()))
            .collect();
        contexts.sort();
        contexts.dedup();
        if contexts.len() < ranks as usize {
            return Err(INVALID_USAGE); // ranks have the same GPU
        }
        let communicator = Communicator {
            folder,
            rank: rank as usize,
            ranks: ranks as usize,
            context: gpu.current,
            sent: BTreeMap::new(),
        };
        let number = gpu.new_handle();
        gpu.communicators.insert(number, communicator);
        put(handle, number)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDestroy(communicator: usize) -> u32 {
    call(|gpu| {
        gpu.run_pending();
        let left = gpu.communicators.remove(&communicator).expect("a communicator");
        // As NCCL does, it returns only when all ranks have called it.
        let file = |rank: usize| left.folder.join(format!("left-{rank}"));
        publish(&file(left.rank), &[]);
        (0..left.ranks).for_each(|rank| wait_for("the end of a rank", || file(rank).exists().then_some(())));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> u32 {
    call(|gpu| {
        assert!(gpu.group.replace(Vec::new()).is_none());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> u32 {
    call(|gpu| {
        let group = gpu.group.take().expect("a group has begun");
        // What is started together does not wait for each other.
        let (sends, receives): (Vec<Message>, Vec<Message>) = group
            .into_iter()
            .partition(|message| gpu.communicators[&message.communicator].rank == message.from);
        sends.into_iter().chain(receives).for_each(|message| start(gpu, message));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclSend(
    start: u64,
    count: usize,
    kind: c_int,
    to: c_int,
    communicator: usize,
    stream: usize,
) -> u32 {
    call(|gpu| {
        let from = gpu.communicators[&communicator].rank;
        let message = (from, to as usize, start);
        point_to_point(gpu, message, count, kind, communicator, stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclRecv(
    start: u64,
    count: usize,
    kind: c_int,
    from: c_int,
    communicator: usize,
    stream: usize,
) -> u32 {
    call(|gpu| {
        let to = gpu.communicators[&communicator].rank;
        let message = (from as usize, to, start);
        point_to_point(gpu, message, count, kind, communicator, stream)
    })
}

fn point_to_point(
    gpu: &mut Gpu,
    (from, to, start): (usize, usize, u64),
    count: usize,
    kind: c_int,
    communicator: usize,
    stream: usize,
) -> Outcome {
    let message = Message {
        communicator,
        header: format!("message of {count} of type {kind}"),
        from,
        to,
        start,
        bytes: count * element_bytes(kind),
        stream,
    };
    begin(gpu, message);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn ncclBroadcast(
    from: u64,
    to: u64,
    count: usize,
    kind: c_int,
    root: c_int,
    communicator: usize,
    stream: usize,
) -> u32 {
    call(|gpu| {
        let Communicator { rank, ranks, .. } = gpu.communicators[&communicator];
        let root = root as usize;
        let process = process::id();
        gpu.log(format_args!("broadcast process={process} communicator={communicator} root={root}"));
        let part = |receiver, start| Message {
            communicator,
            header: format!("broadcast of {count} of type {kind}"),
            from: root,
            to: receiver,
            start,
            bytes: count * element_bytes(kind),
            stream,
        };
        match rank == root {
            true => {
                assert_eq!(from, to, "the root's is in place");
                let others = (0..ranks).filter(|other| *other != root);
                others.for_each(|other| begin(gpu, part(other, from)));
            }
            false => begin(gpu, part(rank, to)),
        }
        Ok(())
    })
}

/// Starts a message, or keeps it until its group ends.
fn begin(gpu: &mut Gpu, message: Message) {
    match &mut gpu.group {
        Some(group) => group.push(message),
        None => start(gpu, message),
    }
}

fn start(gpu: &mut Gpu, message: Message) {
    let Message {
        communicator,
        header,
        from,
        to,
        start,
        bytes,
        stream,
    } = message;
    let here = gpu.context_of(stream);
    let known = gpu.communicators.get_mut(&communicator).expect("a communicator");
    assert!(from < known.ranks && to < known.ranks && from != to && here == known.context);
    let number = known.sent.entry((from, to)).or_default();
    let path = known.folder.join(format!("{from}-{to}-{number}"));
    *number += 1;
    let header = format!("{header:<64}").into_bytes();
    let is_sent = known.rank == from;
    if is_sent {
        gpu.log(format_args!(
            "nccl communicator={communicator} from={from} to={to} bytes={bytes} stream={stream}"
        ));
    }
    gpu.enqueue_copy(stream, move |gpu| {
        let memory = gpu.memory(start, bytes);
        if is_sent {
            // SAFETY: the memory has been checked.
            let elements = unsafe { std::slice::from_raw_parts(memory, bytes) };
            publish(&path, &[&header, elements].concat());
            return;
        }
        let came = wait_for("a message", || fs::read(&path).ok());
        fs::remove_file(&path).expect("the ranks' folder can be written");
        let (said, elements) = came.split_at(header.len());
        assert_eq!(String::from_utf8_lossy(said), String::from_utf8_lossy(&header), "{path:?}");
        // SAFETY: the memory has been checked, and so has the length, by the header.
        unsafe { memory.copy_from_nonoverlapping(elements.as_ptr(), bytes) };
    });
}

/// Open MPI's, for programs that have this library loaded before it.
#[unsafe(no_mangle)]
extern "C" fn MPIX_Query_cuda_support() -> c_int {
    let mut takes = 0;
    call(|gpu| {
        takes = gpu.setting("mpi") as c_int;
        Ok(())
    });
    takes
}
