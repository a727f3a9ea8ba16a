//! What the model needs to know of ranks with GPUs, timed as the layouts do it, part by part:
//! copies and messages in several sizes, and products of the layouts' shapes of operands that are
//! on the GPU.
//!
//! Messages go from rank 0 to rank 1, fetches and products are those of all ranks at once. Whatever
//! runs for the first time (a kernel is compiled, memory is allocated) is done once before.

use std::rc::Rc;

use gpu_gemm::device::cuda::Direction;
use gpu_gemm::device::cuda::ipc::Exported;
use gpu_gemm::{DeviceError, Shape};
use host::cpu::view::{View, ViewMut};
use host::data::{Data, Layout, Problem};

use super::{join, receive, send};
use crate::Element;
use crate::comm::transport::Way;
use crate::comm::{Piece, Ranks};
use crate::layout::{LayoutError, Moves, Strip};
use crate::local::LocalError;
use crate::local::gpu::{Gpu, Line, OnGpu, Room};
use crate::machine::{LocalShape, slowest};
use crate::model::{Case, Copied, Gpus, ResidentProduct};
use crate::nccl::Communicator;

/// Elements of the smallest copy and message, and bytes of the largest; each has four times as many
/// as the one before.
const SMALLEST: usize = 1 << 8;
const LARGEST_BYTES: usize = 1 << 29;
/// How often each is timed.
const TIMES: usize = 5;
/// Products of one kind are timed so often at most, as far as they take no longer than this.
const BUDGET_S: f64 = 0.25;
/// Panels that are multiplied one after the other, and those beside which messages travel.
const PANELS: usize = 16;
const STEPS: usize = 8;
/// Rows and columns of random data at most, which is repeated.
const RANDOM: usize = 1 << 10;

/// Measures what `moves` and `products` name. All ranks call it, and all get the same answer.
///
/// # Errors
///
/// A GPU fails, or there is no memory.
pub(crate) fn measure<T: Element>(
    ranks: &Ranks,
    gpu: &Gpu,
    case: &Case,
    moves: &[Moves],
    products: &[LocalShape],
) -> Result<Gpus, LayoutError> {
    let Shape { m, n, k } = case.shape;
    let longest = (m * k + k * n).max(m * n * of_sum::<T>());
    let longest = longest.clamp(SMALLEST, (LARGEST_BYTES / size_of::<T>()).max(SMALLEST));
    let measuring = Measuring {
        ranks,
        gpu,
        pair: pair(ranks, gpu, longest)?,
        longest,
        row: n.max(1),
        random: random(case.shape)?,
        host: vec![T::from_integer(1); longest],
        uploads: 0,
        buffer: Vec::new(),
    };
    measuring.all(case, moves, products)
}

/// So many elements of A have the bytes of one of C.
fn of_sum<T: Element>() -> usize {
    size_of::<T::Sum>() / size_of::<T>()
}

/// Ranks 0 and 1, if there are two, and what their GPUs send by.
struct Pair<'g, T> {
    ranks: Ranks,
    communicator: Option<Rc<Communicator>>,
    peer: Option<Peer<'g, T>>,
}

/// What rank 1 reads of rank 0's GPU, if the way is peer access.
enum Peer<'g, T> {
    Kept(#[expect(dead_code, reason = "rank 1 reads it")] Room<'g, T>),
    Opened(*mut T),
}

/// None on other ranks, and if there is but one.
fn pair<'g, T: Element>(
    ranks: &Ranks,
    gpu: &'g Gpu,
    longest: usize,
) -> Result<Option<Pair<'g, T>>, LayoutError> {
    if ranks.size() < 2 {
        return Ok(None);
    }
    let Some(pair) = ranks.split((ranks.rank() < 2).then_some(0)) else {
        return Ok(None);
    };
    let communicator = match gpu.way {
        Way::Peer | Way::Nccl => Some(gpu.communicator(Line::All(2), |nccl| join(nccl, &pair))?),
        Way::Mpi | Way::Pinned => None,
    };
    let peer = match gpu.way {
        Way::Peer => Some(peer(&pair, gpu, longest)?),
        Way::Nccl | Way::Mpi | Way::Pinned => None,
    };
    Ok(Some(Pair {
        ranks: pair,
        communicator,
        peer,
    }))
}

