//! What the CUDA runtime gives to every kernel: C's `printf`, and the end of a failed assertion.

#[cfg(cuda_device)]
use core::ffi::CStr;
use core::ffi::c_void;

/// Prints C's `format`, which ends in NUL, with the values that `valist` points to, each at its
/// natural alignment; returns their number, or a negative one for a wrong format.
///
/// [`println!`](crate::println) is safe and does the same.
///
/// # Safety
///
/// `format` is a C string, and `valist` points to what its conversions take: integers of 32 bits
/// (64 after `l`), `f64`, pointers, C strings. It may be null if they take nothing.
#[inline(always)]
pub unsafe fn vprintf(format: *const u8, valist: *const c_void) -> i32 {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for both.
    let count = unsafe { crate::device::vprintf(format, valist) };
    #[cfg(not(cuda_device))]
    // SAFETY: as above.
    let count = unsafe { super::c_print::print(format, valist) };
    count
}

/// Reports a failed assertion and ends the launch with an error.
///
/// The GPU prints the place, block and thread; in the simulator it is a panic with the same words.
/// [`assert_eq!`](crate::assert_eq) calls it.
///
/// # Safety
///
/// `message`, `file` and `function` are C strings; `char_size` is 1.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn __assertfail(
    message: *const u8,
    file: *const u8,
    line: u32,
    function: *const u8,
    char_size: usize,
) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the strings.
    unsafe {
        crate::device::__assertfail(message, file, line, function, char_size);
    }
    #[cfg(not(cuda_device))]
    {
        let _ = char_size;
        // SAFETY: as above.
        let [message, file, function] = [message, file, function]
            .map(|text| unsafe { core::ffi::CStr::from_ptr(text.cast()).to_string_lossy() });
        panic!("{file}:{line}: {function}: Assertion `{message}` failed.");
    }
}

/// What a failed `assert_eq!` or `assert_ne!` does on a GPU.
#[cfg(cuda_device)]
#[doc(hidden)]
#[cold]
pub fn assertion_failed(message: &'static CStr, file: &'static CStr, line: u32) {
    let [message, file, function] = [message, file, c""].map(|text| text.as_ptr().cast());
    // SAFETY: each text ends in NUL.
    unsafe { __assertfail(message, file, line, function, 1) };
}

/// A text that ends in NUL.
///
/// # Panics
///
/// If it does not, or another NUL is in it: when the program is compiled, as that is when it is
/// called.
#[cfg(cuda_device)]
#[doc(hidden)]
pub const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("an assertion's text or file name has a NUL in it"),
    }
}

/// Whether two values are equal, and what `assert_eq!` requires of them on either machine.
#[doc(hidden)]
#[inline(always)]
pub fn are_equal<L: PartialEq<R> + core::fmt::Debug, R: core::fmt::Debug>(
    left: &L,
    right: &R,
) -> bool {
    *left == *right
}

/// Defines an assertion: on a GPU by `__assertfail`, in the simulator as `core` has it.
macro_rules! assertions {
    ($dollar:tt $($(#[$doc:meta])* $name:ident = $operator:literal, $is_equal:literal;)*) => {
        $(
            #[cfg(cuda_device)]
            $(#[$doc])*
            #[macro_export]
            macro_rules! $name {
                ($dollar left:expr, $dollar right:expr $dollar (,)?) => {
                    match (&$dollar left, &$dollar right) {
                        (left, right) => {
                            if $dollar crate::io::are_equal(left, right) != $is_equal {
                                $dollar crate::io::assertion_failed(
                                    const { $dollar crate::io::c_str(::core::concat!(
                                        ::core::stringify!($dollar left), $operator,
                                        ::core::stringify!($dollar right), "\0"
                                    )) },
                                    const { $dollar crate::io::c_str(
                                        ::core::concat!(::core::file!(), "\0")
                                    ) },
                                    ::core::line!(),
                                );
                            }
                        }
                    }
                };
            }

            #[cfg(not(cuda_device))]
            $(#[$doc])*
            #[macro_export]
            macro_rules! $name {
                ($dollar left:expr, $dollar right:expr $dollar (,)?) => {
                    ::core::$name!($dollar left, $dollar right)
                };
            }
        )*
    };
}

assertions! { $
    /// Ends the launch with an error if two values differ.
    ///
    /// On a GPU the host gets the error `AssertionFailed`, and the source of both values with the
    /// place, block and thread on standard output; `core`'s `assert_eq!` ends the launch too, but
    /// prints nothing. In the simulator it is `core`'s, which shows the values.
    assert_eq = " == ", true;
    /// Ends the launch with an error if two values are equal. See [`assert_eq!`](crate::assert_eq).
    assert_ne = " != ", false;
}
