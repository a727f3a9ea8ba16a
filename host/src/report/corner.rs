//! The top-left corner of a result, for `--show`.

use std::io::{self, Write};
use std::str::FromStr;

use crate::data::Matrix;
use crate::data::Number;

/// The size of the corner, as `--show` spells it: `5` or `5x8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    pub rows: usize,
    pub columns: usize,
}

impl FromStr for Corner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rows, columns) = text.split_once('x').unwrap_or((text, text));
        let size = |text: &str| text.parse().ok().filter(|&size| size > 0);
        match (size(rows), size(columns)) {
            (Some(rows), Some(columns)) => Ok(Corner { rows, columns }),
            _ => Err("a corner is ROWS or ROWSxCOLUMNS, at least 1 each".to_string()),
        }
    }
}

impl Corner {
    /// The rows of the corner of `matrix`, or of all of it where it is smaller. Each number is the
    /// shortest that rounds to the element: 0.1 for the f32 nearest to it.
    pub fn of<T: Number>(self, matrix: &Matrix<T>) -> Vec<Vec<f64>> {
        (0..self.rows.min(matrix.rows()))
            .map(|row| {
                let elements = matrix.row(row).iter().take(self.columns);
                elements
                    .map(|element| element.to_string().parse().unwrap_or(element.to_f64()))
                    .collect()
            })
            .collect()
    }
}

/// Writes a corner between lines of `=`, its columns aligned at the right.
pub(super) fn write(rows: &[Vec<f64>], out: &mut dyn Write) -> io::Result<()> {
    const LINE: &str = "=========================================";
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().copied().map(spelled).collect())
        .collect();
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    writeln!(out, "{LINE}")?;
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(text, width)| format!("{text:>width$}"))
            .collect();
        writeln!(out, "{}", cells.join(" "))?;
    }
    writeln!(out, "{LINE}")
}

/// A number, with an exponent instead of many zeros.
fn spelled(number: f64) -> String {
    let size = number.abs();
    match number.is_finite() && number != 0.0 && !(1e-4..1e8).contains(&size) {
        true => format!("{number:e}"),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_spelled_as_documented() {
        let corner = |rows, columns| Ok(Corner { rows, columns });
        assert_eq!("5".parse(), corner(5, 5));
        assert_eq!("5x8".parse(), corner(5, 8));
        for text in ["", "0", "x", "5x", "x5", "5x0", "-1", "5x8x3", "5 x 8"] {
            assert!(text.parse::<Corner>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_corner_ends_where_the_matrix_does_and_has_the_shortest_numbers() {
        let values = vec![0.1f32, -2.0, f32::INFINITY, 1e10, 5.5, 6.0];
        let matrix = Matrix::new(values, 2, 3);
        let corner = |text: &str| text.parse::<Corner>().unwrap().of(&matrix);
        assert_eq!(corner("1x2"), [[0.1, -2.0]]);
        let all = corner("9");
        assert_eq!(all, [[0.1, -2.0, f64::INFINITY], [1e10, 5.5, 6.0]]);
        let mut out = Vec::new();
        write(&all, &mut out).unwrap();
        let line = "=".repeat(41);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{line}\n 0.1  -2 inf\n1e10 5.5   6\n{line}\n")
        );
    }

    #[test]
    fn very_large_and_very_small_numbers_have_exponents() {
        let numbers = [0.0, -0.0001, 0.00001, -99999999.0, 1e8, f64::NAN].map(spelled);
        assert_eq!(numbers, ["0", "-0.0001", "1e-5", "-99999999", "1e8", "NaN"]);
    }
}
