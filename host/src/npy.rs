//! Matrices in NumPy's .npy files, versions 1.0, 2.0 and 3.0:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
//!
//! A file can come from anywhere, so nothing in it is trusted: [`NpyFile::open`] reads only the
//! header, checks it against the length of the file, and refuses anything but a matrix. Only
//! [`NpyFile::read`], after that, allocates memory.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use gpu_gemm::{ElementType, text};
use serde_json::Value;
use thiserror::Error;

use crate::data::{Matrix, Number, Placement, ProblemError};
use crate::output::clause;

mod header;

use header::Header;

/// A matrix in a file: its header, which agrees with the length of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyFile {
    path: PathBuf,
    data_type: ElementType,
    rows: usize,
    columns: usize,
    /// Whether the elements are in column-major order.
    fortran_order: bool,
    /// Whether the file holds the transpose of this matrix.
    is_transposed: bool,
}

/// Why a file is not accepted as a matrix.
#[derive(Debug, Error)]
#[error("`{}` {refusal}", path.display())]
pub struct NpyError {
    path: PathBuf,
    refusal: Refusal,
}

/// An error in a file: a sentence that begins with the file's name.
#[derive(Debug, Error)]
enum Refusal {
    #[error("cannot be read: {}.", clause(.0))]
    Unreadable(#[from] io::Error),
    #[error(
        "is not a regular file, so its length cannot be checked against its header; copy it into one first."
    )]
    Irregular,
    #[error(
        "is not a .npy file: it does not begin with \\x93NUMPY. Save the matrix with `numpy.save`."
    )]
    Magic,
    #[error(
        "is of version {0}.{1} of the .npy format, but only 1.0, 2.0 and 3.0 are known; save it with `numpy.save`."
    )]
    Version(u8, u8),
    #[error("ends within its header: it is not the whole file.")]
    ShortHeader,
    #[error("has a header that is not as `numpy.save` writes it: it is damaged.")]
    Header,
    #[error(
        "is big-endian ({0}), and only little-endian files are read; save it again, with `numpy.save(path, a.astype('{1}'))`."
    )]
    BigEndian(String, &'static str),
    #[error(
        "holds Python objects, not numbers; save it again, with `numpy.save(path, a.astype('float32'))`."
    )]
    Objects,
    #[error(
        "holds elements of the type {0}, but kernels multiply {known}; save it again, with `numpy.save(path, a.astype('float32'))`.",
        known = known_types()
    )]
    Type(String),
    #[error(
        "is of dimension {0}, but a matrix is of dimension 2; save it again, with `numpy.save(path, a.reshape(rows, columns))`."
    )]
    Dimensions(usize),
    #[error("says that it holds {0}, which are more bytes than can be counted: it is damaged.")]
    Overflow(String),
    #[error(
        "is truncated: {contents} take {needed} bytes after the header, but there are {found}."
    )]
    Truncated {
        contents: String,
        needed: u64,
        found: u64,
    },
    #[error(
        "goes on after its {contents}: they take {needed} bytes after the header, but there are {found}."
    )]
    Trailing {
        contents: String,
        needed: u64,
        found: u64,
    },
    #[error(
        "has changed since the program started; run it again when nothing else writes the file."
    )]
    Changed,
}

/// Why the elements of a file were not read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    File(#[from] NpyError),
    #[error(transparent)]
    Matrix(#[from] ProblemError),
}

/// The largest header in bytes, as for NumPy itself. A matrix has a header of 118.
const LONGEST_HEADER: u64 = 10_000;
/// The number of elements read at once.
const CHUNK: usize = 1 << 20;

impl NpyFile {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// There is no such file, it is not a .npy file or is damaged, or it does not hold a
    /// little-endian matrix of an element type that kernels multiply.
    pub fn open(path: &Path) -> Result<NpyFile, NpyError> {
        let path = path.to_path_buf();
        match examine(&path) {
            Ok((file, _)) => Ok(file),
            Err(refusal) => Err(NpyError { path, refusal }),
        }
    }

    /// The transpose of what the file holds.
    #[must_use]
    pub fn transposed(self) -> NpyFile {
        NpyFile {
            rows: self.columns,
            columns: self.rows,
            fortran_order: !self.fortran_order,
            is_transposed: !self.is_transposed,
            ..self
        }
    }

