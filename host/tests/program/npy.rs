//! Files that are no matrix, each refused with its own sentence; and matrices, read back as
//! written.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_gemm::{Bf16, E4m3, ElementType, F16};
use host::npy::{self, NpyFile};
use tempfile::TempDir;
use verification::data::{Matrix, Number, Placement};

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

#[track_caller]
fn assert_refused(bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, bytes);
    let message = NpyFile::open(&path).unwrap_err().to_string();
    assert!(message.starts_with(&format!("`{}` ", path.display())));
    assert!(
        message.contains(expected),
        "`{message}` does not say `{expected}`"
    );
}

#[test]
fn a_file_that_holds_no_matrix_is_refused_with_the_reason() {
    let (damaged, ends) = (
        "has a header that is damaged, or is not written as `numpy.save` writes it",
        "it ends within its header",
    );
    for bytes in [&b"1,2,3\n4,5,6\n"[..], b"\x93NUMPX\x01\x00v\x00"] {
        assert_refused(
            bytes,
            "not a whole .npy file, as `numpy.save` writes it: it does not begin",
        );
    }
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let mut bytes = file(&of_shape("(1, 1)"), &[0; 4]);
        bytes[6..8].copy_from_slice(&[major, minor]);
        assert_refused(
            &bytes,
            &format!("it is of version {major}.{minor}, not 1.0"),
        );
    }
    for whole in [1, 2].map(|major| version(major, &of_shape("(0, 1)"), &[])) {
        for length in 0..whole.len() {
            assert_refused(&whole[..length], ends);
        }
    }
    // A header of gigabytes, before memory is allocated for it.
    let mut bytes = version(2, &of_shape("(1, 1)"), &[0; 4]);
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_refused(&bytes, ends);
    let long = of_shape("(1, 1)") + &" ".repeat(10_000);
    assert_refused(&version(2, &long, &[0; 4]), damaged);
    for header in [
        "",
        "nonsense",
        "{'descr': '<f4'",
        &(of_shape("(1, 1)") + " trailing"),
        &of_shape("(1, 1),\u{e9}"),
        &"(".repeat(800),
        &"{'descr':".repeat(800),
        "{}",
        "{'descr': '<f4', 'shape': (1, 1)}",
        &of_shape("(1, 1), 'comment': 'mine'"),
        &header_line("'<f4'", "1", "(1, 1)"),
        &of_shape("3"),
        &of_shape("'3x4'"),
        &of_shape("(1.5, 2)"),
        &of_shape("(-1, 4)"),
        &of_shape("(L, 4)"),
        &of_shape("(1, None)"),
        &header_line("'<f\\x34'", "False", "(1, 1)"),
        &of_shape("(18446744073709551616, 1)"),
    ] {
        assert_refused(&file(header, &[0; 4]), damaged);
    }
    for (shape, advice) in [
        ("()", "`numpy.save(path, a.reshape(1, 1))`"),
        (
            "(1,)",
            "`numpy.save(path, a.reshape(1, -1))`, or as a column",
        ),
        ("(1, 1, 1, 1)", "as a batch with"),
    ] {
        let dimension = shape.matches(char::is_numeric).count();
        let expected = format!(
            "is of dimension {dimension}, but a matrix is of dimension 2 and a batch of 3; save"
        );
        let bytes = file(&of_shape(shape), &[0; 4]);
        assert_refused(&bytes, &expected);
        assert_refused(&bytes, advice);
    }
    let none = file(&of_shape("(0, 1, 1)"), &[]);
    assert_refused(&none, "holds a batch of no products");
    for start in [&b"PK\x03\x04 the rest"[..], b"PK\x05\x06 the rest"] {
        assert_refused(
            start,
            "is an archive (.npz), and not one array; `unzip` makes a .npy file",
        );
    }
}

