//! Copies of A and B in the layout that a kernel requires: which copies a call needs, and where
//! they are in the workspace.

use gpu_kernels::spec::{ElementType, Variant};
use gpu_kernels::{split, transpose};

use super::bands::{MOST_CTAS_X, MOST_CTAS_Y};
use crate::call::{Call, Factor};
use crate::launch::{Address, Argument, Launch, Memory, Waits};

/// A matrix in one of the product's memories, as a kernel gets it.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub address: Address,
    /// The number of elements from the first to the last.
    pub extent: usize,
    pub leading: usize,
}

impl View {
    /// The part of it that begins this many elements further on.
    pub fn after(self, elements: usize, element: ElementType) -> View {
        let elements = elements.min(self.extent);
        View {
            address: self.address.after(elements.wrapping_mul(element.bytes())),
            extent: self.extent - elements,
            ..self
        }
    }
}

/// A copy of an operand in the layout that the kernel requires, in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandCopy {
    pub factor: Factor,
    pub element: ElementType,
    /// Whether the copy is the transpose of the stored matrix.
    pub transposed: bool,
    /// Rows and columns of the stored matrix.
    pub source: (usize, usize),
    /// Rows and columns of the copy, which has no gaps; a multiple of the tiles if the kernel
    /// accepts only exact tiles. Elements outside the source are zero.
    pub target: (usize, usize),
    /// Where the copy begins in the workspace, in bytes.
    pub offset_bytes: usize,
    /// Whether it has two f16 for each f32, all upper ones of a row before all lower ones, and
    /// after all rows a scale for each.
    pub is_split: bool,
}

impl OperandCopy {
    /// The number of elements of the copy.
    pub fn elements(&self) -> usize {
        self.target.0 * self.target.1
    }

    /// The copy, as a kernel reads it.
    pub(super) fn view(&self) -> View {
        let each = 1 + usize::from(self.is_split);
        View {
            address: Memory::Workspace.start().after(self.offset_bytes),
            extent: each * self.elements(),
            leading: each * self.target.1,
        }
    }

    /// The scales of a split operand, one for each row of the copy.
    pub(super) fn scales(&self) -> Address {
        let bytes = self.elements() * self.element.bytes();
        self.view().address.after(bytes)
    }

    /// The launch that splits the matrix at `source`.
    fn split_launch(&self, source: View) -> Launch {
        let (rows, depth) = self.target;
        let (kernel, ctas, block, stored_depth) = match self.transposed {
            false => (
                split::SPLIT_ROWS,
                rows,
                (split::ROW_THREADS, 1),
                self.source.1,
            ),
            true => (
                split::SPLIT_COLUMNS,
                rows.div_ceil(split::COLUMNS),
                (split::COLUMNS, split::COLUMN_THREADS),
                self.source.0,
            ),
        };
        Launch {
            kernel,
            // `bands` has refused more rows.
            grid: (ctas.min(MOST_CTAS_X as usize) as u32, 1),
            products: 1,
            block: (block.0 as u32, block.1 as u32),
            dynamic_shared_bytes: 0,
            element: self.element,
            arguments: vec![
                Argument::Slice(source.address, source.extent),
                Argument::Count(rows),
                Argument::Count(stored_depth),
                Argument::Count(source.leading),
                Argument::Pointer(self.view().address),
                Argument::Count(depth),
                Argument::Pointer(self.scales()),
            ],
            waits: Waits::ForTheStream,
        }
    }

