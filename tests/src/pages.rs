//! Memory with fences: pages beside it that nobody can access. What accesses them ends the
//! process, with a message that names the memory.
//!
//! ```text
//!   | fence ........ | poison  elements | fence ........ |      Edge::End
//!   | fence ........ | elements  poison | fence ........ |      Edge::Start
//! ```

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::{io, ptr, slice};

use host::data::Number;

/// Bytes of a fence: many rows of any matrix that is tested with one.
const FENCE_BYTES: usize = 4 << 20;

/// Which end of the elements is at a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Nothing lies before the first element.
    Start,
    /// Nothing lies after the last element, if its address allows that.
    End,
}

/// Elements between fences.
#[derive(Debug)]
pub struct Fenced<T: Number> {
    /// All that is mapped, fences included.
    map: *mut u8,
    map_bytes: usize,
    /// The pages between the fences.
    pages: *mut T,
    pages_length: usize,
    /// Where among these elements the first is that was given.
    first: usize,
    length: usize,
    entry: &'static Entry,
}

impl<T: Number> Fenced<T> {
    /// A copy of these elements that begins at a multiple of `alignment` bytes. Where the process
    /// ends because something beside them was accessed, the message says so of `name`.
    ///
    /// # Errors
    ///
    /// There is no memory, or there are too many fences at once.
    ///
    /// # Panics
    ///
    /// If `alignment` is no multiple of an element's size, or more than a page.
    pub fn new(
        name: String,
        elements: &[T],
        edge: Edge,
        alignment: usize,
    ) -> io::Result<Fenced<T>> {
        let size = size_of::<T>();
        // SAFETY: it reads no memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned() as usize;
        assert!(alignment.is_multiple_of(size) && page.is_multiple_of(alignment));
        let pages_bytes = size_of_val(elements).next_multiple_of(page);
        let map_bytes = pages_bytes + 2 * FENCE_BYTES;
        report_accesses_of_fences()?;

        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, wherever there is room.
        let map = unsafe { libc::mmap(ptr::null_mut(), map_bytes, libc::PROT_NONE, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = map.cast::<u8>();
        let pages = map.wrapping_add(FENCE_BYTES);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: they are pages of the new mapping.
        if unsafe { libc::mprotect(pages.cast(), pages_bytes, access) } != 0 {
            return Err(io::Error::last_os_error());
        }

        let pages_length = pages_bytes / size;
        let first = match edge {
            Edge::Start => 0,
            Edge::End => {
                let last_possible = pages_bytes - size_of_val(elements);
                last_possible / alignment * alignment / size
            }
        };
        let fences = Fences {
            first: map.addr(),
            pages: pages.addr(),
            end: map.addr() + map_bytes,
        };
        let mut fenced = Fenced {
            map,
            map_bytes,
            pages: pages.cast(),
            pages_length,
            first,
            length: elements.len(),
            entry: Entry::claim(name, fences)?,
        };
        let memory = fenced.memory_mut();
        memory.fill(T::POISON);
        memory[first..first + elements.len()].copy_from_slice(elements);
        Ok(fenced)
    }

    fn memory(&self) -> &[T] {
        // SAFETY: the pages are mapped as long as `self` lives, and any bits are an element.
        unsafe { slice::from_raw_parts(self.pages, self.pages_length) }
    }

    fn memory_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed as a whole.
        unsafe { slice::from_raw_parts_mut(self.pages, self.pages_length) }
    }

    /// The elements.
    pub fn elements(&self) -> &[T] {
        &self.memory()[self.first..self.first + self.length]
    }

    /// The first element, for writes too, as long as `self` lives.
    pub fn start(&mut self) -> *mut u8 {
        self.pages.wrapping_add(self.first).cast()
    }

    /// Whether all that lies between the fences and the elements is as it was.
    pub fn surroundings_are_unchanged(&self) -> bool {
        let (before, others) = self.memory().split_at(self.first);
        let is_poison = |element: &T| element.bits() == T::POISON.bits();
        before.iter().all(is_poison) && others[self.length..].iter().all(is_poison)
    }
}

impl<T: Number> Drop for Fenced<T> {
    fn drop(&mut self) {
        self.entry.release();
        // SAFETY: it is the mapping of `new`, and nothing that is borrowed from it is left.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

/// The addresses of two fences, and of the pages between them.
struct Fences {
    first: usize,
    pages: usize,
    end: usize,
}

/// What the signal handler knows of one [`Fenced`].
#[derive(Debug)]
struct Entry {
    is_taken: AtomicBool,
    first: AtomicUsize,
    pages: AtomicUsize,
    /// 0 while there are no fences.
    end: AtomicUsize,
    name: AtomicPtr<String>,
}

static ENTRIES: [Entry; 256] = [const {
    Entry {
        is_taken: AtomicBool::new(false),
        first: AtomicUsize::new(0),
        pages: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        name: AtomicPtr::new(ptr::null_mut()),
    }
}; 256];

impl Entry {
    /// Tells the signal handler of fences.
    fn claim(name: String, fences: Fences) -> io::Result<&'static Entry> {
        let take = |entry: &&Entry| !entry.is_taken.swap(true, Ordering::AcqRel);
        let entry = ENTRIES.iter().find(take);
        let entry = entry.ok_or_else(|| io::Error::other("too many fences"))?;
        let name = Box::into_raw(Box::new(name));
        entry.name.store(name, Ordering::Release);
        entry.first.store(fences.first, Ordering::Release);
        entry.pages.store(fences.pages, Ordering::Release);
        entry.end.store(fences.end, Ordering::Release);
        Ok(entry)
    }

    fn release(&self) {
        self.end.store(0, Ordering::Release);
        let name = self.name.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: `claim` made it. The signal handler reads the names of fences that are
        // accessed, and nobody accesses these any more.
        drop(unsafe { Box::from_raw(name) });
        self.is_taken.store(false, Ordering::Release);
    }
}

/// What was done about the signal before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Makes an access of a fence end the process with a message.
fn report_accesses_of_fences() -> io::Result<()> {
    static DONE: OnceLock<Option<i32>> = OnceLock::new();
    let error = DONE.get_or_init(|| {
        // SAFETY: zeros are a valid `sigaction`. The previous one is kept before ours, which
        // relies on it, is installed; a thread has a stack for signals, or its own is used.
        let results = unsafe {
            let mut previous = MaybeUninit::zeroed();
            let read = libc::sigaction(libc::SIGSEGV, ptr::null(), previous.as_mut_ptr());
            PREVIOUS.get_or_init(|| previous.assume_init());
            let mut ours: libc::sigaction = MaybeUninit::zeroed().assume_init();
            ours.sa_sigaction = report as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            [read, libc::sigaction(libc::SIGSEGV, &ours, ptr::null_mut())]
        };
        match results {
            [0, 0] => None,
            _ => io::Error::last_os_error().raw_os_error(),
        }
    });
    error.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
}

/// The signal handler. It neither allocates nor locks.
extern "C" fn report(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes what belongs to the signal, which has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let is_in = |entry: &&Entry| {
        (entry.first.load(Ordering::Acquire)..entry.end.load(Ordering::Acquire)).contains(&address)
    };
    if let Some(entry) = ENTRIES.iter().find(is_in) {
        let place = match address < entry.pages.load(Ordering::Acquire) {
            true => "\nerror: an access before the start of ",
            false => "\nerror: an access past the end of ",
        };
        // SAFETY: the thread that accesses them is stopped here, so fences and name live.
        let name = unsafe { &*entry.name.load(Ordering::Acquire) };
        for text in [place, name, "\n"] {
            // SAFETY: the text is as long as that. Whether it arrives changes nothing.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        }
    }
    // The access is made again, and handled as it would have been without us.
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: it was the action before.
        unsafe { libc::sigaction(libc::SIGSEGV, previous, ptr::null_mut()) };
    }
}