/// Lets rank 1 read so many elements of rank 0's GPU.
fn peer<'g, T: Element>(
    pair: &Ranks,
    gpu: &'g Gpu,
    elements: usize,
) -> Result<Peer<'g, T>, DeviceError> {
    let kept = match pair.rank() {
        0 => Some(gpu.room::<T>(elements)?),
        _ => None,
    };
    let exported = match &kept {
        Some(room) => gpu.peers().export(room.part(1, elements).start)?,
        None => Exported::default(),
    };
    let words = pair.all_gather(&exported.words());
    let of_first = words.first_chunk().map(Exported::from_words);
    Ok(match kept {
        Some(room) => Peer::Kept(room),
        None => Peer::Opened(gpu.peers().open(&of_first.unwrap_or_default())?),
    })
}

/// Elements as benchmarks multiply them: what a GPU's clock does depends on their bits.
fn random<T: Element>(shape: Shape) -> Result<Vec<T>, LayoutError> {
    let [rows, columns] = [shape.m.max(shape.n), shape.k].map(|size| size.clamp(1, RANDOM));
    let shape = Shape::new(rows, 0, columns);
    let (layout, one) = (Layout::compact(shape), T::from_integer(1));
    let problem = Problem::random(shape, layout, Data::Normal, 1, one, T::default());
    let a = problem.map_err(LocalError::from)?.a;
    Ok(a.elements().to_vec())
}

struct Measuring<'a, T> {
    ranks: &'a Ranks,
    gpu: &'a Gpu,
    pair: Option<Pair<'a, T>>,
    /// Elements that are copied or sent at most, and those of a row.
    longest: usize,
    row: usize,
    random: Vec<T>,
    /// Memory of the host, and for columns that are copied together.
    host: Vec<T>,
    /// How many parts have been copied from there.
    uploads: usize,
    buffer: Vec<T>,
}

/// What is copied or sent.
#[derive(Clone, Copy)]
struct Part {
    rows: usize,
    columns: usize,
    /// Of the matrix that it is cut from.
    of_columns: usize,
}

impl Part {
    fn elements(self) -> usize {
        self.rows * self.columns
    }

    /// The part of that number: each lies beside the one before, as panels of a matrix do, as long
    /// as there is room.
    fn of<T>(self, matrix: &[T], number: usize) -> View<'_, T> {
        let step = match self.columns == self.of_columns {
            true => self.elements(),
            false => self.columns,
        };
        let span = (self.rows - 1) * self.of_columns + self.columns;
        let places = (matrix.len() - span) / step + 1;
        let first = number % places * step;
        View::new(&matrix[first..], self.rows, self.columns, self.of_columns)
    }

    /// Two halves, which lie one after the other.
    fn halves(self) -> [Piece; 2] {
        let Part { rows, columns, .. } = self;
        let (of_rows, of_columns) = (rows / 2, columns / 2);
        let piece = |first, rows, columns| Piece {
            first,
            rows,
            columns,
        };
        match of_rows {
            0 => [
                piece(0, 1, of_columns),
                piece(of_columns, 1, columns - of_columns),
            ],
            _ => [
                piece(0, of_rows, columns),
                piece(of_rows * columns, rows - of_rows, columns),
            ],
        }
    }

    /// All of it, received as a compact matrix.
    fn piece(self) -> Piece {
        Piece {
            first: 0,
            rows: self.rows,
            columns: self.columns,
        }
    }
}

/// What is timed.
type Work<'a, T> = fn(&mut Measuring<'a, T>, Part) -> Result<(), LayoutError>;

