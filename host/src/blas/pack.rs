//! Copies of A and B in a layout that suits a kernel: which a call needs, and where they lie in the workspace.

use gpu_kernels::spec::{Storage, Variant};
use gpu_kernels::transpose::{self, TILE as PACKED};

use super::call::{Call, FLOATS, Stored, Transpose};
use crate::device::launch::{MOST_BLOCKS_X, MOST_BLOCKS_Y};
use crate::problem::Shape;

/// One of the two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    A,
    B,
}

/// A copy of an operand that suits the kernel, in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    pub role: Role,
    /// Whether the copy is the transpose of what is stored.
    pub transposed: bool,
    /// Rows and columns of what is stored.
    pub source: (usize, usize),
    /// Rows and columns of the copy, whole tiles if the kernel takes no others: what the source does not have is zero. There are no
    /// gaps between rows.
    pub target: (usize, usize),
    /// Where the copy begins in the workspace, in elements.
    pub offset: usize,
}

impl Pack {
    /// Elements of the copy.
    pub fn elements(&self) -> usize {
        self.target.0 * self.target.1
    }

    /// Blocks along x and y of the launch that makes the copy.
    pub fn grid(&self) -> (u32, u32) {
        let blocks = |size: usize, most: u32| size.div_ceil(PACKED).min(most as usize) as u32;
        (
            blocks(self.target.1, MOST_BLOCKS_X),
            blocks(self.target.0, MOST_BLOCKS_Y),
        )
    }

    /// Where it ends in the workspace; none if no memory has so much.
    fn end(&self) -> Option<usize> {
        let end = self
            .target
            .0
            .checked_mul(self.target.1)?
            .checked_add(self.offset)?;
        end.checked_mul(size_of::<f32>()).map(|_| end)
    }

    /// Elements from the start of a row of the copy to the start of the next.
    pub fn leading(&self) -> usize {
        self.target.1
    }
}

/// Threads of the blocks that make copies.
pub const PACK_BLOCK: (u32, u32) = (transpose::BLOCK_X as u32, transpose::BLOCK_Y as u32);

/// Elements whose multiples the parts of a workspace begin at: 256 bytes.
const PART: usize = 64;

/// Where the part of the workspace after `pack` begins, if that begins at `offset`.
pub(super) fn end(pack: &Option<Pack>, offset: usize) -> Option<usize> {
    match pack {
        Some(pack) => pack.end()?.checked_next_multiple_of(PART),
        None => Some(offset),
    }
}

/// What a matrix needs before a kernel can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    InPlace,
    Copied,
    Transposed,
}

/// What A and B need.
pub(super) fn packings(variant: &Variant, call: &Call) -> [Packing; 2] {
    let Shape { m, n, k } = call.shape;
    if call.shape.is_empty() || k == 0 {
        return [Packing::InPlace; 2];
    }
    let tile = variant.tile;
    let ragged = |size: usize, tile: u32| variant.whole && !size.is_multiple_of(tile as usize);
    let ragged_k = ragged(k, tile.k);
    [
        packing(Role::A, variant.a, call.a, ragged(m, tile.m) || ragged_k),
        packing(Role::B, variant.b, call.b, ragged(n, tile.n) || ragged_k),
    ]
}

fn packing(role: Role, storage: Storage, stored: Stored, ragged: bool) -> Packing {
    if wanted(role, storage) != stored.transpose {
        Packing::Transposed
    } else if ragged || (storage == Storage::AlongTile && !stored.aligned) {
        Packing::Copied
    } else {
        Packing::InPlace
    }
}

/// How a matrix must be stored for `storage`, in the sense of [`Stored::transpose`].
fn wanted(role: Role, storage: Storage) -> Transpose {
    match (role, storage) {
        (Role::A, Storage::AlongTile) | (Role::B, Storage::AlongSums) => Transpose::Yes,
        (Role::A, Storage::RowMajor | Storage::AlongSums)
        | (Role::B, Storage::RowMajor | Storage::AlongTile) => Transpose::No,
    }
}

/// The copy of a matrix, if it needs one, at `offset` of the workspace. The outer option is none if no memory has so much.
pub(super) fn pack(
    role: Role,
    packing: Packing,
    variant: &Variant,
    call: &Call,
    offset: usize,
) -> Option<Option<Pack>> {
    let stored = match role {
        Role::A => call.a.transpose,
        Role::B => call.b.transpose,
    };
    let copied = match packing {
        Packing::InPlace => return Some(None),
        Packing::Copied => stored,
        Packing::Transposed => stored.other(),
    };
    let (shape, tile) = (call.shape, variant.tile);
    let sides = match role {
        Role::A => [(shape.m, tile.m), (shape.k, tile.k)],
        Role::B => [(shape.k, tile.k), (shape.n, tile.n)],
    };
    let turned = |[rows, columns]: [usize; 2], transpose| match transpose {
        Transpose::No => (rows, columns),
        Transpose::Yes => (columns, rows),
    };
    let padded = |(size, tile): (usize, u32)| match variant.whole {
        true => size.checked_next_multiple_of(tile as usize),
        false => Some(size),
    };
    let (rows, columns) = turned([padded(sides[0])?, padded(sides[1])?], copied);
    let pack = Pack {
        role,
        transposed: packing == Packing::Transposed,
        source: turned(sides.map(|(size, _)| size), stored),
        // Rows begin at multiples of 16 bytes.
        target: (rows, columns.checked_next_multiple_of(FLOATS)?),
        offset,
    };
    pack.end()?;
    Some(Some(pack))
}
