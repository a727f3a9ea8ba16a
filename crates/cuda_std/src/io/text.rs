//! Prints, in the simulator, what the device's `vprintf` would print.

use std::ffi::CStr;

use super::{Align, Kind, Piece, Spec, Style};

/// The text of a print with these pieces and values.
///
/// # Safety
///
/// The word of a [`Kind::Text`] or a [`Kind::Digits`] is the address of a text that ends in NUL.
pub(super) unsafe fn render(pieces: &[Piece], kinds: &[Kind], words: &[u64]) -> String {
    let mut text = String::new();
    let mut values = kinds.iter().zip(words);
    for piece in pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Value(spec) => {
                if let Some((&kind, &word)) = values.next() {
                    // SAFETY: the caller vouches for the words.
                    let digits = unsafe { digits(spec, kind, word) };
                    text.push_str(&pad(spec, kind, &digits));
                }
            }
        }
    }
    text
}

/// A value without padding.
///
/// # Safety
///
/// As for [`render`].
unsafe fn digits(spec: &Spec, kind: Kind, word: u64) -> String {
    match (kind, &spec.style) {
        (Kind::Text | Kind::Digits, _) => {
            let start = std::ptr::with_exposed_provenance(word as usize);
            // SAFETY: the caller vouches for it.
            let text = unsafe { CStr::from_ptr(start) };
            text.to_string_lossy().into_owned()
        }
        (Kind::Bool, _) => (word != 0).to_string(),
        (Kind::Float, _) => float(f64::from_bits(word), spec.precision),
        (_, Style::LowerHex) => format!("{word:x}"),
        (_, Style::UpperHex) => format!("{word:X}"),
        (Kind::Signed, Style::Plain) => word.cast_signed().to_string(),
        (Kind::Unsigned, Style::Plain) => word.to_string(),
    }
}

fn float(value: f64, precision: Option<u32>) -> String {
    match precision {
        _ if value.is_nan() => "nan".into(),
        Some(decimals) => format!("{value:.*}", decimals as usize),
        None => shortest_of_six_digits(value),
    }
}

/// C's `%g`: six significant digits without trailing zeros, with an exponent where that is below
/// -4 or above 5.
fn shortest_of_six_digits(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific; // inf
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = (5 - exponent) as usize;
        without_trailing_zeros(&format!("{value:.decimals$}")).into()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn without_trailing_zeros(decimal: &str) -> &str {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.')
    } else {
        decimal
    }
}

fn pad(spec: &Spec, kind: Kind, digits: &str) -> String {
    let width = spec.width as usize;
    let left = match spec.align {
        Align::Natural => matches!(kind, Kind::Bool | Kind::Text),
        Align::Left => true,
        Align::Right => false,
    };
    // C puts no zeros before inf and nan.
    let (sign, magnitude) = digits.split_at(usize::from(digits.starts_with('-')));
    let is_number = !["inf", "nan"].contains(&magnitude);
    // C counts bytes, `std` characters.
    let missing = width.saturating_sub(digits.len());
    if left {
        format!("{digits}{:missing$}", "")
    } else if spec.zeros && is_number {
        format!("{sign}{}{magnitude}", "0".repeat(missing))
    } else {
        format!("{:missing$}{digits}", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::c_format;
    use std::ffi::{c_char, c_int};

    unsafe extern "C" {
        fn snprintf(buffer: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    }

    const SPECS: [Spec; 6] = {
        const PLAIN: Spec = Spec {
            style: Style::Plain,
            align: Align::Natural,
            zeros: false,
            width: 0,
            precision: None,
        };
        [
            PLAIN,
            Spec { width: 14, ..PLAIN },
            Spec {
                width: 14,
                zeros: true,
                ..PLAIN
            },
            Spec {
                width: 14,
                align: Align::Left,
                ..PLAIN
            },
            Spec {
                width: 14,
                align: Align::Right,
                ..PLAIN
            },
            Spec { width: 3, ..PLAIN },
        ]
    };

    /// What the C library prints for the format string that the device would get.
    fn by_the_c_library(spec: Spec, kind: Kind, word: u64) -> String {
        let format: [u8; 64] = c_format::build(&[Piece::Value(spec)], &[kind]);
        let mut buffer = [0_u8; 512];
        let start: *mut c_char = buffer.as_mut_ptr().cast();
        let format = format.as_ptr().cast();
        // SAFETY: the format is NUL-terminated and has one conversion, of the type that is passed;
        // an address is passed as a number of its size.
        let length = unsafe {
            match kind {
                Kind::Float => snprintf(start, buffer.len(), format, f64::from_bits(word)),
                Kind::Bool => {
                    let text = if word != 0 { c"true" } else { c"false" };
                    snprintf(start, buffer.len(), format, text.as_ptr())
                }
                _ => snprintf(start, buffer.len(), format, word),
            }
        };
        String::from_utf8(buffer[..length as usize].to_vec()).unwrap()
    }

    fn assert_same_as_c(spec: Spec, kind: Kind, word: u64) {
        // SAFETY: the tests give texts the addresses of texts.
        let ours = unsafe { render(&[Piece::Value(spec)], &[kind], &[word]) };
        assert_eq!(ours, by_the_c_library(spec, kind, word));
    }

    #[test]
    fn integers_and_bools_print_as_the_c_library_prints_the_devices_format() {
        for spec in SPECS {
            for value in [0, 1, -1, 42, -12345, i64::MAX, i64::MIN] {
                assert_same_as_c(spec, Kind::Signed, value.cast_unsigned());
                assert_same_as_c(spec, Kind::Unsigned, value.cast_unsigned());
                for style in [Style::LowerHex, Style::UpperHex] {
                    assert_same_as_c(Spec { style, ..spec }, Kind::Unsigned, value as u64);
                }
            }
            if !spec.zeros {
                assert_same_as_c(spec, Kind::Bool, 0);
                assert_same_as_c(spec, Kind::Bool, 1);
            }
        }
    }

    #[test]
    fn texts_print_as_the_c_library_prints_the_devices_format() {
        for text in [
            c"",
            c"a",
            c"-12",
            c"inf",
            c"h\xC3\xA9llo",
            c"longer than 14 bytes",
        ] {
            let word = text.as_ptr().expose_provenance() as u64;
            for spec in SPECS.into_iter().filter(|spec| !spec.zeros) {
                assert_same_as_c(spec, Kind::Text, word);
                assert_same_as_c(spec, Kind::Digits, word);
            }
        }
    }

    #[test]
    fn floats_print_as_the_c_library_prints_the_devices_format() {
        let mut values = vec![
            0.0,
            -0.0,
            1.0,
            0.1,
            -0.1,
            123456.0,
            1234567.0,
            999999.5,
            9999995.0,
            1e-4,
            9.9999949e-5,
            1e-5,
            1e100,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            0.5,
            1.5,
            2.5,
            f64::from(0.1_f32),
        ];
        values.extend((-30..30).map(|power| std::f64::consts::PI * 10_f64.powi(power)));
        for value in values {
            for spec in SPECS {
                for precision in [None, Some(0), Some(1), Some(3), Some(17)] {
                    let spec = Spec { precision, ..spec };
                    assert_same_as_c(spec, Kind::Float, value.to_bits());
                }
            }
        }
    }
}
