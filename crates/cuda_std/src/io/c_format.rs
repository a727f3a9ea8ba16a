//! Builds the format string that the device's `vprintf` reads, as a constant.

use super::format::{Kind, Piece, Spec, Style};

/// The NUL-terminated C format string of `pieces`, for values of these kinds.
pub(super) const fn build<const CAPACITY: usize>(
    pieces: &[Piece],
    kinds: &[Kind],
) -> [u8; CAPACITY] {
    let mut format = Buffer {
        bytes: [0; CAPACITY],
        len: 0,
    };
    let (mut piece, mut value) = (0, 0);
    while piece < pieces.len() {
        match &pieces[piece] {
            Piece::Text(text) => format.push_text(text),
            Piece::Value(spec) => {
                format.push_conversion(spec, kinds[value]);
                value += 1;
            }
        }
        piece += 1;
    }
    // The remaining bytes of the array are zero and end the C string.
    assert!(format.len < CAPACITY);
    format.bytes
}

struct Buffer<const CAPACITY: usize> {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl<const CAPACITY: usize> Buffer<CAPACITY> {
    const fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    const fn push_all(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            self.push(bytes[at]);
            at += 1;
        }
    }

    const fn push_text(&mut self, text: &str) {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            if text[at] == b'%' {
                self.push(b'%');
            }
            self.push(text[at]);
            at += 1;
        }
    }

    const fn push_conversion(&mut self, spec: &Spec, kind: Kind) {
        let is_text = matches!(kind, Kind::Text);
        let is_float = matches!(kind, Kind::Float);
        assert!(
            !spec.has_precision || is_float,
            "a precision, as in `{{:.3}}`, is for f32 and f64 only"
        );
        assert!(
            !(spec.has_zeros && (is_text || matches!(kind, Kind::Digits))),
            "zeros in front, as in `{{:08}}`, are for numbers of up to 64 bits only"
        );

        self.push(b'%');
        if spec.aligns_text && is_text {
            self.push(b'-');
        }
        self.push_all(spec.flags.as_bytes());
        self.push_all(match (kind, spec.style) {
            (Kind::Text | Kind::Digits, _) => b"s",
            (Kind::Float, _) if spec.has_precision => b"f",
            (Kind::Float, _) => b"g",
            (_, Style::LowerHex) => b"llx",
            (_, Style::UpperHex) => b"llX",
            (Kind::Signed, Style::Plain) => b"lld",
            (Kind::Unsigned, Style::Plain) => b"llu",
        });
    }
}