    /// The launch that makes it, of the matrix at `source`.
    pub(super) fn launch(&self, source: View) -> Launch {
        if self.is_split {
            return self.split_launch(source);
        }
        let ctas =
            |size: usize, most: u32| size.div_ceil(transpose::TILE).min(most as usize) as u32;
        Launch {
            // Bits are copied: an i32 as an f32.
            kernel: match (self.transposed, self.element) {
                (true, ElementType::F32 | ElementType::I32) => transpose::TRANSPOSE,
                (true, ElementType::F64) => transpose::TRANSPOSE_F64,
                (true, ElementType::Bf16 | ElementType::F16) => transpose::TRANSPOSE_16,
                (true, ElementType::I8 | ElementType::E4m3) => transpose::TRANSPOSE_8,
                (false, ElementType::Bf16 | ElementType::F16) => transpose::PAD_16,
                (false, ElementType::F32 | ElementType::I32) => transpose::PAD,
                (false, ElementType::F64) => transpose::PAD_F64,
                (false, ElementType::I8 | ElementType::E4m3) => transpose::PAD_8,
            },
            grid: (
                ctas(self.target.1, MOST_CTAS_X),
                ctas(self.target.0, MOST_CTAS_Y),
            ),
            products: 1,
            block: (transpose::BLOCK_X as u32, transpose::BLOCK_Y as u32),
            dynamic_shared_bytes: 0,
            element: self.element,
            arguments: vec![
                Argument::Slice(source.address, source.extent),
                Argument::Count(self.source.0),
                Argument::Count(self.source.1),
                Argument::Count(source.leading),
                Argument::Pointer(self.view().address),
                Argument::Count(self.target.0),
                Argument::Count(self.target.1),
            ],
            waits: Waits::ForTheStream,
        }
    }
}

/// The alignment of what is in a workspace, in bytes.
const ALIGNMENT: usize = 256;

/// The copy of A or B that a kernel needs, if any, at `offset_bytes` of the workspace, and where
/// the next may begin. `None` if it is larger than any memory.
pub(super) fn copy(
    factor: Factor,
    variant: &Variant,
    call: &Call,
    offset_bytes: usize,
) -> Option<(Option<OperandCopy>, usize)> {
    if call.shape.is_empty() || call.shape.k == 0 {
        return Some((None, offset_bytes));
    }
    let (shape, tile) = (call.shape, variant.tile);
    let [m, n, k] = [(shape.m, tile.m), (shape.n, tile.n), (shape.k, tile.k)];
    let (layout, element, sides) = match factor {
        Factor::A => (variant.a, variant.types.a, [m, k]),
        Factor::B => (variant.b, variant.types.b, [k, n]),
    };
    let stored = call.operand(factor);
    let is_ragged = sides
        .iter()
        .any(|&(size, tile)| variant.exact_tiles && !size.is_multiple_of(tile as usize));
    let transposed = stored.major(factor) != layout.major;
    let is_misaligned = layout.alignment > 1 && !stored.aligned;
    let copy = |target, is_split| OperandCopy {
        factor,
        element,
        transposed,
        source: call.stored(factor),
        target,
        offset_bytes,
        is_split,
    };
    if variant.splits_operands {
        let [(mn, _), k] = match factor {
            Factor::A => sides,
            Factor::B => [sides[1], sides[0]],
        };
        let target = (mn, k.0.checked_next_multiple_of(k.1 as usize)?);
        let slots = target.1.checked_add(1)?.checked_mul(target.0)?; // and a scale for each row
        let end = slots
            .checked_mul(element.bytes())?
            .checked_add(offset_bytes)?;
        let end = end.checked_next_multiple_of(ALIGNMENT)?;
        return Some((Some(copy(target, true)), end));
    }
    if !transposed && !is_ragged && !is_misaligned {
        return Some((None, offset_bytes));
    }
    let padded = |(size, tile): (usize, u32)| match variant.exact_tiles {
        true => size.checked_next_multiple_of(tile as usize),
        false => Some(size),
    };
    let as_copied = match transposed {
        true => stored.transpose.other(),
        false => stored.transpose,
    };
    let (rows, columns) = as_copied.of((padded(sides[0])?, padded(sides[1])?));
    // Rows begin at multiples of 16 bytes.
    let float4 = 16 / element.bytes();
    let target = (rows, columns.checked_next_multiple_of(float4)?);
    let elements = target.0.checked_mul(target.1)?;
    let bytes = elements.checked_mul(element.bytes())?;
    let end = bytes.checked_add(offset_bytes)?;
    let end = end.checked_next_multiple_of(ALIGNMENT)?;
    Some((Some(copy(target, false)), end))
}
