//! What one multiplication launches, decided before anything is launched: a pure function of shape, layout and choice, the same
//! for a GPU and for the simulator.
//!
//! ```text
//!     A, if its layout does not suit --- pack ---.
//!                                                 > kernel ---> C
//!     B, if its layout does not suit --- pack ---'    \
//!                                                      partial sums --- fix up ---> C, where tiles are split
//! ```

use gpu_kernels::spec::{Storage, Tile, Variant};

use super::streams::Streams;
use crate::problem::Shape;

/// Whether a matrix is multiplied as it is stored, or transposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transpose {
    #[default]
    No,
    Yes,
}

impl Transpose {
    /// Both, in the order of the usual letters N and T.
    pub const ALL: [Transpose; 2] = [Transpose::No, Transpose::Yes];

    /// The other.
    pub fn other(self) -> Transpose {
        match self {
            Transpose::No => Transpose::Yes,
            Transpose::Yes => Transpose::No,
        }
    }
}

/// How an operand lies in memory, as far as plans depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// `No`: A as m x k, B as k x n. `Yes`: A as k x m, B as n x k. Row-major both ways.
    pub transpose: Transpose,
    /// Whether every row begins at a multiple of 16 bytes.
    pub aligned: bool,
}

impl Stored {
    /// A matrix of f32 at `address`, its rows `leading` elements apart.
    pub fn at(address: usize, leading: usize, transpose: Transpose) -> Stored {
        Stored {
            transpose,
            aligned: address.is_multiple_of(ALIGNMENT) && leading.is_multiple_of(FLOATS),
        }
    }
}

/// Bytes, and elements of f32, that a 16-byte copy takes at a time.
const ALIGNMENT: usize = 16;
const FLOATS: usize = 4;

/// What is to be multiplied, as far as plans depend on it: `C = op(A) * op(B)` with C `m x n` and sums of `k` products. Where alpha
/// is 0 neither A nor B is read: that is k = 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub shape: Shape,
    pub a: Stored,
    pub b: Stored,
    /// Whether every row of C begins at a multiple of 16 bytes.
    pub c_aligned: bool,
}

impl Call {
    /// Matrices stored without gaps, at addresses as allocations have them.
    pub fn compact(shape: Shape, a: Transpose, b: Transpose) -> Call {
        let leading = |transpose, columns, rows| match transpose {
            Transpose::No => columns,
            Transpose::Yes => rows,
        };
        Call {
            shape,
            a: Stored::at(0, leading(a, shape.k, shape.m), a),
            b: Stored::at(0, leading(b, shape.n, shape.k), b),
            c_aligned: shape.n.is_multiple_of(FLOATS),
        }
    }
}

/// One of the two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// A copy of an operand that suits the kernel, in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    pub side: Side,
    /// Whether the copy is the transpose of what is stored.
    pub transposed: bool,
    /// Rows and columns of what is stored.
    pub source: (usize, usize),
    /// Rows and columns of the copy, whole tiles of the kernel: what the source does not have is zero. There are no gaps between
    /// rows.
    pub target: (usize, usize),
    /// Where the copy begins in the workspace, in elements.
    pub offset: usize,
}

impl Pack {
    /// Elements of the copy.
    pub fn elements(&self) -> usize {
        self.target.0 * self.target.1
    }

    /// Elements from the start of a row of the copy to the start of the next.
    pub fn leading(&self) -> usize {
        self.target.1
    }
}

/// What one multiplication launches.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'v> {
    variant: &'v Variant,
    call: Call,
    /// What the kernel gets as k: that of the copies, where both operands are copied.
    depth: usize,
    a: Option<Pack>,
    b: Option<Pack>,
    streams: Option<Streams>,
    split: bool,
    /// Where the partial sums begin in the workspace.
    partials: usize,
    workspace: usize,
}

/// Elements whose multiples the parts of a workspace begin at: 256 bytes.
const PART: usize = 64;

impl<'v> Plan<'v> {
    /// The plan of `call` by `variant`. A kernel that streams shares its steps as `streams` says, which others ignore.
    ///
    /// None if the kernel does not take such a shape, or the copies would be larger than any memory.
    pub fn new(variant: &'v Variant, call: Call, streams: Streams) -> Option<Plan<'v>> {
        let Shape { m, n, k } = call.shape;
        let tile = variant.tile;
        let whole = |size: usize, tile: u32| size.is_multiple_of(tile as usize);
        if variant.whole && !(whole(m, tile.m) && whole(n, tile.n) && call.c_aligned) {
            return None;
        }
        let mut packed = [(Side::A, variant.a, call.a), (Side::B, variant.b, call.b)]
            .map(|(side, storage, stored)| packing(side, storage, stored));
        if call.shape.is_empty() || k == 0 {
            packed = [Packing::InPlace; 2];
        } else if variant.whole && !whole(k, tile.k) {
            packed = packed.map(Packing::or_copied);
        }
        let mut end = 0;
        let mut place = |side, packing| {
            let pack = pack(side, packing, variant, &call, end)?;
            if let Some(pack) = pack {
                end = (pack.offset + pack.elements()).checked_next_multiple_of(PART)?;
            }
            Some(pack)
        };
        let a = place(Side::A, packed[0])?;
        let b = place(Side::B, packed[1])?;
        let depth = match (a, b) {
            (Some(_), Some(_)) => k.next_multiple_of(tile.k as usize),
            _ => k,
        };
        let mut plan = Plan {
            variant,
            call,
            depth,
            a,
            b,
            streams: None,
            split: false,
            partials: end,
            workspace: end,
        };
        if variant.streams() && !call.shape.is_empty() {
            let (tiles, steps) = (plan.tiles(), plan.steps_per_tile());
            let streams = streams.for_work(tiles, steps);
            plan.split = streams.split(tiles, steps);
            plan.streams = Some(streams);
            if plan.split {
                let slots = 2 * streams.count as usize;
                let partials = slots.checked_mul((tile.m * tile.n) as usize)?;
                plan.workspace = plan.partials.checked_add(partials)?;
            }
        }
        Some(plan)
    }

    /// The kernel.
    pub fn variant(&self) -> &'v Variant {
        self.variant
    }