impl<'a, T: Element> Measuring<'a, T> {
    fn all(
        mut self,
        case: &Case,
        moves: &[Moves],
        products: &[LocalShape],
    ) -> Result<Gpus, LayoutError> {
        // Elements one after the other, and each kind of strips.
        let each = |strips: &dyn Fn(&Moves) -> Vec<Strip>| {
            let mut each: Vec<Option<Strip>> = vec![None];
            for strip in moves.iter().flat_map(strips) {
                let is_apart = strip.columns > 0 && strip.columns < strip.of_columns;
                if is_apart && !each.contains(&Some(strip)) {
                    each.push(Some(strip));
                }
            }
            each
        };
        let uploads = each(&|moves| moves.uploads.clone());
        // Copies know bytes alone, so elements of C count as more of those of A.
        let of_sum = of_sum::<T>();
        let in_elements_of_a = |strip: &Strip| Strip {
            columns: strip.columns * of_sum,
            of_columns: strip.of_columns * of_sum,
        };
        let fetches = each(&|moves| moves.fetches.iter().map(in_elements_of_a).collect());
        let broadcasts = each(&|moves| Vec::from_iter(moves.broadcasts));
        let columns = each(&|moves| Vec::from_iter(moves.panels));
        let has_panels = moves.iter().any(|moves| moves.panels.is_some());
        let is_broadcast = moves.iter().any(|moves| moves.broadcasts.is_some());
        let is_one = self.ranks.size() < 2;
        let mut gpus = Gpus {
            way: self.gpu.way,
            copy_threads: self.gpu.copy_threads,
            ..Gpus::default()
        };
        for strip in uploads {
            gpus.uploads.extend(self.sizes(strip, Self::upload)?);
        }
        for strip in fetches {
            gpus.fetches.extend(self.sizes(strip, Self::fetch)?);
        }
        if !is_one {
            gpus.parts = self.sizes(None, Self::send_parts)?;
            if has_panels && !self.gpu.way.has_nccl() {
                gpus.rows = self.sizes(None, Self::send_rows)?;
                for strip in columns {
                    gpus.columns.extend(self.sizes(strip, Self::send_columns)?);
                }
            }
            for strip in broadcasts.into_iter().filter(|_| is_broadcast) {
                gpus.broadcasts.extend(self.sizes(strip, Self::broadcast)?);
            }
        }
        let mut is_beside = false;
        for product in products {
            let timed = self.multiply(product, case)?;
            if product.is_panel && !product.adds && !is_one {
                let columns = self.columns(product.shape, case);
                let hidden = self.hidden(product, case, columns, Self::broadcast)?;
                gpus.hidden_columns = Some(hidden);
            }
            if product.adds && !is_beside && !is_one {
                is_beside = true;
                // The panel of B.
                let Shape { n, k, .. } = product.shape;
                let rows = self.together((k * n).min(self.longest));
                if has_panels {
                    let travel = match self.gpu.way.has_nccl() {
                        true => Self::send_parts,
                        false => Self::send_rows,
                    };
                    gpus.hidden = Some(self.hidden(product, case, rows, travel)?);
                }
                if is_broadcast {
                    gpus.hidden_broadcasts =
                        Some(self.hidden(product, case, rows, Self::broadcast)?);
                }
            }
            let Shape { m, n, k } = product.shape;
            gpus.products.push(ResidentProduct {
                m,
                n,
                k,
                adds: product.adds,
                seconds: timed,
            });
        }
        self.gpu.peers().close(self.ranks);
        Ok(gpus)
    }

    /// Times `work` for several numbers of elements: one after the other, or strips.
    fn sizes(
        &mut self,
        strip: Option<Strip>,
        work: Work<'a, T>,
    ) -> Result<Vec<Copied>, LayoutError> {
        let mut timed = Vec::new();
        let mut elements = SMALLEST;
        loop {
            let part = match strip {
                None => self.together(elements),
                // At least two rows, and no more than there is memory for.
                Some(Strip {
                    columns,
                    of_columns,
                }) => Part {
                    rows: (elements / columns).min(self.longest / of_columns).max(2),
                    columns,
                    of_columns,
                },
            };
            if part.rows * part.of_columns <= self.longest {
                let ranks = self.ranks;
                let seconds = slowest(ranks, TIMES, || work(self, part))?;
                let bytes = (part.rows * part.columns * size_of::<T>()) as f64;
                let row_bytes = strip.map(|strip| (strip.columns * size_of::<T>()) as f64);
                // Strips of few rows come several times.
                if timed.last().is_none_or(|last: &Copied| last.bytes < bytes) {
                    timed.push(Copied {
                        row_bytes,
                        bytes,
                        seconds,
                    });
                }
            }
            if elements >= self.longest {
                return Ok(timed);
            }
            elements = (4 * elements).min(self.longest);
        }
    }

