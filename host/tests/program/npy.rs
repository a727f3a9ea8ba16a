//! Files that are no matrix, each refused with its own sentence; and matrices, read back as
//! written.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_gemm::ElementType;
use host::data::{Matrix, Number, Placement};
use host::npy::{self, NpyFile};
use tempfile::TempDir;

/// A file of version 1.0 with this header and this data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    version(1, header, data)
}

/// A file of this version, with its header padded as by NumPy.
fn version(major: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let size_bytes = if major == 1 { 2 } else { 4 };
    let unpadded = 8 + size_bytes + header.len() + 1;
    let size = header.len() + 1 + (64 - unpadded % 64) % 64;
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([major, 0]);
    bytes.extend(&(size as u32).to_le_bytes()[..size_bytes]);
    bytes.extend(header.as_bytes());
    bytes.resize(8 + size_bytes + size - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(data);
    bytes
}

fn header_line(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
}

/// A header of little-endian f32 in C order.
fn of_shape(shape: &str) -> String {
    header_line("'<f4'", "False", shape)
}

fn written(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("a.npy");
    fs::write(&path, bytes).unwrap();
    path
}

/// The error of `open`, after the file's name.
fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, bytes);
    let message = NpyFile::open(&path).unwrap_err().to_string();
    let name = format!("`{}` ", path.display());
    message.strip_prefix(&name).expect(&message).to_string()
}

fn assert_refused(bytes: &[u8], expected: &str) {
    let message = refusal(bytes);
    assert!(
        message.starts_with(expected) && message.ends_with('.'),
        "`{message}` does not say `{expected}`"
    );
}

#[test]
fn a_file_that_holds_no_matrix_is_refused_by_its_own_sentence() {
    let none = "is not a .npy file: it does not begin with \\x93";
    let damaged = "has a header that is not as `numpy.save` writes it";
    for bytes in [
        &b""[..],
        b"1,2,3\n",
        b"\x93NUMPX\x01\x00v\x00",
        b"PK\x03\x04",
    ] {
        assert_refused(bytes, none);
    }
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let mut bytes = file(&of_shape("(1, 1)"), &[0; 4]);
        bytes[6..8].copy_from_slice(&[major, minor]);
        let expected = format!("is of version {major}.{minor} of the .npy format, but only 1.0");
        assert_refused(&bytes, &expected);
    }
    // A header of gigabytes, before memory is allocated for it.
    let mut bytes = version(2, &of_shape("(1, 1)"), &[0; 4]);
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_refused(&bytes, "ends within its header");
    let long = of_shape("(1, 1)") + &" ".repeat(10_000);
    assert_refused(&version(2, &long, &[0; 4]), damaged);
    let mut unended = file(&of_shape("(1, 1)"), &[0; 4]);
    let newline = unended.len() - 5;
    unended[newline] = b' ';
    assert_refused(&unended, damaged);
    for header in [
        "",
        "nonsense",
        "[1, 2]",
        "{'descr': '<f4'",
        &(of_shape("(1, 1)") + " trailing"),
        &of_shape("(1, 1),\u{e9}"),
        &"(".repeat(800),
        &"{'descr':".repeat(800),
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (1, 1)}",
        "{'fortran_order': False, 'shape': (1, 1)}",
        &of_shape("(1, 1), 'comment': 'mine'"),
        &header_line("'<f4'", "1", "(1, 1)"),
    ] {
        assert_refused(&file(header, &[0; 4]), damaged);
    }
    for (shape, expected) in [
        ("3", damaged),
        ("'3x4'", damaged),
        ("(1.5, 2)", damaged),
        ("(-1, 4)", damaged),
        ("(18446744073709551616, 1)", damaged),
        ("()", "is of dimension 0, but a matrix is of dimension 2"),
        ("(1, 2, 1)", "is of dimension 3, but a matrix is of"),
    ] {
        assert_refused(&file(&of_shape(shape), &[0; 4]), expected);
    }
    for shape in [
        "(4294967296, 4294967296)",
        "(9223372036854775808, 2)",
        "(1, 4611686018427387904)",
    ] {
        let message = refusal(&file(&of_shape(shape), &[0; 4]));
        let says = "elements of f32, which are more bytes than can be counted";
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn types_that_kernels_do_not_multiply_are_named() {
    let other = "holds elements of the type ";
    for (descr, expected) in [
        ("'>f4'", "is big-endian (>f4)"),
        ("'|O'", "holds Python objects, not numbers"),
        ("'<i8'", &format!("{other}'<i8', but kernels multiply f32")),
        ("'f4'", &format!("{other}'f4', but kernels multiply f32")),
        ("''", &format!("{other}'', but kernels multiply f32")),
        ("[('x', '<f4')]", &format!("{other}[[")),
        ("7", &format!("{other}7, but")),
    ] {
        let header = header_line(descr, "False", "(1, 1)");
        assert_refused(&file(&header, &[0; 8]), expected);
    }
}

#[test]
fn a_file_that_ends_anywhere_in_its_header_is_short() {
    for whole in [
        file(&of_shape("(0, 1)"), &[]),
        version(2, &of_shape("(0, 1)"), &[]),
    ] {
        for length in 1..whole.len() {
            assert_refused(&whole[..length], "ends within its header");
        }
    }
}

#[test]
fn the_length_of_the_file_must_be_that_of_the_matrix() {
    let header = of_shape("(2, 3)");
    let folder = tempfile::tempdir().unwrap();
    let right = file(&header, &[0; 24]);
    assert!(NpyFile::open(&written(&folder, &right)).is_ok());
    for found in [0, 1, 20, 23, 25, 28, 1000] {
        let says = match found {
            ..24 => "is truncated: 2 x 3 elements of f32",
            _ => "goes on after its 2 x 3 elements of f32: they",
        };
        let expected = format!("{says} take 24 bytes after the header, but there are {found}");
        assert_refused(&file(&header, &vec![0; found]), &expected);
    }
    let wide = header_line("'<f8'", "False", "(2, 3)");
    let expected = "is truncated: 2 x 3 elements of f64 take 48 bytes";
    assert_refused(&file(&wide, &[0; 24]), expected);
    // The header claims a terabyte, but there is no data.
    assert_refused(
        &file(&of_shape("(524288, 524288)"), &[0; 4]),
        "is truncated: 524288 x 524288 elements",
    );
}

#[test]
fn what_is_no_regular_file_is_refused_without_being_opened() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| NpyFile::open(path).unwrap_err().to_string();
    assert!(refusal(folder.path()).contains("is not a regular file"));
    assert!(refusal(Path::new("/dev/zero")).contains("is not a regular file"));
    let missing = folder.path().join("none.npy");
    let name = missing.display();
    let expected = format!("`{name}` cannot be read: no such file or directory.");
    assert_eq!(refusal(&missing), expected);
}

