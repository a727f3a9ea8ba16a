//! Matrices in NumPy's .npy files, versions 1.0, 2.0 and 3.0:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
//!
//! A file can come from anywhere, so nothing in it is trusted: [`NpyFile::open`] reads only the
//! header, checks it against the length of the file, and refuses anything but a matrix. Only
//! [`NpyFile::read`], after that, allocates memory.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use gpu_gemm::{ElementType, text};
use thiserror::Error;

use crate::data::{Matrix, Number, Placement, ProblemError};
use crate::output::clause;

mod header;

use header::Header;

/// A matrix in a file: its header, which agrees with the length of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyFile {
    pub path: PathBuf,
    pub data_type: ElementType,
    pub rows: usize,
    pub columns: usize,
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
    Unreadable(io::Error),
    #[error(
        "is not a regular file, so its length cannot be checked against its header; copy it into one first."
    )]
    Irregular,
    /// With a clause that says why.
    #[error("is not a whole .npy file, as `numpy.save` writes it: {0}.")]
    Damaged(String),
    /// What it holds, and how to save it instead.
    #[error("{0}; save it again, with `numpy.save(path, a.{1})`.")]
    Unfit(String, &'static str),
    #[error(
        "has changed since the program started; run it again when nothing else writes the file."
    )]
    Changed,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        match error.kind() {
            ErrorKind::UnexpectedEof => damaged("it ends within its header"),
            _ => Refusal::Unreadable(error),
        }
    }
}

fn damaged(why: impl Into<String>) -> Refusal {
    Refusal::Damaged(why.into())
}

/// Why the elements of a file were not read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    File(#[from] NpyError),
    #[error(transparent)]
    Matrix(#[from] ProblemError),
}

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
    let mut reader = BufReader::new(File::open(path)?);
    let header = Header::read(&mut reader)?;
    let mut types = ElementType::ALL.into_iter();
    let data_type = types.find(|data_type| header.descr == descriptor(*data_type));
    let data_type = data_type.ok_or_else(|| {
        let (found, known) = (
            &header.descr,
            text::list(&ElementType::ALL.map(ElementType::name)),
        );
        let what = format!(
            "holds elements of the type {found}, but kernels multiply {known}, little-endian"
        );
        Refusal::Unfit(what, "astype('<f4')")
    })?;
    let [rows, columns] = header.shape[..] else {
        let found = header.shape.len();
        let what = format!("is of dimension {found}, but a matrix is of dimension 2");
        return Err(Refusal::Unfit(what, "reshape(rows, columns)"));
    };
    let needed = rows as u128 * columns as u128 * data_type.bytes() as u128;
    let found = reader
        .get_ref()
        .metadata()?
        .len()
        .saturating_sub(reader.stream_position()?);
    if needed != found.into() {
        return Err(damaged(format!(
            "{rows} x {columns} elements of {data_type} take {needed} bytes after the header, but there are {found}"
        )));
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
