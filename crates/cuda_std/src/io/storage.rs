//! Texts that a thread prints: copies in its own memory that end in NUL, which `vprintf` requires.
//! `&str` has no NUL, and numbers of 128 bits have no conversion of C's.

/// A text of up to `CAPACITY - 1` bytes.
pub struct Text<const CAPACITY: usize> {
    /// Zeros behind the text.
    bytes: [u8; CAPACITY],
    length: usize,
}

impl<const CAPACITY: usize> Text<CAPACITY> {
    pub(super) const EMPTY: Self = Self {
        bytes: [0; CAPACITY],
        length: 0,
    };

    /// Its address, as long as it is not moved.
    pub(super) fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    /// How many bytes still fit.
    fn room(&self) -> usize {
        CAPACITY - 1 - self.length
    }

    fn push(&mut self, byte: u8) {
        if self.room() > 0
            && let Some(place) = self.bytes.get_mut(self.length)
        {
            *place = byte;
            self.length += 1;
        }
    }

    fn push_all(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    /// Writes what fits of a text, in whole characters, up to its first NUL.
    pub(super) fn push_text(&mut self, text: &str) {
        let end = text.floor_char_boundary(self.room());
        for &byte in text.as_bytes().iter().take(end) {
            if byte == 0 {
                return;
            }
            self.push(byte);
        }
    }

    /// Writes a text in quotes and with escapes, without the characters that do not fit.
    pub(super) fn push_quoted(&mut self, text: &str) {
        self.push(b'"');
        for character in text.chars() {
            let mut buffer = [0; 6];
            let escaped = escape(character, &mut buffer);
            // The closing quote has to fit, too.
            if escaped.len() >= self.room() {
                break;
            }
            self.push_all(escaped);
        }
        self.push(b'"');
    }

    /// Writes a number in decimal.
    pub(super) fn push_decimal(&mut self, is_negative: bool, magnitude: u128) {
        const BILLION: u64 = 1_000_000_000;
        const CHUNKS: usize = 5;
        // Long division by a billion in digits of 32 bits: GPUs divide 64 bits at most.
        let mut limbs = [96, 64, 32, 0].map(|shift| u64::from((magnitude >> shift) as u32));
        let mut digits = [[b'0'; 9]; CHUNKS];
        for chunk in digits.iter_mut().rev() {
            let mut remainder = 0;
            for limb in &mut limbs {
                let dividend = remainder << 32 | *limb;
                *limb = dividend / BILLION;
                remainder = dividend % BILLION;
            }
            for digit in chunk.iter_mut().rev() {
                *digit = b'0' + (remainder % 10) as u8;
                remainder /= 10;
            }
        }
        if is_negative {
            self.push(b'-');
        }
        let mut is_leading = true;
        for &digit in digits.as_flattened() {
            is_leading &= digit == b'0';
            if !is_leading {
                self.push(digit);
            }
        }
        if is_leading {
            self.push(b'0');
        }
    }

    /// Writes a number in hexadecimal; `ten` is the digit of 10, `a` or `A`.
    pub(super) fn push_hexadecimal(&mut self, number: u128, ten: u8) {
        let first = number.checked_ilog2().unwrap_or(0) / 4;
        for place in (0..=first).rev() {
            self.push(digit((number >> (4 * place)) as u8 & 15, ten));
        }
    }
}

fn digit(value: u8, ten: u8) -> u8 {
    match value {
        0..10 => b'0' + value,
        _ => ten + value - 10,
    }
}

/// A character as `{:?}` shows it within quotes.
fn escape(character: char, buffer: &mut [u8; 6]) -> &[u8] {
    let code = match character {
        '\0' => b'0',
        '\t' => b't',
        '\n' => b'n',
        '\r' => b'r',
        '"' => b'"',
        '\\' => b'\\',
        '\u{1}'..='\u{1f}' | '\u{7f}' => {
            let code = character as u8;
            *buffer = [
                b'\\',
                b'u',
                b'{',
                digit(code >> 4, b'a'),
                digit(code & 15, b'a'),
                b'}',
            ];
            if code < 16 {
                *buffer = [b'\\', b'u', b'{', digit(code, b'a'), b'}', 0];
                return &buffer[..5];
            }
            return buffer;
        }
        _ => return character.encode_utf8(buffer).as_bytes(),
    };
    *buffer = [b'\\', code, 0, 0, 0, 0];
    &buffer[..2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<const CAPACITY: usize>(write: impl FnOnce(&mut Text<CAPACITY>)) -> String {
        let mut text = Text::EMPTY;
        write(&mut text);
        assert!(text.length < CAPACITY && text.bytes[text.length..].iter().all(|b| *b == 0));
        String::from_utf8(text.bytes[..text.length].to_vec()).unwrap()
    }

    #[test]
    fn numbers_of_128_bits_print_as_std_prints_them() {
        let mut values = vec![0, 1, 9, 10, 999_999_999, 1_000_000_000, u128::MAX];
        values.extend((0..128).map(|shift| 0x9E37_79B9_7F4A_7C15_F39C_0C8E_1234_5678 >> shift));
        for value in values {
            let signed = value.cast_signed();
            let text = written::<41>(|text| text.push_decimal(false, value));
            assert_eq!(text, value.to_string());
            let text = written::<41>(|text| text.push_decimal(signed < 0, signed.unsigned_abs()));
            assert_eq!(text, signed.to_string());
            let text = written::<41>(|text| text.push_hexadecimal(value, b'a'));
            assert_eq!(text, format!("{value:x}"));
            let text = written::<41>(|text| text.push_hexadecimal(value, b'A'));
            assert_eq!(text, format!("{value:X}"));
        }
        let least = written::<41>(|text| text.push_decimal(true, i128::MIN.unsigned_abs()));
        assert_eq!(least, i128::MIN.to_string());
    }

    #[test]
    fn texts_are_cut_between_characters_and_end_at_a_nul() {
        assert_eq!(written::<8>(|text| text.push_text("abc")), "abc");
        assert_eq!(written::<8>(|text| text.push_text("abcdefgh")), "abcdefg");
        assert_eq!(written::<8>(|text| text.push_text("abcdeé€")), "abcdeé");
        assert_eq!(written::<8>(|text| text.push_text("abcdefé")), "abcdef");
        assert_eq!(written::<8>(|text| text.push_text("ab\0c")), "ab");
        assert_eq!(
            written::<8>(|text| text.push_quoted("abcde\n")),
            "\"abcde\""
        );
        assert_eq!(written::<8>(|text| text.push_quoted("abcd\n")), "\"abcd\"");
        assert_eq!(
            written::<9>(|text| text.push_quoted("abcd\n")),
            "\"abcd\\n\""
        );
    }

    #[test]
    fn quoted_texts_print_as_std_prints_them() {
        let text = "a\"b'c\\d\n\t\r\0e\u{1}\u{f}\u{10}\u{1b}\u{1f}\u{7f}é€𝄞";
        let quoted = written::<256>(|quoted| quoted.push_quoted(text));
        assert_eq!(quoted, format!("{text:?}"));
    }
}
