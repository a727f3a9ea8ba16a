//! Whether a problem fits in this machine's memory, checked before it is filled: Linux promises
//! any amount of memory, and later kills the program that relied on it.

use thiserror::Error;

use gpu_gemm::Shape;

/// A problem and its copies need more memory than the machine has.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "{shape} needs about {} GiB of memory on the host, for the matrices and the copies that the checks compare, but \
     this machine has {total} GiB; choose a smaller shape.",
    gibibytes(*.needed_bytes)
)]
pub struct TooLarge {
    shape: Shape,
    needed_bytes: f64,
    /// In GiB.
    total: u64,
}

/// Each matrix exists up to three times: in the problem, between guard bands, and in the result.
const COPIES: f64 = 3.0;

/// A whole number, or a power of ten for what no machine has.
fn gibibytes(bytes: f64) -> String {
    let gibibytes = bytes / f64::from(1 << 30);
    match gibibytes {
        1e6.. => format!("{gibibytes:.1e}"),
        _ => format!("{:.0}", gibibytes.floor()),
    }
}

/// Checks that matrices of elements of `element_bytes` fit.
///
/// # Errors
///
/// They do not.
pub fn check(shape: Shape, element_bytes: usize) -> Result<(), TooLarge> {
    check_padded(shape, 0, element_bytes)
}

/// [`check`] of matrices whose rows lie `padding` elements further apart than they need.
///
/// # Errors
///
/// They do not.
pub fn check_padded(shape: Shape, padding: usize, element_bytes: usize) -> Result<(), TooLarge> {
    check_against(shape, padding, element_bytes, total())
}

/// This machine's memory in bytes, where the system says it.
pub fn total() -> Option<u64> {
    total_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn check_against(
    shape: Shape,
    padding: usize,
    element_bytes: usize,
    total: Option<u64>,
) -> Result<(), TooLarge> {
    // Floating-point numbers do not overflow, and a byte more or less decides nothing.
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|extent| extent as f64);
    let padding = (m + k + m) * padding as f64;
    let needed_bytes = (m * k + k * n + m * n + padding) * COPIES * element_bytes as f64;
    match total {
        Some(total) if needed_bytes > total as f64 => Err(TooLarge {
            shape,
            needed_bytes,
            total: total >> 30,
        }),
        _ => Ok(()),
    }
}

/// The machine's memory, from the text of `/proc/meminfo`.
fn total_bytes(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_total_is_read_in_bytes() {
        let text = "MemTotal:       24659152 kB\nMemFree:         1000 kB\n";
        assert_eq!(total_bytes(text), Some(24_659_152 * 1024));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert_eq!(total_bytes("MemTotal: many kB\n"), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let shape = Shape::cube(1 << 14); // 1 GiB a matrix of f32
        assert_eq!(check_against(shape, 0, 4, Some(9 * GIB)), Ok(()));
        let error = check_against(shape, 0, 4, Some(8 * GIB)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("16384 x 16384 x 16384 needs about 9 GiB of memory on the host")
        );
        assert!(error.to_string().contains("has 8 GiB"));
        assert_eq!(check_against(shape, 0, 4, None), Ok(()));
        // Rows that are twice as long.
        let padded = |total| check_against(shape, 1 << 14, 4, Some(total * GIB));
        assert!(padded(18).is_ok() && padded(17).is_err());
    }

    #[test]
    fn sizes_beyond_any_memory_do_not_overflow() {
        let error = check_against(Shape::cube(usize::MAX), 0, 4, Some(GIB)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(" needs about 1.1e31 GiB of "), "{text}");
    }
}