    /// What it multiplies.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The sums that the kernel is told to compute: those of the call, with zeros behind them if both operands are copied.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The copies to make first, in this order.
    pub fn packs(&self) -> impl Iterator<Item = Pack> + use<> {
        self.a.into_iter().chain(self.b)
    }

    /// The copy of A or B that the kernel reads, if it does not read the operand itself.
    pub fn packed(&self, side: Side) -> Option<Pack> {
        match side {
            Side::A => self.a,
            Side::B => self.b,
        }
    }

    /// How a kernel that streams shares its steps; none for other kernels, and for a C without elements.
    pub fn streams(&self) -> Option<Streams> {
        self.streams
    }

    /// Whether partial sums of tiles are to be added up after the kernel.
    pub fn is_split(&self) -> bool {
        self.split
    }

    /// Where the partial sums begin in the workspace, in elements; its end if there are none.
    pub fn partials_offset(&self) -> usize {
        self.partials
    }

    /// Elements of workspace that it takes; they need not be initialized.
    pub fn workspace_elements(&self) -> usize {
        self.workspace
    }

    /// Tiles of C.
    pub fn tiles(&self) -> usize {
        let Shape { m, n, .. } = self.call.shape;
        let Tile {
            m: tile_m,
            n: tile_n,
            ..
        } = self.variant.tile;
        m.div_ceil(tile_m as usize) * n.div_ceil(tile_n as usize)
    }

    /// Steps of the tile's depth that a tile's sums take.
    pub fn steps_per_tile(&self) -> usize {
        self.depth.div_ceil(self.variant.tile.k as usize)
    }
}

/// What an operand needs before a kernel can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    InPlace,
    Copied,
    Transposed,
}

impl Packing {
    /// A copy in any case.
    fn or_copied(self) -> Packing {
        match self {
            Packing::InPlace => Packing::Copied,
            packed => packed,
        }
    }
}

/// How an operand must be stored for `storage`: in the sense of [`Stored::transpose`].
fn wanted(side: Side, storage: Storage) -> Transpose {
    match (side, storage) {
        (Side::A, Storage::AlongTile) | (Side::B, Storage::AcrossTile) => Transpose::Yes,
        (_, Storage::RowMajor) | (Side::A, Storage::AcrossTile) | (Side::B, Storage::AlongTile) => {
            Transpose::No
        }
    }
}

fn packing(side: Side, storage: Storage, stored: Stored) -> Packing {
    if wanted(side, storage) != stored.transpose {
        Packing::Transposed
    } else if storage == Storage::AlongTile && !stored.aligned {
        Packing::Copied
    } else {
        Packing::InPlace
    }
}

/// The copy of an operand, at the next place in the workspace. The outer option is none if it is larger than any memory.
fn pack(
    side: Side,
    packing: Packing,
    variant: &Variant,
    call: &Call,
    offset: usize,
) -> Option<Option<Pack>> {
    if packing == Packing::InPlace {
        return Some(None);
    }
    let Shape { m, n, k } = call.shape;
    let tile = variant.tile;
    let (storage, stored, plain, tiled) = match side {
        Side::A => (variant.a, call.a, (m, k), (tile.m, tile.k)),
        Side::B => (variant.b, call.b, (k, n), (tile.k, tile.n)),
    };
    let whole = |size: usize, tile: u32| {
        // Rows of a copy begin at multiples of 16 bytes, however small the tile.
        let size = size.checked_next_multiple_of(tile as usize)?;
        size.checked_next_multiple_of(FLOATS)
    };
    let padded = (whole(plain.0, tiled.0)?, whole(plain.1, tiled.1)?);
    let turned = |(rows, columns), transpose| match transpose {
        Transpose::No => (rows, columns),
        Transpose::Yes => (columns, rows),
    };
    let target = turned(padded, wanted(side, storage));
    target
        .0
        .checked_mul(target.1)?
        .checked_add(offset)?
        .checked_mul(size_of::<f32>())?;
    Some(Some(Pack {
        side,
        transposed: packing == Packing::Transposed,
        source: turned(plain, stored.transpose),
        target,
        offset,
    }))
}
