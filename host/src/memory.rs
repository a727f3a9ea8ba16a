//! Whether a problem fits in this machine's memory, checked before it is filled: Linux promises
//! any amount of memory, and later kills the program that relied on it.

use thiserror::Error;

use crate::data::Storage;
use gpu_gemm::Shape;

/// A problem and its copies need more memory than the machine has.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "{} about {} GiB of memory on the host, for the matrices and the copies that the checks compare, but \
     this machine has {total} GiB; choose a smaller shape.",
    subject(*.shape, *.batch), gibibytes(*.needed_bytes)
)]
pub struct TooLarge {
    shape: Shape,
    /// The number of products of this shape.
    batch: usize,
    needed_bytes: f64,
    /// The machine's memory, in GiB.
    total: u64,
}

/// Each matrix exists up to three times: in the problem, between guard bands, and in the result.
const COPIES: f64 = 3.0;

/// Bytes that the checks keep for a row and for a column of a C, as measured where there are two of
/// the other.
const CHECKS_OF: [f64; 2] = [192.0, 64.0];

/// The subject of the error's sentence, with its verb.
fn subject(shape: Shape, batch: usize) -> String {
    match batch {
        1 => format!("{shape} needs"),
        _ => format!("A batch of {batch} x ({shape}) needs"),
    }
}

/// A whole number of GiB, or a power of ten where no machine has that much.
fn gibibytes(bytes: f64) -> String {
    let gibibytes = bytes / f64::from(1 << 30);
    match gibibytes {
        1e6.. => format!("{gibibytes:.1e}"),
        _ => format!("{:.0}", gibibytes.floor()),
    }
}

/// Checks that the matrices of all products of a batch fit, with elements of `element_bytes`.
pub fn check(shape: Shape, storage: Storage, element_bytes: usize) -> Result<(), TooLarge> {
    check_against(shape, storage, element_bytes, total())
}

/// This machine's memory in bytes.
pub fn total() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(system.mem_unit.into())
}

fn check_against(
    shape: Shape,
    storage: Storage,
    element_bytes: usize,
    total: u64,
) -> Result<(), TooLarge> {
    let Storage { padding, batch, .. } = storage;
    // Floating-point numbers do not overflow, and a byte more or less decides nothing.
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|extent| extent as f64);
    let [a, b, c] = padding.map(|elements| elements as f64);
    let of_b = k * (n + b) * storage.count_of_b() as f64;
    let elements = (m * (k + a) + m * (n + c)) * batch as f64 + of_b;
    let [of_row, of_column] = CHECKS_OF;
    let needed_bytes = elements * COPIES * element_bytes as f64 + m * of_row + n * of_column;
    match needed_bytes > total as f64 {
        true => Err(TooLarge {
            shape,
            batch,
            needed_bytes,
            total: total >> 30,
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let cube = Shape::cube(1 << 14); // 1 GiB a matrix of f32
        let of = "(16384 x 16384 x 16384)";
        for (padding, batch, fits, subject) in [
            (0, 1, 9, of.trim_matches(['(', ')']).to_string()),
            // Rows that are twice as long.
            (1 << 14, 1, 18, of.trim_matches(['(', ')']).to_string()),
            (0, 3, 27, format!("A batch of 3 x {of}")),
        ] {
            let storage = Storage {
                padding: [padding; 3],
                batch,
                ..Storage::COMPACT
            };
            let lines = 256 << 14; // what checks keep
            let check = |gib: u64| check_against(cube, storage, 4, (gib << 30) + lines);
            assert_eq!(check(fits), Ok(()));
            let text = check(fits - 1).unwrap_err().to_string();
            let start = format!("{subject} needs about {fits} GiB of memory");
            assert!(text.starts_with(&start), "{text}");
            assert!(text.contains(&format!("has {} GiB", fits - 1)), "{text}");
        }
        // Of few rows, most is what checks keep.
        let flat = |bytes| check_against(Shape::new(2, 1 << 20, 1), Storage::COMPACT, 4, bytes);
        assert!(flat(98 << 20).is_err() && flat(101 << 20).is_ok());
        // Sizes beyond any memory do not overflow.
        let most = Shape::cube(usize::MAX);
        let refused = check_against(most, Storage::COMPACT, 4, u64::MAX);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(" needs about 1.1e31 GiB of "), "{text}");
    }
}
