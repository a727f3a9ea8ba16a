//! Sizes as the command line spells them: `1000`, `4k`, and ranges such as `64:256:64`.

use std::str::FromStr;

use gpu_gemm::Shape;

/// The syntax of a size, for errors.
const SIZE: &str = "a size is a whole number such as 1000, or 4k for 4096 (k is 1024)";

/// The syntax of a range, for errors.
const RANGE: &str = "a range of sizes is FROM:TO:STEP, such as 64:256:64 for 64, 128, 192 and 256, \
                     or 2k:8k:2k; FROM is at most TO, and STEP at least 1";

/// The most sizes of a range. More are taken for a mistake.
const MOST: usize = 1000;

/// Reads `1000` or `4k`.
pub fn size(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    // `parse` would also accept a sign.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<usize>().ok().filter(|_| is_number);
    let size = number.and_then(|number| number.checked_mul(factor));
    match (size, is_number) {
        (Some(size), _) => Ok(size),
        (None, true) => Err("that is more than any matrix can have".to_string()),
        (None, false) => Err(SIZE.to_string()),
    }
}

/// Reads `1000x777x4k`.
pub fn shape(text: &str) -> Result<Shape, String> {
    let sizes: Result<Vec<usize>, _> = text.split('x').map(size).collect();
    match sizes.as_deref() {
        Ok(&[m, n, k]) => Ok(Shape { m, n, k }),
        _ => Err("a shape is three numbers, m x n x k, as in 4096x64x512".to_string()),
    }
}

/// A size, or a range of sizes, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [one] => Ok(Sizes(vec![
                size(one).map_err(|error| format!("{error}; {RANGE}"))?,
            ])),
            [from, to, step] => {
                let (from, to, step) = (size(from)?, size(to)?, size(step)?);
                if from > to || step == 0 {
                    return Err(RANGE.to_string());
                }
                if (to - from) / step >= MOST {
                    return Err(format!("a range has at most {MOST} sizes"));
                }
                Ok(Sizes((from..=to).step_by(step).collect()))
            }
            _ => Err(RANGE.to_string()),
        }
    }
}

/// Cubes of these sizes, followed by these shapes.
pub fn shapes(sizes: &[Sizes], shapes: &[Shape]) -> Vec<Shape> {
    let sizes = sizes.iter().flat_map(|Sizes(sizes)| sizes);
    let cubes = sizes.map(|&size| Shape::cube(size));
    cubes.chain(shapes.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_or_a_multiple_of_1024() {
        for (text, expected) in [("0", 0), ("1000", 1000), ("1k", 1024), ("16K", 16384)] {
            assert_eq!(size(text), Ok(expected));
        }
        for text in ["", "k", "-1", "+1", "1.5k", "1 k", "kk", "many", "1m"] {
            assert_eq!(size(text), Err(SIZE.to_string()), "{text}");
        }
        for text in ["18446744073709551616", "18446744073709551615k"] {
            assert!(size(text).unwrap_err().contains("more than any"), "{text}");
        }
        assert_eq!(size("18446744073709551615"), Ok(usize::MAX));
    }

    #[test]
    fn a_range_has_both_ends() {
        let sizes = |text: &str| text.parse().map(|Sizes(sizes)| sizes);
        assert_eq!(sizes("7"), Ok(vec![7]));
        assert_eq!(sizes("64:256:64"), Ok(vec![64, 128, 192, 256]));
        assert_eq!(sizes("2k:8k:2k"), Ok(vec![2048, 4096, 6144, 8192]));
        assert_eq!(sizes("5:9:3"), Ok(vec![5, 8]));
        assert_eq!(sizes("5:5:1"), Ok(vec![5]));
        for text in [
            "1:2",
            "2:1:1",
            "1:2:0",
            "1:2:3:4",
            ":",
            "1::2",
            "1:1000000:1",
        ] {
            assert!(sizes(text).is_err(), "{text}");
        }
        let error = sizes("x").unwrap_err();
        assert!(error.contains("such as 1000") && error.contains("64:256:64"));
    }
}
