//! Copies of boxes between global and shared memory.

use super::block::{Block, State};
use super::extensions::Extension;
use super::groups::Groups;
use super::mbarrier::{self, Load};
use super::shared_memory::{POISON, SharedMemory};
use super::{cluster, current};
use crate::mma::round_to_tf32;
use crate::tma::{TensorMap, Tiles};

/// A box of a matrix.
#[derive(Clone, Copy, Debug)]
struct Tile {
    tiles: Tiles,
    x: u32,
    y: u32,
    /// The matrix, counted from the first.
    z: u32,
    /// Where it begins in the block's shared memory.
    offset: usize,
}

impl Tile {
    /// The first element of its matrix.
    fn matrix(&self) -> *const u8 {
        let bytes = self.tiles.planes.map_or(0, |planes| planes.bytes);
        let first = (self.z as usize).wrapping_mul(bytes);
        self.tiles.global.wrapping_add(first)
    }

    /// Rows of its matrix: 0 if there is no such matrix.
    fn height(&self) -> usize {
        match self.tiles.planes {
            Some(planes) if self.z as usize >= planes.count => 0,
            _ => self.tiles.height,
        }
    }

    /// Whether the matrix ends within the box, at a column that is no multiple of 16 bytes.
    fn ends_within_a_piece(&self) -> bool {
        let Self { tiles, x, y, .. } = *self;
        let height = self.height();
        let ends = (x as usize..x as usize + tiles.box_width).contains(&tiles.width);
        let has_rows = (y as usize) < height;
        ends && has_rows && !(tiles.width * tiles.element_bytes).is_multiple_of(16)
    }

    /// The 16-byte pieces of its rows. Of each: its offset in shared memory, its row in the matrix,
    /// its first byte in that row, and the number of its bytes that are in bounds.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        let Self {
            tiles,
            x,
            y,
            offset,
            ..
        } = *self;
        let height = self.height();
        let row_bytes = tiles.box_width * tiles.element_bytes;
        let first = x as usize * tiles.element_bytes;
        let width = tiles.width * tiles.element_bytes;
        (0..tiles.box_height).flat_map(move |row| {
            (0..row_bytes / 16).map(move |piece| {
                let place = tiles.swizzle.place(offset + row * row_bytes + 16 * piece);
                let byte = first + 16 * piece;
                let valid = match y as usize + row < height {
                    true => width.saturating_sub(byte).min(16),
                    false => 0,
                };
                (place, y as usize + row, byte, valid)
            })
        })
    }
}

impl Load for Tile {
    fn bytes(&self) -> usize {
        self.tiles.box_bytes()
    }

    fn land(&self, memory: &mut SharedMemory) {
        let (matrix, row_bytes) = (self.matrix(), self.tiles.row_bytes);
        for (place, row, byte, valid) in self.pieces() {
            let mut piece = [0; 16];
            if valid > 0 {
                // SAFETY: in bounds of the matrix that the map describes, which the kernel has
                // vouched for until it waits.
                let from = unsafe { matrix.add(row * row_bytes + byte) };
                // SAFETY: as above.
                unsafe { piece.as_mut_ptr().copy_from_nonoverlapping(from, valid) };
            }
            if self.tiles.rounds_to_tf32 {
                for element in piece.as_chunks_mut::<4>().0 {
                    let rounded = round_to_tf32(f32::from_ne_bytes(*element));
                    *element = rounded.to_ne_bytes();
                }
            }
            memory.write_async(place, &piece);
        }
    }
}

/// A store that has been issued.
#[derive(Debug)]
struct Store {
    tile: Tile,
    /// The pieces, once they have been read from shared memory.
    read: Option<Vec<[u8; 16]>>,
}

impl Store {
    /// Reads its pieces by `piece`, which takes an offset in shared memory, unless it has.
    fn read(&mut self, piece: impl Fn(usize) -> [u8; 16]) -> &[[u8; 16]] {
        let pieces = || self.tile.pieces().map(|(place, ..)| piece(place)).collect();
        self.read.get_or_insert_with(pieces)
    }

    /// Reads its pieces, unless it has, and writes them to the matrix.
    fn write(mut self, piece: impl Fn(usize) -> [u8; 16]) {
        let (tile, read) = (self.tile, self.read(piece));
        let (matrix, row_bytes) = (tile.matrix(), tile.tiles.row_bytes);
        let pieces = tile.pieces().zip(read);
        for ((_, row, byte, valid), piece) in pieces {
            if valid > 0 {
                // SAFETY: in bounds of the matrix that the map describes, which the kernel has
                // vouched for.
                unsafe {
                    let to = matrix.cast_mut().add(row * row_bytes + byte);
                    to.copy_from_nonoverlapping(piece.as_ptr(), valid);
                }
            }
        }
    }
}

impl Extension for Groups<Store> {
    fn begin_block(&mut self) {
        self.clear();
    }

    /// Performs the stores, as late as a GPU may. The shared memory that they have not read by now
    /// may belong to another block: they write ones instead.
    fn end_thread(&mut self) {
        for store in self.take_all() {
            store.write(|_| [0xFF; 16]);
        }
    }
}

