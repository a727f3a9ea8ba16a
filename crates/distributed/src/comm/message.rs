//! Parts of matrices as one MPI message: a derived datatype gives the places of their elements.
//!
//! A part is `rows` pieces of `columns` elements, `leading` elements apart: an MPI vector type.
//! Several parts are a structure of vector types at absolute addresses. So rows of A, columns of a
//! row-major B and both at once travel without being copied together first, and the receiver
//! may place them differently: only the sequence of elements must agree.

use mpi::datatype::{Equivalence, UncommittedDatatypeRef, UncommittedUserDatatype, UserDatatype};
use mpi::{Address, Count};

use verification::cpu::view::{View, ViewMut};

use super::Transmissible;

/// Where the elements of a message are.
pub(super) struct Message {
    /// With absolute addresses, to be used with `MPI_BOTTOM`.
    pub datatype: UserDatatype,
    pub elements: u64,
}

/// One part: the address of its first element, and its layout.
struct Part {
    first: Address,
    rows: usize,
    columns: usize,
    leading: usize,
}

impl Message {
    /// A message that sends `parts`, in this order; `None` if they have no elements.
    pub fn reading<T: Transmissible>(parts: &[View<'_, T>]) -> Option<Message> {
        Message::of::<T>(parts.iter().map(|part| Part {
            first: part.elements().as_ptr() as Address,
            rows: part.rows(),
            columns: part.columns(),
            leading: part.leading(),
        }))
    }

    /// A message that is received into `parts`, in this order; `None` if they have no elements.
    pub fn writing<T: Transmissible>(parts: &mut [ViewMut<'_, T>]) -> Option<Message> {
        Message::of::<T>(parts.iter_mut().map(|part| Part {
            first: part.as_mut_ptr() as Address,
            rows: part.rows(),
            columns: part.columns(),
            leading: part.leading(),
        }))
    }

    fn of<T: Transmissible>(parts: impl Iterator<Item = Part>) -> Option<Message> {
        let parts: Vec<Part> = parts
            .filter(|part| part.rows > 0 && part.columns > 0)
            .collect();
        let elements: usize = parts.iter().map(|part| part.rows * part.columns).sum();
        let element = T::As::equivalent_datatype();
        let vectors: Vec<UncommittedUserDatatype> = parts
            .iter()
            .map(|part| {
                let [rows, columns, leading] =
                    [part.rows, part.columns, part.leading].map(as_count);
                UncommittedUserDatatype::vector(rows, columns, leading, &element)
            })
            .collect();
        let types: Vec<UncommittedDatatypeRef<'_>> = vectors
            .iter()
            .map(UncommittedUserDatatype::as_ref)
            .collect();
        let addresses: Vec<Address> = parts.iter().map(|part| part.first).collect();
        let lengths = vec![1; parts.len()];
        (elements > 0).then(|| Message {
            datatype: UserDatatype::structured(&lengths, &addresses, &types),
            elements: elements as u64,
        })
    }
}

/// What MPI counts with.
///
/// # Panics
///
/// More than [`super::LARGEST`], which the program refuses before anything is sent.
fn as_count(number: usize) -> Count {
    Count::try_from(number).expect("a dimension is at most LARGEST")
}
