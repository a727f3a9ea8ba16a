//! Runs a function in a process of its own, which is a copy of this one.

use std::io;

/// The stack of a copy, in bytes. libNVVM calls itself for each part of an expression: what it
/// compiles on a main thread's 8 MiB may be too much for the 2 MiB of another thread, which the
/// copy would have if that asked for it.
#[cfg(unix)]
const STACK: usize = 64 << 20;

/// What `work` returns in a copy of this process, which ends then: whatever `work` leaves behind
/// in memory is gone. It has `seconds`, or any time if that is 0.
///
/// # Errors
///
/// If there is no copy, or if it ends without an answer; [`io::ErrorKind::TimedOut`] if it takes
/// longer.
#[cfg(unix)]
pub(crate) fn apart(seconds: u32, work: impl FnOnce() -> Vec<u8> + Send) -> io::Result<Vec<u8>> {
    use std::{panic, thread};
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let copied = thread.spawn_scoped(scope, || on_this_stack(seconds, work))?;
        copied
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// [`apart`], with a stack as large as this thread's.
#[cfg(unix)]
fn on_this_stack(seconds: u32, work: impl FnOnce() -> Vec<u8>) -> io::Result<Vec<u8>> {
    use std::io::{Read, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::ExitStatus;
    use std::sync::{Mutex, PoisonError};

    /// Held until this process has closed the writing end, which another copy would else inherit,
    /// and keep open.
    static COPYING: Mutex<()> = Mutex::new(());

    let copying = COPYING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut reader, mut writer) = io::pipe()?;
    // SAFETY: the copy has one thread, which runs `work` and ends below: it returns to no caller.
    // Of the locks that other threads may have held, it needs those of the allocator and of the
    // dynamic linker, which the C library's `fork` leaves usable.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: both change what happens to this process alone: the system ends it when the
            // time is over, whatever the original does about that signal.
            unsafe {
                libc::signal(libc::SIGALRM, libc::SIG_DFL);
                libc::alarm(seconds);
            }
            let answer = || writer.write_all(&work());
            let done = catch_unwind(AssertUnwindSafe(answer));
            // SAFETY: it ends the process at once. What this process would do at its end, such as
            // to write out its buffers, is left to the original.
            unsafe { libc::_exit(i32::from(!matches!(done, Ok(Ok(()))))) }
        }
        child => {
            drop(writer);
            drop(copying);
            let mut answer = Vec::new();
            let read = reader.read_to_end(&mut answer);
            let mut status = 0;
            // SAFETY: the pointer is valid for a write of a C int.
            while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            read?;
            match ExitStatus::from_raw(status) {
                status if status.success() => Ok(answer),
                status if status.signal() == Some(libc::SIGALRM) => {
                    Err(io::ErrorKind::TimedOut.into())
                }
                status => Err(io::Error::other(status.to_string())),
            }
        }
    }
}

/// Elsewhere a process cannot be copied.
#[cfg(not(unix))]
pub(crate) fn apart(_: u32, work: impl FnOnce() -> Vec<u8>) -> io::Result<Vec<u8>> {
    Ok(work())
}

#[cfg(all(test, unix))]
mod tests {
    use super::apart;
    use std::sync::atomic::{AtomicU8, Ordering};

    #[test]
    fn what_is_left_behind_in_memory_is_gone() {
        static LEFT: AtomicU8 = AtomicU8::new(0);
        let count = || vec![LEFT.fetch_add(1, Ordering::Relaxed)];
        assert_eq!(apart(60, count).unwrap(), [0]);
        assert_eq!(apart(60, count).unwrap(), [0]);
    }

    #[test]
    fn an_answer_may_be_longer_than_a_pipe() {
        assert_eq!(apart(0, || vec![7; 1 << 20]).unwrap(), vec![7; 1 << 20]);
    }

    #[test]
    fn its_stack_is_not_that_of_a_small_thread() {
        /// Takes a KiB of stack for each call.
        fn deep(calls: u32) -> u8 {
            let frame = std::hint::black_box([1u8; 1024]);
            match calls {
                0 => frame[0],
                _ => deep(calls - 1) & frame[1],
            }
        }
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let answer = small.spawn(|| apart(60, || vec![deep(32 << 10)])).unwrap();
        assert_eq!(answer.join().unwrap().unwrap(), [1]);
    }

    #[test]
    fn a_process_that_crashes_is_an_error() {
        let error = apart(60, || std::process::abort()).unwrap_err();
        assert!(error.to_string().contains("signal"), "{error}");
    }

    #[test]
    fn a_process_that_does_not_end_is_stopped() {
        let forever = || loop {
            std::hint::spin_loop();
        };
        let error = apart(1, forever).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }
}
