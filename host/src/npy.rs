//! Matrices, and batches of them, in NumPy's .npy files, versions 1.0, 2.0 and 3.0:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
//!
//! A file can come from anywhere, so nothing in it is trusted: [`NpyFile::open`] reads only the
//! header, checks it against the length of the file, and refuses anything but matrices. Only
//! [`NpyFile::read`], after that, allocates memory.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use gpu_gemm::ElementType;
use thiserror::Error;

use crate::data::{Matrix, Number, Placement, ProblemError};

mod descriptor;
mod header;
mod refusal;

use header::Header;
use refusal::{Refusal, damaged};

/// A matrix in a file, or a batch of them, one for each product: its header, which agrees with the
/// length of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyFile {
    pub path: PathBuf,
    pub data_type: ElementType,
    /// The first of three dimensions; `None` for a matrix, of two.
    pub products: Option<usize>,
    pub rows: usize,
    pub columns: usize,
    is_big_endian: bool,
    /// Whether the first index of an element changes fastest, and not the last.
    fortran_order: bool,
    /// Whether the file holds the transpose of each matrix.
    is_transposed: bool,
}

/// Why a file is not accepted as a matrix.
#[derive(Debug, Error)]
#[error("`{}` {refusal}", path.display())]
pub struct NpyError {
    path: PathBuf,
    refusal: Refusal,
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
    /// There is no such file, it is not a .npy file or is damaged, or it does not hold matrices of
    /// an element type that kernels multiply.
    pub fn open(path: &Path) -> Result<NpyFile, NpyError> {
        let path = path.to_path_buf();
        match examine(&path) {
            Ok((file, _)) => Ok(file),
            Err(refusal) => Err(NpyError { path, refusal }),
        }
    }

    /// The transposes of the matrices that the file holds.
    #[must_use]
    pub fn transposed(self) -> NpyFile {
        NpyFile {
            rows: self.columns,
            columns: self.rows,
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

    /// The matrices below each other, compact and in row order, whatever the order in the file.
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
        let (rows, columns) = (self.rows, self.columns);
        let rows_of_all = self.products.unwrap_or(1).saturating_mul(rows);
        // In the order of the file, until they are put in order below.
        let compact = Placement::compact(columns);
        let mut matrix = Matrix::from_rows(rows_of_all, columns, compact, |_, _| ())?;
        for chunk in matrix.elements_mut().chunks_mut(CHUNK) {
            let read = take(&mut elements, chunk.len(), self.is_big_endian).map_err(refuse)?;
            chunk.copy_from_slice(&read);
        }
        let [of_product, of_row, of_column] = self.strides();
        if of_column == 1 && [of_row, of_product] == [columns, rows * columns] {
            return Ok(matrix);
        }
        let found = matrix.elements();
        let in_order = Matrix::from_elements(rows_of_all, columns, |row, column| {
            found[row / rows * of_product + row % rows * of_row + column * of_column]
        });
        Ok(in_order?)
    }

    /// Elements of the file from one matrix, row and column to the next.
    fn strides(&self) -> [usize; 3] {
        let products = self.products.unwrap_or(1);
        let (rows, columns) = match self.is_transposed {
            true => (self.columns, self.rows),
            false => (self.rows, self.columns),
        };
        let [of_product, of_row, of_column] = match self.fortran_order {
            true => [1, products, products * rows],
            false => [rows * columns, columns, 1],
        };
        match self.is_transposed {
            true => [of_product, of_column, of_row],
            false => [of_product, of_row, of_column],
        }
    }
}

/// Writes a matrix as a .npy file of version 1.0, in C order.
pub fn write<T: Number>(matrix: &Matrix<T>, out: &mut dyn Write) -> io::Result<()> {
    write_as(&[matrix.rows(), matrix.columns()], matrix, out)
}

/// Writes matrices that are below each other as one array of this shape.
pub fn write_as<T: Number>(
    shape: &[usize],
    matrix: &Matrix<T>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, out); // rows may be short
    out.write_all(&header::of_array(&descriptor::of(T::TYPE), shape))?;
    for row in 0..matrix.rows() {
        for element in matrix.row(row) {
            out.write_all(&element.bits().to_le_bytes()[..size_of::<T>()])?;
        }
    }
    out.flush()
}

/// The next `count` elements.
fn take<T: Number>(
    reader: &mut impl Read,
    count: usize,
    is_big_endian: bool,
) -> Result<Vec<T>, Refusal> {
    let mut bytes = Vec::new();
    let length = count * size_of::<T>();
    if reader.take(length as u64).read_to_end(&mut bytes)? != length {
        // The length agreed with the header when that was read.
        return Err(Refusal::Changed);
    }
    let elements = bytes.chunks_exact_mut(size_of::<T>()).map(|bytes| {
        if is_big_endian {
            bytes.reverse();
        }
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        T::from_bits(u64::from_le_bytes(bits))
    });
    Ok(elements.collect())
}

/// Reads and checks the header, and leaves the reader at the first element.
fn examine(path: &Path) -> Result<(NpyFile, BufReader<File>), Refusal> {
    // Checked before it is opened: opening a named pipe waits for its writer.
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(Refusal::Folder);
    }
    if !kind.is_file() {
        return Err(Refusal::Irregular);
    }
    let mut reader = BufReader::new(File::open(path)?);
    let header = Header::read(&mut reader)?;
    let (data_type, is_big_endian) = descriptor::read(&header.descr)?;
    let (products, rows, columns) = extents(&header.shape)?;
    let count = products.unwrap_or(1) as u128;
    let needed = (rows as u128 * columns as u128)
        .saturating_mul(count)
        .saturating_mul(data_type.bytes() as u128);
    let found = reader
        .get_ref()
        .metadata()?
        .len()
        .saturating_sub(reader.stream_position()?);
    if needed != found.into() {
        let extents: Vec<String> = header.shape.iter().map(usize::to_string).collect();
        let extents = extents.join(" x ");
        return Err(damaged(format!(
            "{extents} elements of {data_type} take {needed} bytes after the header, but there are {found}"
        )));
    }
    let described = NpyFile {
        path: path.to_path_buf(),
        data_type,
        products,
        rows,
        columns,
        is_big_endian,
        fortran_order: header.fortran_order,
        is_transposed: false,
    };
    Ok((described, reader))
}

/// The number of products, if there are three dimensions, the rows and the columns.
fn extents(shape: &[usize]) -> Result<(Option<usize>, usize, usize), Refusal> {
    let advice = match *shape {
        [rows, columns] => return Ok((None, rows, columns)),
        [products, rows, columns] if products > 0 => return Ok((Some(products), rows, columns)),
        [0, _, _] => {
            let what = "holds a batch of no products".to_string();
            return Err(Refusal::Unfit(what, "save at least one".to_string()));
        }
        [] => "save it again, with `numpy.save(path, a.reshape(1, 1))`",
        [_] => {
            "save it again, as a row with `numpy.save(path, a.reshape(1, -1))`, or as a column with \
             `a.reshape(-1, 1)`"
        }
        _ => "save it again, as a batch with `numpy.save(path, a.reshape(-1, *a.shape[-2:]))`",
    };
    let found = shape.len();
    let what = format!("is of dimension {found}, but a matrix is of dimension 2 and a batch of 3");
    Err(Refusal::Unfit(what, advice.to_string()))
}
