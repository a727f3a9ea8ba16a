//! C's `printf` for the simulator, with the values in memory as the device's `vprintf` takes
//! them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn snprintf(buffer: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
}

/// Prints and returns the number of values, or -1 if the format is wrong.
///
/// # Safety
///
/// That of [`vprintf`](super::vprintf).
pub(super) unsafe fn print(format: *const u8, values: *const c_void) -> i32 {
    // SAFETY: the caller vouches for both.
    match unsafe { render(CStr::from_ptr(format.cast()), values.cast()) } {
        Some((text, count)) => {
            std::print!("{}", String::from_utf8_lossy(&text));
            count
        }
        None => -1,
    }
}

/// Appends one value to a text, as C converts it.
macro_rules! convert {
    ($text:ident, $conversion:ident, $value:expr) => {{
        let (value, conversion) = ($value, $conversion.as_ptr());
        let length = snprintf(std::ptr::null_mut(), 0, conversion, value);
        let start = $text.len();
        // C writes a NUL behind the text.
        $text.resize(start + usize::try_from(length).ok()? + 1, 0);
        snprintf(
            $text[start..].as_mut_ptr().cast(),
            $text.len() - start,
            conversion,
            value,
        );
        $text.pop();
    }};
}

/// The values, one after the other.
struct Values {
    next: *const u8,
    count: i32,
}

impl Values {
    /// # Safety
    ///
    /// A `T` is next.
    unsafe fn take<T: Copy>(&mut self) -> T {
        // SAFETY: the caller vouches for it.
        unsafe {
            let start = self.next.add(self.next.align_offset(align_of::<T>()));
            self.next = start.add(size_of::<T>());
            self.count += 1;
            start.cast::<T>().read()
        }
    }
}

/// The text and the number of values in it; `None` if the format is wrong.
///
/// # Safety
///
/// `values` points to what the conversions of `format` take.
unsafe fn render(format: &CStr, values: *const u8) -> Option<(Vec<u8>, i32)> {
    let mut values = Values {
        next: values,
        count: 0,
    };
    let mut text = Vec::new();
    let mut bytes = format.to_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        if bytes.next_if_eq(&b'%').is_some() {
            text.push(b'%');
            continue;
        }
        // Flags, width and precision go to C as they are, but for widths among the values.
        let mut conversion = vec![b'%'];
        while let Some(byte) = bytes.next_if(|byte| b"-+ #0123456789.*".contains(byte)) {
            match byte {
                // SAFETY: the caller vouches for the values.
                b'*' => conversion.extend(unsafe { values.take::<i32>() }.to_string().bytes()),
                _ => conversion.push(byte),
            }
        }
        let mut is_long = false;
        while let Some(byte) = bytes.next_if(|byte| b"hlzjt".contains(byte)) {
            is_long |= byte != b'h';
            conversion.push(byte);
        }
        let letter = bytes.next()?;
        conversion.push(letter);
        let conversion = CString::new(conversion).ok()?;
        // SAFETY: the caller vouches for the values.
        unsafe {
            match letter {
                b'd' | b'i' | b'u' | b'o' | b'x' | b'X' if is_long => {
                    convert!(text, conversion, values.take::<i64>());
                }
                b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' => {
                    convert!(text, conversion, values.take::<i32>());
                }
                b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                    let value = values.take::<f64>();
                    // A GPU prints no sign of a NaN.
                    let value = if value.is_nan() { f64::NAN } else { value };
                    convert!(text, conversion, value);
                }
                b's' | b'p' => {
                    convert!(text, conversion, values.take::<*const c_void>());
                }
                _ => return None,
            }
        }
    }
    Some((text, values.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_format_is_refused() {
        for format in [c"%", c"%5", c"%y"] {
            // SAFETY: nothing is read.
            assert!(unsafe { render(format, std::ptr::null()) }.is_none());
        }
    }
}