    /// Its path, and whether it is transposed, for messages.
    pub fn name(&self) -> String {
        match self.is_transposed {
            true => format!("`{}`, transposed,", self.path.display()),
            false => format!("`{}`", self.path.display()),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The type of its elements.
    pub fn data_type(&self) -> ElementType {
        self.data_type
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The matrix, compact and in row order, whatever the order in the file.
    ///
    /// # Errors
    ///
    /// The file has changed, holds elements of another type than `T`, or cannot be read; or
    /// there is no memory for it.
    pub fn read<T: Number>(&self) -> Result<Matrix<T>, ReadError> {
        let refuse = |refusal| NpyError {
            path: self.path.clone(),
            refusal,
        };
        let (now, mut elements) = examine(&self.path).map_err(refuse)?;
        let now = match self.is_transposed {
            true => now.transposed(),
            false => now,
        };
        if now != *self || self.data_type != T::TYPE {
            return Err(refuse(Refusal::Changed).into());
        }
        // A line is a row or a column, whichever is contiguous in the file.
        let (lines, length) = match self.fortran_order {
            false => (self.rows, self.columns),
            true => (self.columns, self.rows),
        };
        let compact = Placement::compact(length);
        let mut matrix = Matrix::from_rows(lines, length, compact, |_, _| ())?;
        let at_once = (CHUNK / length.max(1)).max(1);
        for first in (0..lines).step_by(at_once) {
            let count = at_once.min(lines - first);
            let chunk = take(&mut elements, count * length).map_err(refuse)?;
            for (line, read) in chunk.chunks(length.max(1)).enumerate() {
                matrix.row_mut(first + line).copy_from_slice(read);
            }
        }
        match self.fortran_order {
            false => Ok(matrix),
            true => Ok(matrix.transposed(1)?),
        }
    }
}

/// Writes a matrix as a .npy file of version 1.0, in C order.
pub fn write<T: Number>(matrix: &Matrix<T>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&header::of_matrix(
        descriptor(T::TYPE),
        matrix.rows(),
        matrix.columns(),
    ))?;
    let bytes = |element: &T| {
        element
            .bits()
            .to_le_bytes()
            .into_iter()
            .take(size_of::<T>())
    };
    (0..matrix.rows()).try_for_each(|row| {
        let row: Vec<u8> = matrix.row(row).iter().flat_map(bytes).collect();
        out.write_all(&row)
    })
}

/// The next `count` elements.
fn take<T: Number>(reader: &mut impl Read, count: usize) -> Result<Vec<T>, Refusal> {
    let mut bytes = Vec::new();
    let length = count * size_of::<T>();
    if reader.take(length as u64).read_to_end(&mut bytes)? != length {
        // The length agreed with the header when that was read.
        return Err(Refusal::Changed);
    }
    let elements = bytes.chunks_exact(size_of::<T>()).map(|bytes| {
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        T::from_bits(u64::from_le_bytes(bits))
    });
    Ok(elements.collect())
}

/// Reads and checks the header, and leaves the reader at the first element.
fn examine(path: &Path) -> Result<(NpyFile, BufReader<File>), Refusal> {
    // Checked before it is opened: opening a named pipe waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(Refusal::Irregular);
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    let (bytes, start) = header_bytes(&mut reader, length)?;
    let header = Header::parse(&bytes[start..]).ok_or(Refusal::Header)?;
    let data_type = data_type(&header.descr)?;
    let [rows, columns] = header.shape[..] else {
        return Err(Refusal::Dimensions(header.shape.len()));
    };
    let contents = format!("{rows} x {columns} elements of {data_type}");
    let count = (rows as u64).checked_mul(columns as u64);
    let Some(needed) = count.and_then(|count| count.checked_mul(data_type.bytes() as u64)) else {
        return Err(Refusal::Overflow(contents));
    };
    let found = length.saturating_sub(bytes.len() as u64);
    if found < needed {
        return Err(Refusal::Truncated {
            contents,
            needed,
            found,
        });
    }
    if found > needed {
        return Err(Refusal::Trailing {
            contents,
            needed,
            found,
        });
    }
    let described = NpyFile {
        path: path.to_path_buf(),
        data_type,
        rows,
        columns,
        fortran_order: header.fortran_order,
        is_transposed: false,
    };
    Ok((described, reader))
}

/// The bytes from the start of a file of `length` bytes to the end of its header, and where in
/// them the dictionary begins.
fn header_bytes(reader: &mut impl Read, length: u64) -> Result<(Vec<u8>, usize), Refusal> {
    const MAGIC: &[u8] = b"\x93NUMPY";
    let mut bytes = Vec::new();
    let mut extend = |bytes: &mut Vec<u8>, count: u64| -> Result<(), Refusal> {
        match reader.by_ref().take(count).read_to_end(bytes)? as u64 {
            read if read < count => Err(Refusal::ShortHeader),
            _ => Ok(()),
        }
    };
    let magic = extend(&mut bytes, MAGIC.len() as u64);
    if !MAGIC.starts_with(&bytes) || bytes.is_empty() {
        return Err(Refusal::Magic);
    }
    magic?;
    extend(&mut bytes, 2)?;
    let size_bytes = match (bytes[6], bytes[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => return Err(Refusal::Version(major, minor)),
    };
    extend(&mut bytes, size_bytes)?;
    let size = bytes[8..]
        .iter()
        .rev()
        .fold(0, |size, byte| size << 8 | u64::from(*byte));
    if size > length.saturating_sub(bytes.len() as u64) {
        return Err(Refusal::ShortHeader);
    }
    if size > LONGEST_HEADER {
        return Err(Refusal::Header);
    }
    let start = bytes.len();
    extend(&mut bytes, size)?;
    Ok((bytes, start))
}

/// How NumPy spells an element type.
fn descriptor(data_type: ElementType) -> &'static str {
    match data_type {
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::I32 => "<i4",
        ElementType::F16 => "<f2",
        // NumPy has no bf16. It writes this for the bf16 of the package `ml_dtypes`.
        ElementType::Bf16 => "<V2",
    }
}

/// The element type that a header names.
fn data_type(descr: &Value) -> Result<ElementType, Refusal> {
    let Value::String(text) = descr else {
        return Err(Refusal::Type(descr.to_string()));
    };
    let named = |text: &str| {
        ElementType::ALL
            .into_iter()
            .find(|data_type| descriptor(*data_type) == text)
    };
    if let Some(data_type) = named(text) {
        return Ok(data_type);
    }
    if let Some(swapped) = text.strip_prefix('>')
        && let Some(data_type) = named(&format!("<{swapped}"))
    {
        return Err(Refusal::BigEndian(text.clone(), descriptor(data_type)));
    }
    match &text[..] {
        "|O" | "O" => Err(Refusal::Objects),
        _ => Err(Refusal::Type(format!("'{text}'"))),
    }
}

/// `f32 and i32`.
fn known_types() -> String {
    text::list(&ElementType::ALL.map(ElementType::name))
}