fn compact<T: Number>(values: Vec<T>, rows: usize, columns: usize) -> Matrix<T> {
    Matrix::new(values, rows, columns)
}

/// The numbers from 0 up, and their places in the column-major file.
#[test]
fn both_orders_are_read_into_rows() {
    let folder = tempfile::tempdir().unwrap();
    for (rows, columns) in [
        (0, 3),
        (3, 0),
        (1, 1),
        (2, 3),
        (3, 2),
        (1, 7),
        (7, 1),
        (1500, 1000),
    ] {
        let count = rows * columns;
        let by_rows: Vec<i32> = (0..count as i32).collect();
        let by_columns: Vec<i32> = (0..count)
            .map(|index| (index % rows * columns + index / rows) as i32)
            .collect();
        let shape = format!("({rows}, {columns})");
        for (order, values) in [("False", &by_rows), ("True", &by_columns)] {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            let bytes: Vec<u8> = bytes.collect();
            let path = written(&folder, &file(&header_line("'<i4'", order, &shape), &bytes));
            let found = NpyFile::open(&path).unwrap();
            assert_eq!((found.rows(), found.columns()), (rows, columns));
            assert_eq!(found.data_type(), ElementType::I32);
            let is_right = found.read::<i32>().unwrap() == compact(by_rows.clone(), rows, columns);
            assert!(is_right, "{shape} in order {order}");
        }
    }
}

#[test]
fn every_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for major in [1, 2, 3] {
        let bytes = version(major, &of_shape("(1, 2)"), &[0, 0, 128, 63, 0, 0, 0, 64]);
        let path = written(&folder, &bytes);
        let matrix = NpyFile::open(&path).unwrap().read::<f32>().unwrap();
        assert_eq!(matrix.row(0), [1.0, 2.0]);
    }
}

#[test]
fn a_matrix_comes_back_bit_for_bit_as_it_was_written() {
    fn check<T: Number>(values: Vec<T>, rows: usize, columns: usize) {
        let folder = tempfile::tempdir().unwrap();
        let matrix = compact(values, rows, columns);
        let mut bytes = Vec::new();
        npy::write(&matrix, &mut bytes).unwrap();
        let file = NpyFile::open(&written(&folder, &bytes)).unwrap();
        let back = file.read::<T>().unwrap();
        assert_eq!((back.rows(), back.columns()), (rows, columns));
        let bits = |matrix: &Matrix<T>| -> Vec<u64> {
            matrix.buffer().iter().map(|value| value.bits()).collect()
        };
        assert_eq!(bits(&back), bits(&matrix));
    }
    let special = vec![
        f32::NAN,
        f32::POISON,
        f32::INFINITY,
        -f32::INFINITY,
        -0.0,
        f32::from_bits(1),
    ];
    check(special, 2, 3);
    check(vec![f64::NAN, f64::POISON, -f64::INFINITY, -0.0], 1, 4);
    check(vec![i32::MIN, -1, 0, i32::MAX], 4, 1);
    check::<f32>(Vec::new(), 0, 5);
    check::<i32>(Vec::new(), 5, 0);
    check::<f32>(Vec::new(), 0, 0);
}

#[test]
fn only_the_matrix_is_written_and_not_what_lies_between_its_rows() {
    let placement = Placement {
        offset: 1,
        leading: 3,
    };
    let matrix = Matrix::from_rows(2, 2, placement, |row, elements| {
        elements.copy_from_slice(&[row as i32, 7]);
    })
    .unwrap();
    let mut bytes = Vec::new();
    npy::write(&matrix, &mut bytes).unwrap();
    let data: Vec<u8> = [0i32, 7, 1, 7]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert!(bytes.ends_with(&data));
    let start = bytes.len() - data.len();
    // Aligned as in the format's description.
    assert_eq!((start % 64, bytes[start - 1]), (0, b'\n'));
}

#[test]
fn a_file_that_changed_since_it_was_opened_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, &file(&of_shape("(1, 2)"), &[0; 8]));
    let opened = NpyFile::open(&path).unwrap();
    written(&folder, &file(&of_shape("(2, 1)"), &[0; 8]));
    let message = opened.read::<f32>().unwrap_err().to_string();
    let why =
        "has changed since the program started; run it again when nothing else writes the file.";
    assert!(message.ends_with(why), "{message}");
}