/// The box at these coordinates, if a GPU can copy it from or to `shared`.
fn tile(map: &TensorMap, at: &[u32], shared: *const u8, block: &Block) -> Result<Tile, String> {
    let tiles = Tiles::of(map).ok_or("a tensor map that was not made for the simulator.")?;
    let (x, y, z) = match (at, tiles.planes) {
        (&[x, y], None) => (x, y, 0),
        (&[x, y, z], Some(_)) => (x, y, z),
        _ => {
            return Err(format!(
                "{} coordinates, by a map of {} dimensions.",
                at.len(),
                2 + usize::from(tiles.planes.is_some())
            ));
        }
    };
    let bytes = tiles.box_bytes();
    let memory = block.shared_memory.borrow();
    let alignment = match tiles.swizzle.row_bytes() {
        Some(row_bytes) => 8 * row_bytes,
        None => 128,
    };
    let offset = memory.offset(shared);
    if !memory.has_offset(shared, bytes) || !offset.is_multiple_of(alignment) {
        return Err(format!(
            "a box of {bytes} bytes at {shared:p}; it must be in an array or in the dynamic part of the block's \
             shared memory, at a multiple of {alignment}."
        ));
    }
    let tile = Tile {
        tiles,
        x,
        y,
        z,
        offset,
    };
    for (_, row, byte, valid) in tile.pieces() {
        let address = tile.matrix().addr() + row * tiles.row_bytes + byte;
        if valid > 0 && !block.copies_may_read(address, valid) {
            return Err(format!(
                "a copy of {valid} bytes at row {row}, byte {byte} of its matrix, not all of which it may use."
            ));
        }
    }
    Ok(tile)
}

#[track_caller]
pub(crate) fn tma_load(shared: *mut u8, map: &TensorMap, at: &[u32], barrier: usize) {
    let Some((block, _)) = current::running() else {
        return;
    };
    let load = tile(map, at, shared, block).and_then(|tile| issue(tile, barrier, block));
    current::or_fail(load);
}

/// Issues a load to the blocks of the cluster whose bits are set.
#[track_caller]
pub(crate) fn tma_load_multicast(
    shared: *mut u8,
    map: &TensorMap,
    at: &[u32],
    barrier: usize,
    ranks: u16,
) {
    let Some((block, _)) = current::running() else {
        return;
    };
    let to_each = || {
        let tile = tile(map, at, shared, block)?;
        for rank in (0..u16::BITS).filter(|rank| ranks >> rank & 1 == 1) {
            let peer = cluster::peer(rank)?;
            issue(tile, cluster::address_in(peer, barrier), peer)?;
        }
        Ok(())
    };
    current::or_fail(to_each());
}

/// Issues a load to a block's shared memory, and poisons its target.
fn issue(tile: Tile, barrier: usize, block: &Block) -> Result<(), String> {
    {
        let mut memory = block.shared_memory.borrow_mut();
        for (place, ..) in tile.pieces() {
            memory.write_async(place, &[POISON; 16]);
        }
    }
    mbarrier::expect(block, barrier, Box::new(tile))
}

#[track_caller]
pub(crate) fn tma_store(map: &TensorMap, at: &[u32], shared: *const u8) {
    let Some((block, thread)) = current::running() else {
        return;
    };
    let tile = current::or_fail(tile(map, at, shared, block));
    if tile.ends_within_a_piece() {
        current::refuse_copy(format!(
            "a store to the end of rows of {} bytes: a GPU writes pieces of 16 bytes, and so what is behind the rows. Either they end at a multiple of 16 bytes, or boxes before their end.",
            tile.tiles.width * tile.tiles.element_bytes
        ));
    }
    let mut store = Store { tile, read: None };
    if block.launch.order.stores_read_early() {
        let memory = block.shared_memory.borrow();
        store.read(|place| memory.read_async(place));
    }
    thread.extensions.get::<Groups<Store>>().issue(store);
}

#[track_caller]
pub(crate) fn tma_commit() {
    current::thread().extensions.get::<Groups<Store>>().commit();
}

/// Lets all groups but the newest read shared memory.
#[track_caller]
pub(crate) fn tma_wait_read(pending_groups: usize) {
    let Some((block, thread)) = current::waits_here() else {
        return;
    };
    thread.suspend(State::AfterOthers);
    let memory = block.shared_memory.borrow();
    let mut stores = thread.extensions.get::<Groups<Store>>();
    for store in stores.all_but_newest_mut(pending_groups) {
        store.read(|place| memory.read_async(place));
    }
}

/// Lets all groups but the newest write global memory.
#[track_caller]
pub(crate) fn tma_wait(pending_groups: usize) {
    let Some((block, thread)) = current::waits_here() else {
        return;
    };
    thread.suspend(State::AfterOthers);
    let memory = block.shared_memory.borrow();
    let mut stores = thread.extensions.get::<Groups<Store>>();
    for store in stores.take_all_but_newest(pending_groups) {
        store.write(|place| memory.read_async(place));
    }
}

/// Makes the writes of threads visible to TMA and wgmma.
#[track_caller]
pub(crate) fn tma_fence() {
    if let Some((block, _)) = current::waits_here() {
        block.shared_memory.borrow_mut().fence_async_proxy();
    }
}