    /// About so many elements one after the other, in rows as long as those of a matrix.
    fn together(&self, elements: usize) -> Part {
        let columns = elements.min(self.row);
        Part {
            rows: elements / columns,
            columns,
            of_columns: columns,
        }
    }

    /// The columns of B that are a panel, beside fewer others if there is no memory for all, and
    /// as tall as there is.
    fn columns(&self, product: Shape, case: &Case) -> Part {
        let Shape { n, k, .. } = product;
        // A panel alone would be contiguous.
        let least = case.shape.n.min(n + 64);
        let of_columns = (self.longest / k).clamp(least, case.shape.n);
        Part {
            rows: k.min(self.longest / of_columns).max(1),
            columns: n,
            of_columns,
        }
    }

    /// Rank 0 copies a part to its GPU, each time another one: a layout's next panel is in no
    /// cache.
    fn upload(&mut self, part: Part) -> Result<(), LayoutError> {
        if self.ranks.rank() != 0 {
            return Ok(());
        }
        let room = self.gpu.room(part.elements())?;
        let to = room.part(part.rows, part.columns);
        // SAFETY: the host's memory is borrowed, and the copy is waited for.
        unsafe { self.gpu.upload(part.of(&self.host, self.uploads), to)? };
        self.uploads += 1;
        Ok(self.gpu.finish_copies()?)
    }

    /// All ranks copy a part from their GPUs.
    fn fetch(&mut self, part: Part) -> Result<(), LayoutError> {
        let room = self.gpu.room::<T>(part.elements())?;
        let target = ViewMut::new(&mut self.host, part.rows, part.columns, part.of_columns);
        let from = room.part(part.rows, part.columns);
        Ok(self.gpu.download(from, target)?)
    }

    /// Rank 0 sends one message of two parts to rank 1's GPU (`parts.rs`).
    fn send_parts(&mut self, part: Part) -> Result<(), LayoutError> {
        let gpu = self.gpu;
        let halves = part.halves();
        let Some(pair) = &self.pair else {
            return Ok(());
        };
        let is_first = self.ranks.rank() == 0;
        if let Some(communicator) = &pair.communicator {
            let room = gpu.room::<T>(part.elements())?;
            gpu.nccl().group(|| {
                halves.into_iter().try_for_each(|half| {
                    let half = room.part_at(half.first, half.rows, half.columns);
                    match is_first {
                        true => send(communicator, gpu, half, 1),
                        false => receive(communicator, gpu, half, 0),
                    }
                })
            })?;
            return Ok(gpu.finish_copies()?);
        }
        if is_first {
            let halves = halves.map(|half| {
                View::new(
                    &self.host[half.first..],
                    half.rows,
                    half.columns,
                    half.columns,
                )
            });
            pair.ranks.start_send(&halves, 1).wait();
            return Ok(());
        }
        self.receive_by_mpi(pair, &halves)
    }

    /// Rank 0 sends rows of B to rank 1's GPU by MPI.
    fn send_rows(&mut self, part: Part) -> Result<(), LayoutError> {
        let Some(pair) = &self.pair else {
            return Ok(());
        };
        if self.ranks.rank() == 0 {
            pair.ranks.start_send(&[part.of(&self.host, 0)], 1).wait();
            return Ok(());
        }
        self.receive_by_mpi(pair, &[part.piece()])
    }

    /// Rank 0 copies columns of A together, and sends them to rank 1's GPU by MPI.
    fn send_columns(&mut self, part: Part) -> Result<(), LayoutError> {
        let Some(pair) = &self.pair else {
            return Ok(());
        };
        if self.ranks.rank() == 0 {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(buffer.len().max(part.elements()), T::default());
            let columns = part.of(&self.host, 0);
            let sent = pair.ranks.start_send_of_copy(columns, buffer, 1);
            self.buffer = sent.wait();
            return Ok(());
        }
        self.receive_by_mpi(pair, &[part.piece()])
    }