#[test]
fn an_array_of_another_type_is_refused_with_what_keeps_its_numbers() {
    for (descr, what, advice) in [
        (
            "'<i8'",
            "of the type \"<i8\"",
            "a.astype('float64'))`, which is exact up to 2^53, or with `a.astype('int32')`",
        ),
        ("'>u4'", "of the type", "a.astype('float64')"),
        ("'|u1'", "of the type", "a.astype('int32'))`."),
        ("'|b1'", "of the type", "a.astype('int32'))`."),
        ("'<f16'", "of the type", "a.astype('float64'))`."),
        (
            "'<c8'",
            "holds complex numbers",
            "multiply real ones; multiply `a.real` and `a.imag` by themselves.",
        ),
        ("'<f1'", "of the type", "a.view(TYPE).astype('float32')"),
        ("[('x', '<f4')]", "of the type", "numpy.save(path, a['x'])"),
        (
            "[('x', '<f4'), ('y', '<f4')]",
            "of the type",
            "numpy.save(path, a['x'])",
        ),
        ("'|O'", "of the type", "save numbers of one of these types"),
        ("'<U1'", "of the type", "save numbers of one of these types"),
        ("'|V4'", "of the type", "save numbers of one of these types"),
        ("''", "of the type", "save numbers of one of these types"),
        ("7", "of the type", "save numbers of one of these types"),
    ] {
        let bytes = file(&header_line(descr, "False", "(1, 1)"), &[0; 8]);
        assert_refused(&bytes, what);
        assert_refused(&bytes, advice);
    }
}

/// NumPy reads all of these, too.
#[test]
fn a_type_is_read_in_all_spellings_and_both_orders_of_bytes() {
    fn check<T: Number>(one: T, spellings: &str) {
        let folder = tempfile::tempdir().unwrap();
        for spelling in spellings.split(' ') {
            let mut bytes = one.bits().to_le_bytes()[..size_of::<T>()].to_vec();
            if spelling.starts_with('>') {
                bytes.reverse();
            }
            let header = header_line(&format!("'{spelling}'"), "False", "(1, 1)");
            let path = written(&folder, &file(&header, &bytes));
            let found = NpyFile::open(&path).unwrap().read::<T>().unwrap();
            assert_eq!(found.row(0)[0].bits(), one.bits(), "{spelling}");
        }
    }
    check(1.5f32, "<f4 >f4 =f4 f4 float32 single f <f >f");
    check(1.5f64, "<f8 >f8 =f8 |f8 f8 float64 double float d");
    check(-7i32, "<i4 >i4 =i4 i4 int32 intc i");
    check(-7i8, "|i1 <i1 >i1 i1 int8 byte b");
    check(F16::from_f32(1.5), "<f2 >f2 =f2 f2 float16 half e");
    // What NumPy writes for the bf16 of ml_dtypes, with that package and without.
    check(Bf16::from_f32(1.5), "<V2 >V2 =V2 |V2 V2 bfloat16");
    // And for its float8_e4m3fn.
    check(E4m3::from_f32(1.5), "<V1 >V1 |V1 V1 float8_e4m3fn");
}

#[test]
fn a_header_may_be_written_in_any_way_that_python_reads() {
    let mut unended = file(&of_shape("(2, 1)"), &[0; 8]);
    let newline = unended.len() - 9;
    unended[newline] = b' ';
    let others = [
        of_shape("(2L, 1L)"),
        of_shape("(2, 1)").replace('\'', "\""),
        of_shape("(2,\n# rows\n 1 ,\t)"),
        "{'shape':(2,1),'fortran_order':False,'descr':'<f4'}".to_string(),
    ];
    let others = others.map(|header| file(&header, &[0; 8]));
    for bytes in others.into_iter().chain([unended]) {
        let folder = tempfile::tempdir().unwrap();
        let found = NpyFile::open(&written(&folder, &bytes)).unwrap();
        assert_eq!((found.rows, found.columns), (2, 1));
    }
}

#[test]
fn the_length_of_the_file_must_be_that_of_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    assert!(NpyFile::open(&written(&folder, &file(&of_shape("(2, 3)"), &[0; 24]))).is_ok());
    for (descr, shape, needed, lengths) in [
        ("'<f4'", "(2, 3)", "24", &[0, 1, 23, 25, 1000][..]),
        ("'<f8'", "(2, 3)", "48", &[24]),
        ("'<f4'", "(524288, 524288)", "1099511627776", &[4]),
        (
            "'<f4'",
            "(9223372036854775808, 2)",
            "73786976294838206464",
            &[0],
        ),
    ] {
        for &found in lengths {
            let expected = format!(" take {needed} bytes after the header, but there are {found}.");
            let header = header_line(descr, "False", shape);
            assert_refused(&file(&header, &vec![0; found]), &expected);
        }
    }
}

