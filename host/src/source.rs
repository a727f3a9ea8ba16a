//! Where the matrices of a problem come from: random numbers, a pattern, or the user's files.

use std::fmt;
use std::path::Path;

use gpu_gemm::text::plural;
use thiserror::Error;

use crate::data::{Data, Matrix, Number, Problem, Storage};
use crate::npy::{NpyError, NpyFile, ReadError};
use crate::spelled;
use crate::verify;
use gpu_gemm::{Bf16, DataType, E4m3, ElementType, F16, Shape, Transpose};

/// The source of the matrices.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Numbers of some kind.
    Filled(Data),
    /// The user's files.
    Files(Files),
}

/// The files of a problem, or of a batch of them. Their shapes fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    a: NpyFile,
    b: NpyFile,
    /// `None` where beta is 0.
    c: Option<NpyFile>,
}

/// Why files do not form a problem.
#[derive(Debug, Error)]
pub enum FilesError {
    #[error(transparent)]
    File(#[from] NpyError),
    /// The shapes of the matrices do not fit each other; the text is a sentence.
    #[error("{0}")]
    Unfit(String),
    #[error(
        "beta is {0}, so C is read, but there is no file for it; name one with --c, or leave out --beta."
    )]
    NoC(f64),
}

impl Files {
    /// Reads the files' headers. A and B are transposed as `transposes` says; `c` is ignored where
    /// `beta` is 0.
    ///
    /// # Errors
    ///
    /// A file is refused, the matrices do not fit each other, or C is missing.
    pub fn open(
        a: &Path,
        b: &Path,
        c: Option<&Path>,
        transposes: [Transpose; 2],
        beta: f64,
    ) -> Result<Files, FilesError> {
        let open = |path, transpose| -> Result<NpyFile, NpyError> {
            let file = NpyFile::open(path)?;
            Ok(match transpose {
                Transpose::No => file,
                Transpose::Yes => file.transposed(),
            })
        };
        let (a, b) = (open(a, transposes[0])?, open(b, transposes[1])?);
        let c = match c {
            _ if beta == 0.0 => None,
            Some(c) => Some(NpyFile::open(c)?),
            None => return Err(FilesError::NoC(beta)),
        };
        let element = a.data_type;
        let is_multiplied = |c: &&NpyFile| {
            let data_type = DataType {
                inputs: element,
                c: c.data_type,
            };
            DataType::ALL.contains(&data_type)
        };
        let other = Some(&b).filter(|b| b.data_type != element);
        if let Some(other) = other.or(c.as_ref().filter(|c| !is_multiplied(c))) {
            return Err(FilesError::Unfit(format!(
                "`{}` holds {element} and `{}` holds {}, but all matrices must be of one type, or C of f32 \
                 where A and B are of bf16, f16 or e4m3, of bf16 where they are of e4m3, and of i32 \
                 where they are of i8; save one of them again, with NumPy's `astype`.",
                a.path.display(),
                other.path.display(),
                other.data_type
            )));
        }
        let mut others = std::iter::once(&b).chain(&c);
        if let Some(other) = others.find(|other| other.products != a.products) {
            let held = |file: &NpyFile| match file.products {
                Some(products) => format!("a batch of {products}"),
                None => "one matrix".to_string(),
            };
            return Err(FilesError::Unfit(format!(
                "`{}` holds {} and `{}` holds {}, but each product has an A, a B and a C of its own; save one \
                 of them again, with NumPy's `broadcast_to`.",
                a.path.display(),
                held(&a),
                other.path.display(),
                held(other)
            )));
        }
        let size = |file: &NpyFile| format!("{} x {}", file.rows, file.columns);
        if a.columns != b.rows {
            return Err(FilesError::Unfit(format!(
                "{} is {} and {} is {}, but A must have as many columns as B has rows.",
                a.name(),
                size(&a),
                b.name(),
                size(&b)
            )));
        }
        let (m, n) = (a.rows, b.columns);
        match c {
            Some(c) if (c.rows, c.columns) != (m, n) => Err(FilesError::Unfit(format!(
                "`{}` is {}, but C must be {m} x {n}: A has {} and B has {}.",
                c.path.display(),
                size(&c),
                plural(m, "row"),
                plural(n, "column")
            ))),
            c => Ok(Files { a, b, c }),
        }
    }

    /// The types of their elements; without a file, C has the type of A and B, or i32 for i8 and
    /// f32 for e4m3.
    pub fn data_type(&self) -> DataType {
        let inputs = self.a.data_type;
        let c = self.c.as_ref().map(|c| c.data_type);
        let c = c.unwrap_or(DataType::of(inputs).c);
        DataType { inputs, c }
    }

    /// Whether the files can be multiplied as this type: without a file for C, f32 is possible for
    /// A and B of 16 bits.
    pub fn can_be(&self, data_type: DataType) -> bool {
        let of_files = self.data_type();
        data_type == of_files || self.c.is_none() && data_type.inputs == of_files.inputs
    }