    /// Rank 1's side: into its GPU's memory, or by way of page-locked memory.
    fn receive_by_mpi(&self, pair: &Pair<'_, T>, pieces: &[Piece]) -> Result<(), LayoutError> {
        let gpu = self.gpu;
        let elements = pieces.iter().map(|piece| piece.rows * piece.columns).sum();
        let room = gpu.room::<T>(elements)?;
        let part = room.part(1, elements);
        if gpu.way == Way::Mpi {
            // SAFETY: the room is this function's alone until the message is there.
            unsafe { pair.ranks.start_receive_at(part.start, pieces, 0) }.wait();
            return Ok(());
        }
        let locked = gpu.locked::<T>(elements)?;
        // SAFETY: as above.
        unsafe { pair.ranks.start_receive_at(locked.start, pieces, 0) }.wait();
        // SAFETY: the message has filled it, and the copy is waited for.
        unsafe { gpu.copy_locked(locked.start, part, Direction::ToDevice)? };
        Ok(gpu.finish_copies()?)
    }

    /// Rank 0 broadcasts a part from its GPU to rank 1's, or rank 1 reads it there.
    fn broadcast(&mut self, part: Part) -> Result<(), LayoutError> {
        let Some(pair) = &self.pair else {
            return Ok(());
        };
        let gpu = self.gpu;
        match &pair.peer {
            Some(Peer::Kept(_)) => return Ok(()),
            Some(Peer::Opened(start)) => return self.read(*start, part),
            None => {}
        }
        let is_first = self.ranks.rank() == 0;
        let of_block = gpu.room::<T>(part.rows * part.of_columns)?;
        let own = of_block.part(part.rows, part.of_columns);
        let own = own.part(0..part.rows, 0..part.columns);
        let room = gpu.room::<T>(part.elements())?;
        let packed = room.part(part.rows, part.columns);
        self.start_broadcast(pair, own, packed)?;
        if gpu.way == Way::Nccl {
            return Ok(gpu.finish_copies()?);
        }
        if gpu.way == Way::Mpi {
            // SAFETY: the room is this function's alone until the message is there.
            let mut request = unsafe {
                let start = packed.start;
                pair.ranks
                    .start_broadcast_at(0, start, part.rows, part.columns)
            };
            request.wait();
            return Ok(());
        }
        let locked = gpu.locked::<T>(part.elements())?;
        if is_first {
            // SAFETY: nothing else uses either, and the copy is waited for.
            unsafe { gpu.copy_locked(locked.start, own, Direction::ToHost)? };
            gpu.finish_copies()?;
        }
        // SAFETY: the memory is this function's alone until the message is there.
        let mut request = unsafe {
            let start = locked.start;
            pair.ranks
                .start_broadcast_at(0, start, part.rows, part.columns)
        };
        request.wait();
        if !is_first {
            // SAFETY: as above.
            unsafe { gpu.copy_locked(locked.start, packed, Direction::ToDevice)? };
            gpu.finish_copies()?;
        }
        Ok(())
    }

    /// Copies a part from rank 0's GPU.
    fn read(&self, start: *mut T, part: Part) -> Result<(), LayoutError> {
        let block = OnGpu::compact(start, part.rows, part.of_columns);
        let room = self.gpu.room::<T>(part.elements())?;
        let from = block.part(0..part.rows, 0..part.columns);
        // SAFETY: rank 0 keeps `longest` elements, and nothing writes them; nothing else uses the
        // room, and the copy is waited for.
        unsafe { self.gpu.pack(from, room.part(part.rows, part.columns))? };
        Ok(self.gpu.finish_copies()?)
    }

    /// What stands before MPI's broadcast, or NCCL's: rank 0 packs a part whose rows lie apart.
    fn start_broadcast(
        &self,
        pair: &Pair<'_, T>,
        own: OnGpu<T>,
        packed: OnGpu<T>,
    ) -> Result<(), LayoutError> {
        let gpu = self.gpu;
        let is_first = self.ranks.rank() == 0;
        let packs = is_first && !own.is_compact() && gpu.way != Way::Pinned;
        if packs {
            // SAFETY: nothing else uses either until the copies are waited for.
            unsafe { gpu.pack(own, packed)? };
        }
        if let Some(communicator) = &pair.communicator {
            let stream = gpu.copies().as_inner().cast();
            let (start, count) = (packed.start, packed.elements());
            // SAFETY: the room lives until the copies have been waited for; nothing else uses it.
            unsafe { communicator.broadcast(start.cast_const(), start, count, 0, stream)? };
        } else if packs {
            gpu.finish_copies()?;
        }
        Ok(())
    }