#[test]
fn what_is_no_regular_file_is_refused_without_being_opened() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| NpyFile::open(path).unwrap_err().to_string();
    assert!(refusal(folder.path()).contains("is a folder; name a .npy file in it"));
    assert!(refusal(Path::new("/dev/zero")).contains("is not a regular file"));
    let missing = folder.path().join("none.npy");
    let name = missing.display();
    let expected = format!("`{name}` cannot be read: no such file or directory.");
    assert_eq!(refusal(&missing), expected);
}

/// The numbers from 0 up, and their places in the column-major file.
#[test]
fn both_orders_and_every_version_are_read_into_rows() {
    let folder = tempfile::tempdir().unwrap();
    let shapes = [(0, 3), (3, 0), (1, 1), (2, 3), (1, 7), (7, 1), (1500, 1000)];
    for ((rows, columns), major) in shapes.into_iter().zip([1, 2, 3, 1, 2, 3, 1]) {
        let count = (rows * columns) as i32;
        let by_rows: Vec<i32> = (0..count).collect();
        let of_column = |col| (0..rows).map(move |row| (row * columns + col) as i32);
        let by_columns: Vec<i32> = (0..columns).flat_map(of_column).collect();
        let shape = format!("({rows}, {columns})");
        for (order, values) in [("False", &by_rows), ("True", &by_columns)] {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let bytes = version(major, &header_line("'<i4'", order, &shape), &bytes);
            let found = NpyFile::open(&written(&folder, &bytes)).unwrap();
            assert_eq!((found.rows, found.columns), (rows, columns));
            assert_eq!(found.data_type, ElementType::I32);
            let is_right =
                found.read::<i32>().unwrap() == Matrix::new(by_rows.clone(), rows, columns);
            assert!(is_right, "{shape} in order {order}");
        }
    }
}

/// Elements 100 p + 10 i + j, in both orders, and as the transposes of other matrices.
#[test]
fn three_dimensions_are_matrices_below_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (products, rows, columns) = (3, 4, 5);
    let element = |p: usize, i: usize, j: usize| (100 * p + 10 * i + j) as i32;
    let index = |number: usize, of: usize, by: usize| number / by % of;
    for order in ["False", "True"] {
        let values = (0..products * rows * columns).map(|at| match order {
            "False" => element(
                at / (rows * columns),
                index(at, rows, columns),
                at % columns,
            ),
            _ => element(
                at % products,
                index(at, rows, products),
                at / (products * rows),
            ),
        });
        let bytes: Vec<u8> = values.flat_map(i32::to_le_bytes).collect();
        let header = header_line("'<i4'", order, "(3, 4, 5)");
        let found = NpyFile::open(&written(&folder, &file(&header, &bytes))).unwrap();
        assert_eq!((found.products, found.rows, found.columns), (Some(3), 4, 5));
        let read = found.read::<i32>().unwrap();
        let transposed = found.transposed().read::<i32>().unwrap();
        assert_eq!((read.rows(), transposed.rows()), (12, 15));
        for (p, i) in (0..products).flat_map(|p| (0..rows).map(move |i| (p, i))) {
            for j in 0..columns {
                assert_eq!(read.row(p * rows + i)[j], element(p, i, j), "{order}");
                assert_eq!(
                    transposed.row(p * columns + j)[i],
                    element(p, i, j),
                    "{order}"
                );
            }
        }
    }
}

#[test]
fn a_matrix_comes_back_bit_for_bit_as_it_was_written() {
    fn check<T: Number>(values: Vec<T>, rows: usize, columns: usize) {
        let folder = tempfile::tempdir().unwrap();
        let matrix = Matrix::new(values, rows, columns);
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