    /// Whether A and B can be quantised: they have more bits than e4m3.
    pub fn can_be_quantised(&self) -> bool {
        use ElementType::{Bf16, F16, F32, F64};
        [F32, F64, Bf16, F16].contains(&self.a.data_type)
    }

    /// The number of products.
    pub fn batch(&self) -> usize {
        self.a.products.unwrap_or(1)
    }

    /// Whether the files have a third dimension, as then the product has, too.
    pub fn is_batch(&self) -> bool {
        self.a.products.is_some()
    }

    /// The dimensions of each product.
    pub fn shape(&self) -> Shape {
        Shape::new(self.a.rows, self.b.columns, self.a.columns)
    }
}

/// `A from a.npy, B from b.npy`.
impl fmt::Display for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Files { a, b, c } = self;
        let (a, b) = (a.path.display(), b.path.display());
        write!(formatter, "A from {a}, B from {b}")?;
        match c {
            Some(c) => write!(formatter, ", C from {}", c.path.display()),
            None => Ok(()),
        }
    }
}

impl Source {
    /// The problem, with A and B in `inputs`, and its data, unless it comes from files, whose
    /// matrices are compact. Where `beta` or `alpha` is zero, operands that must not be
    /// read are filled with [`Number::POISON`].
    ///
    /// # Errors
    ///
    /// A file cannot be read, or there is no memory.
    pub fn problem_of<T: Number>(
        &self,
        inputs: ElementType,
        shape: Shape,
        storage: Storage,
        seed: u64,
        scalars: (T, T),
    ) -> Result<(Problem<T>, Option<Data>), ReadError> {
        match *self {
            Source::Files(ref files) => {
                let problem = files.problem(scalars)?.with_inputs(inputs);
                let transposes = storage.transposes;
                Ok((
                    Problem {
                        transposes,
                        ..problem
                    },
                    None,
                ))
            }
            Source::Filled(data) => {
                let data = match data {
                    Data::Integers => verify::small_integers::<T>(shape.k)
                        .unwrap_or(Data::SmallIntegers { largest: 1 }),
                    data => data,
                };
                let problem = Problem::random_as(inputs, shape, storage, data, seed, scalars)?;
                Ok((problem, Some(data)))
            }
        }
    }

    /// The description for reports.
    pub fn description(&self) -> String {
        match self {
            Source::Filled(data) => spelled(*data),
            Source::Files(files) => files.to_string(),
        }
    }
}

impl Files {
    fn problem<T: Number>(&self, (alpha, beta): (T, T)) -> Result<Problem<T>, ReadError> {
        let (Shape { m, n, k }, batch) = (self.shape(), self.batch());
        let [m, k] = [m, k].map(|rows| rows.saturating_mul(batch));
        let read = |file: Option<&NpyFile>, rows, columns| match file {
            Some(file) => read_as(file),
            None => Ok(Matrix::from_elements(rows, columns, |_, _| T::POISON)?),
        };
        let factor = |file| (alpha != T::default()).then_some(file);
        let a = read(factor(&self.a), m, self.a.columns)?;
        let b = read(factor(&self.b), k, n)?;
        let c = read(self.c.as_ref(), m, n)?;
        Ok(Problem::of_batch(batch, (alpha, beta), [a, b, c])?)
    }
}

/// The matrix in a file, converted exactly to `T`.
fn read_as<T: Number>(file: &NpyFile) -> Result<Matrix<T>, ReadError> {
    match file.data_type {
        ElementType::F32 if T::TYPE != ElementType::F32 => Ok(file.read::<f32>()?.converted()?),
        ElementType::Bf16 if T::TYPE != ElementType::Bf16 => {
            Ok(file.read::<Bf16>()?.converted()?)
        }
        ElementType::F16 if T::TYPE != ElementType::F16 => Ok(file.read::<F16>()?.converted()?),
        ElementType::I8 => Ok(file.read::<i8>()?.converted()?),
        ElementType::E4m3 => Ok(file.read::<E4m3>()?.converted()?),
        _ => file.read(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_sums_are_those_of_row_and_column_and_what_is_not_read_is_poison() {
        let shape = Shape::new(3, 4, 5);
        let source = Source::Filled(Data::IndexSum);
        let storage = Storage {
            padding: [2; 3],
            batch: 2,
            ..Storage::COMPACT
        };
        let problem = source.problem_of::<i32>(ElementType::I32, shape, storage, 1, (1, 0));
        let (problem, _) = problem.unwrap();
        for product in [problem.product(0).unwrap(), problem.product(1).unwrap()] {
            assert_eq!(product.a.row(2), [2, 3, 4, 5, 6]);
            assert_eq!(product.b.row(4), [4, 5, 6, 7]);
        }
        assert_eq!(problem.a.leading(), 7);
        assert!(problem.c.buffer().iter().all(|c| *c == i32::POISON));
    }
}