    /// Room on the GPU, filled with random elements.
    fn operand(&self, rows: usize, columns: usize) -> Result<Room<'a, T>, LayoutError> {
        let elements = rows * columns;
        let room = self.gpu.room::<T>(elements)?;
        for first in (0..elements).step_by(self.random.len()) {
            let length = self.random.len().min(elements - first);
            let from = View::new(&self.random, 1, length, length);
            // SAFETY: the elements are borrowed, and the copies are waited for.
            unsafe { self.gpu.upload(from, room.part_at(first, 1, length))? };
        }
        self.gpu.finish_copies()?;
        Ok(room)
    }

    /// The time of a product of this shape, one of many if it is a panel's.
    fn multiply(&self, product: &LocalShape, case: &Case) -> Result<f64, LayoutError> {
        let Shape { m, n, k } = product.shape;
        let (of_a, of_b) = (self.operand(m, k)?, self.operand(k, n)?);
        let (a, b) = (of_a.part(m, k), of_b.part(k, n));
        let launches = match (product.is_panel, product.adds) {
            (true, true) => (case.shape.k.div_ceil(k) - 1).clamp(1, PANELS),
            (true, false) => (case.shape.n / n).clamp(1, PANELS),
            (false, _) => 1,
        };
        // A panel's product adds to the one before it, or is beside it.
        let step = if product.adds { 0 } else { n };
        let mut c = self
            .gpu
            .block_of_c::<T::Sum>(m, n + (launches - 1) * step)?;
        let mut once = || {
            if !product.adds {
                c.start_again();
            }
            for launch in 0..launches {
                let columns = launch * step..launch * step + n;
                // SAFETY: A and B live until the product has been waited for.
                unsafe { self.gpu.multiply(a, b, &mut c, columns)? };
            }
            Ok::<(), LayoutError>(self.gpu.wait_for(&c)?)
        };
        once()?;
        let first = slowest(self.ranks, 1, &mut once)?;
        // The same on all ranks.
        let times = (BUDGET_S / first.max(1e-9)) as usize;
        let seconds = match times.min(TIMES) {
            0 | 1 => first,
            times => slowest(self.ranks, times, &mut once)?,
        };
        Ok(seconds / launches as f64)
    }

    /// Which part of the shorter of a panel's product and a message the longer one hides. The
    /// message travels as a panel does: while a product runs, and not before the last one is done.
    fn hidden(
        &mut self,
        product: &LocalShape,
        case: &Case,
        message: Part,
        travel: Work<'a, T>,
    ) -> Result<f64, LayoutError> {
        let Shape { m, n, k } = product.shape;
        let (ranks, gpu) = (self.ranks, self.gpu);
        let travelling = slowest(ranks, TIMES, || travel(self, message))?;
        let (of_a, of_b) = (self.operand(m, k)?, self.operand(k, n)?);
        let (a, b) = (of_a.part(m, k), of_b.part(k, n));
        // C has no room for more columns than the layout's.
        let places = match product.adds {
            true => 1,
            false => (case.shape.n / n).clamp(1, STEPS),
        };
        let mut c = gpu.block_of_c::<T::Sum>(m, places * n)?;
        let mut steps = |travels: bool| {
            slowest(ranks, TIMES, || {
                let mut before = None;
                for step in 0..STEPS {
                    let place = step % places;
                    if place == 0 && !product.adds {
                        c.start_again();
                    }
                    let columns = place * n..(place + 1) * n;
                    // SAFETY: A and B live until the products have been waited for.
                    unsafe { gpu.multiply(a, b, &mut c, columns)? };
                    let launched = gpu.multiplied()?;
                    let before = before.replace(launched);
                    if travels {
                        before.map_or(Ok(()), |before| gpu.copies_wait_for(before))?;
                        travel(self, message)?;
                        gpu.products_wait_for_copies()?;
                    }
                }
                Ok::<(), LayoutError>(gpu.wait_for(&c)?)
            })
        };
        let multiplying = steps(false)? / STEPS as f64;
        let together = steps(true)? / STEPS as f64;
        let saved = multiplying + travelling - together;
        let shorter = multiplying.min(travelling);
        Ok(match shorter > 0.0 {
            true => (saved / shorter).clamp(0.0, 1.0),
            false => 1.0,
        })
    }
}
