//! Consecutive columns of C that one kernel computes, and the launches for them.

use gpu_kernels::fix_up;
use gpu_kernels::spec::{ElementType, Grid, Major, Rounding, Variant};
use gpu_kernels::stream_k::StreamK;

use super::bands::{MOST_CTAS_Z, TooLarge, bands};
use super::decomposition::{Decomposition, splits, tiles};
use super::operand_copy::{OperandCopy, View, copy};
use crate::call::{Batch, Call, Factor, MatrixLayout, Shape, extent_of};
use crate::launch::{Address, Argument, Launch, Map, Memory, Waits};

/// Bytes of a row of a box that the copy engine moves
/// ([`Staging::Ring`](gpu_kernels::spec::Staging::Ring)).
const BOX_ROW_BYTES: usize = 128;

/// Tiles that persistent CTAs count at most, in 32 bits.
const MOST_TILES: usize = u32::MAX as usize / 2;

/// Some of a batch's products, which follow each other.
struct Part {
    first: usize,
    batch: Batch,
}

/// Consecutive columns of C, and the kernel that computes them.
#[derive(Clone, Debug)]
pub struct Panel {
    variant: &'static Variant,
    /// The product that it computes: the call with its own columns only, or the transposed one.
    call: Call,
    is_transposed: bool,
    first_column: usize,
    /// The copies that the kernel reads, of A and of B.
    a_copy: Option<OperandCopy>,
    b_copy: Option<OperandCopy>,
    /// Whether the copy of A is the previous panel's.
    shares_a: bool,
    /// CTAs that fit the GPU at once.
    ctas: u32,
    decomposition: Option<Decomposition>,
    is_split: bool,
    is_one_launch: bool,
    /// Where the partial sums begin in the workspace, and where the workspace ends.
    partials_offset: usize,
    workspace_bytes: usize,
}

/// Whether one launch of a kernel can compute all products of a call, which is a batch. Operand
/// copies are made for one product after the other.
pub(crate) fn takes_batch(variant: &Variant, call: &Call) -> bool {
    let copies = |factor| copy(factor, variant, call, 0).is_none_or(|(copy, _)| copy.is_some());
    call.batch.count > 1
        && variant.takes_batches()
        && ![Factor::A, Factor::B].into_iter().any(copies)
}

impl Panel {
    /// The columns of `call`, the first of which is `first_column` of C; `a_copy` is the previous
    /// panel's copy of A, in the same layout. `None` if the copies would be larger than any
    /// memory.
    pub(super) fn new(
        variant: &'static Variant,
        call: Call,
        first_column: usize,
        decomposition: Decomposition,
        a_copy: Option<OperandCopy>,
    ) -> Option<Panel> {
        let (call, is_transposed) = call.computed_by(variant);
        let (own_a_copy, offset) = copy(Factor::A, variant, &call, 0)?;
        let (b_copy, partials_offset) = copy(Factor::B, variant, &call, offset)?;
        let mut panel = Panel {
            ctas: decomposition.ctas,
            variant,
            call,
            is_transposed,
            first_column,
            a_copy: own_a_copy,
            b_copy,
            shares_a: own_a_copy.is_some() && own_a_copy == a_copy,
            decomposition: None,
            is_split: false,
            is_one_launch: takes_batch(variant, &call),
            partials_offset,
            workspace_bytes: partials_offset,
        };
        if variant.grid.is_stream_k() && !call.shape.is_empty() {
            let tiles = tiles(call.shape, variant.tile).saturating_mul(panel.together().count);
            let is_persistent = variant.grid == Grid::PersistentStreamK;
            let decomposition = match (is_persistent, panel.is_one_launch) {
                (true, true) if decomposition == Decomposition::DATA_PARALLEL => {
                    Decomposition::rounds(tiles, u32::MAX)
                }
                // The products of a batch fill the GPU: no tile is split.
                (false, true) => Decomposition::DATA_PARALLEL,
                _ => decomposition,
            };
            let rounds = is_persistent && decomposition.is_rounds(tiles);
            // Persistent CTAs that split tiles do so for one product after the other.
            panel.is_one_launch &= rounds || !is_persistent;
            let decomposition = match rounds {
                true => decomposition,
                false => decomposition.limited(call.shape, variant.tile),
            };
            panel.decomposition = Some(decomposition);
            panel.is_split = splits(&decomposition.of(call.shape, variant.tile));
            if panel.is_split {
                let workspace_tiles = 2 * decomposition.ctas as usize;
                let bytes = workspace_tiles.checked_mul(panel.tile_bytes())?;
                panel.workspace_bytes = partials_offset.checked_add(bytes)?;
            }
        }
        Some(panel)
    }

    /// The kernel.
    pub fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// The product that it computes: its own columns of C only, or the transposed product.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Whether it computes the transposed product, `C^T = B^T * A^T`: few columns of C are few rows
    /// of that.
    pub fn is_transposed(&self) -> bool {
        self.is_transposed
    }

    /// What is A or B to the kernel, as the caller names it.
    pub fn as_called(&self, factor: Factor) -> Factor {
        match (factor, self.is_transposed) {
            (Factor::A, true) => Factor::B,
            (Factor::B, true) => Factor::A,
            (factor, false) => factor,
        }
    }

    /// Its first column in C.
    pub fn first_column(&self) -> usize {
        self.first_column
    }

    /// The copies to make for it, in this order.
    pub fn copies(&self) -> impl Iterator<Item = OperandCopy> + use<> {
        let a_copy = self.a_copy.filter(|_| !self.shares_a);
        a_copy.into_iter().chain(self.b_copy)
    }

    /// The copy of A or B that the kernel reads, if it does not read the matrix itself.
    pub fn copy_of(&self, factor: Factor) -> Option<OperandCopy> {
        match factor {
            Factor::A => self.a_copy,
            Factor::B => self.b_copy,
        }
    }

    /// How the CTAs of a stream-K kernel divide the tiles; `None` for other kernels, and for an
    /// empty C.
    pub fn decomposition(&self) -> Option<Decomposition> {
        self.decomposition
    }

    /// The same, in the form that the kernel takes.
    pub fn stream_k(&self) -> Option<StreamK> {
        let decomposition = self.decomposition?;
        Some(decomposition.of(self.call.shape, self.variant.tile))
    }

    /// Whether tiles are split among CTAs, so that a fix-up has to follow.
    pub fn is_split(&self) -> bool {
        self.is_split
    }

    /// The number of groups of threads, in each CTA of the fix-up, that divide the segments of a
    /// tile.
    pub fn fix_up_groups(&self) -> usize {
        let split = self.stream_k().filter(|_| self.is_split);
        split.map_or(1, |stream_k| {
            fix_up::groups(self.tile_elements(), stream_k.max_segments())
        })
    }

    /// The number of tiles of C.
    pub fn tiles(&self) -> usize {
        tiles(self.call.shape, self.variant.tile)
    }

    /// The k-iterations of a tile.
    pub fn k_iterations(&self) -> usize {
        self.call.shape.k.div_ceil(self.variant.tile.k as usize)
    }

    /// The bytes of workspace that it needs.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Whether one launch computes all products of a batch.
    pub fn is_one_launch(&self) -> bool {
        self.is_one_launch
    }

    fn tile_elements(&self) -> usize {
        (self.variant.tile.m * self.variant.tile.n) as usize
    }

    fn tile_bytes(&self) -> usize {
        self.tile_elements() * self.variant.types.accumulator.bytes()
    }

    /// Adds its launches. `product` is the call whose columns these are.
    pub(super) fn add_launches(
        &self,
        product: &Call,
        launches: &mut Vec<Launch>,
    ) -> Result<(), TooLarge> {
        for copy in self.copies() {
            launches.push(copy.launch(self.stored(copy.factor, product)));
        }
        let [a, b] = [Factor::A, Factor::B].map(|factor| match self.copy_of(factor) {
            Some(copy) => copy.view(),
            None => self.stored(factor, product),
        });
        if self.variant.grid.is_mapped() {
            return self.add_mapped_launch(a, b, launches);
        }
        let Some(decomposition) = self.decomposition else {
            for band in bands(self.variant, self.call.shape)? {
                let skipped = band.first_row.saturating_mul(a.leading);
                let a = a.after(skipped, self.variant.types.a);
                let arguments = self.gemm_arguments([band.first_row, 0], band.rows, a, b);
                self.add_launches_of_batch(band.grid, arguments, Waits::ForTheStream, launches);
            }
            return Ok(());
        };
        let arguments = self.gemm_arguments([0, 0], self.call.shape.m, a, b);
        let grid = (decomposition.ctas, decomposition.data_parallel_waves + 1);
        // A launch that follows another one of the same product begins early, and waits in the
        // kernel. So does a matrix-vector kernel after whatever else is on the stream: it saves
        // 1.2 us of 30. Other kernels would take their places on SMs unevenly (docs/src/tuning.md).
        let follows = self.first_column > 0 || self.copies().next().is_some();
        let waits = match follows || self.variant.gemv_like {
            true => Waits::InTheKernel,
            false => Waits::ForTheStream,
        };
        self.add_launches_of_batch(grid, arguments, waits, launches);
        launches.extend(self.fix_up_launch());
        Ok(())
    }

    /// The first of its columns of C, from this row on.
    fn c(&self, row: usize) -> Address {
        let elements = row
            .wrapping_mul(self.call.ldc)
            .wrapping_add(self.first_column);
        let bytes = elements.wrapping_mul(self.variant.types.c.bytes());
        Memory::C.start().after(bytes)
    }

    /// A, or its columns of B, as stored.
    fn stored(&self, factor: Factor, product: &Call) -> View {
        let operand = self.call.operand(factor);
        let leading = operand.leading;
        let called = self.as_called(factor);
        let view = |memory: Memory| View {
            address: memory.start(),
            extent: product.extent(called),
            leading,
        };
        match called {
            Factor::A => view(Memory::A),
            Factor::B => {
                let (row, column) = operand.transpose.of((0, self.first_column));
                let skipped = row.saturating_mul(leading).saturating_add(column);
                view(Memory::B).after(skipped, self.variant.types.b)
            }
        }
    }

    /// From a row of what the kernel computes to the next, in C, and from a column to the next.
    fn strides_of_c(&self) -> [usize; 2] {
        match self.is_transposed {
            true => [1, self.call.ldc],
            false => [self.call.ldc, 1],
        }
    }

    /// A [`Gemm`](gpu_kernels::gemm::Gemm), for `rows` rows of C from a row of a product on.
    fn gemm_arguments(
        &self,
        [row, product]: [usize; 2],
        rows: usize,
        a: View,
        b: View,
    ) -> Vec<Argument> {
        let Shape { n, k, .. } = self.call.shape;
        let [stride_a, stride_b, stride_c] = self.together().strides;
        let [row_stride, column_stride] = self.strides_of_c();
        let mut arguments = vec![
            Argument::Count(rows),
            Argument::Count(n),
            Argument::Count(k),
            Argument::Alpha,
            Argument::Slice(a.address, a.extent),
            Argument::Count(a.leading),
            Argument::Slice(b.address, b.extent),
            Argument::Count(b.leading),
            Argument::Beta,
            Argument::Pointer(self.moved(self.c(row), product)),
            Argument::Count(row_stride),
            Argument::Count(stride_a),
            Argument::Count(stride_b),
            Argument::Count(stride_c),
            Argument::Pointer(self.partials()),
            Argument::Count(column_stride),
        ];
        if let Some(bytes) = self.variant.epilogue_bytes {
            let first = [row, self.first_column, product];
            arguments.push(Argument::Epilogue { first, bytes });
        }
        arguments
    }

    /// Adds the launches of a kernel for all products of the batch, or for the first if the others
    /// follow one by one. A grid has at most [`MOST_CTAS_Z`] CTAs along z, one for each product.
    fn add_launches_of_batch(
        &self,
        grid: (u32, u32),
        arguments: Vec<Argument>,
        waits: Waits,
        launches: &mut Vec<Launch>,
    ) {
        let of_one = self.launch(grid, arguments, waits);
        for part in self.parts(MOST_CTAS_Z as usize) {
            let arguments = of_one.arguments.iter().map(|argument| match *argument {
                Argument::Slice(address, extent) => {
                    let (stride, _) = self.stride(address.memory);
                    let extent = extent_of(part.batch.count, stride, extent);
                    Argument::Slice(self.moved(address, part.first), extent)
                }
                Argument::Pointer(address) => Argument::Pointer(self.moved(address, part.first)),
                Argument::Epilogue {
                    first: [row, column, product],
                    bytes,
                } => Argument::Epilogue {
                    first: [row, column, product + part.first],
                    bytes,
                },
                other => other,
            });
            launches.push(Launch {
                products: part.batch.count as u32,
                arguments: arguments.collect(),
                ..of_one.clone()
            });
        }
    }

    /// The products that a launch computes together, up to `most`; the first alone if the others
    /// follow one by one.
    fn parts(&self, most: usize) -> impl Iterator<Item = Part> {
        let batch = self.together();
        (0..batch.count).step_by(most).map(move |first| Part {
            first,
            batch: Batch {
                count: (batch.count - first).min(most),
                ..batch
            },
        })
    }

    /// The products that are computed together. Strides to others would only tell a kernel that
    /// their rows may not be aligned.
    fn together(&self) -> Batch {
        match self.is_one_launch {
            true => self.call.batch,
            false => Batch::ONE,
        }
    }

    /// From a product's part of a memory to that of the next, in elements of a type.
    fn stride(&self, memory: Memory) -> (usize, ElementType) {
        let ([a, b, c], types) = (self.call.batch.strides, self.variant.types);
        let [a, b] = if self.is_transposed { [b, a] } else { [a, b] };
        match memory {
            Memory::A => (a, types.a),
            Memory::B => (b, types.b),
            Memory::C => (c, types.c),
            Memory::Workspace => (0, types.accumulator),
        }
    }

    /// The same place of a later product.
    fn moved(&self, address: Address, product: usize) -> Address {
        let (stride, element) = self.stride(address.memory);
        address.after(product.wrapping_mul(stride).wrapping_mul(element.bytes()))
    }

    /// Adds the launches of a kernel whose tiles the copy engine brings. Persistent CTAs divide the
    /// tiles of all products of a launch.
    fn add_mapped_launch(
        &self,
        a: View,
        b: View,
        launches: &mut Vec<Launch>,
    ) -> Result<(), TooLarge> {
        if bands(self.variant, self.call.shape)?.is_empty() {
            return Ok(());
        }
        for part in self.parts((MOST_TILES / self.tiles()).max(1)) {
            launches.push(self.mapped_launch(a, b, part));
        }
        launches.extend(self.fix_up_launch());
        Ok(())
    }

    /// The launch of some products by a kernel whose tiles the copy engine brings.
    fn mapped_launch(&self, a: View, b: View, part: Part) -> Launch {
        let (variant, Shape { m, n, k }) = (self.variant, self.call.shape);
        let (tile, stored) = (variant.tile, [a, b]);
        let rounds = variant.rounding == Rounding::Tf32;
        let map = |view: View, element: ElementType, (rows, columns), box_rows: u32| {
            let (stride, _) = self.stride(view.address.memory);
            Argument::Map(Map {
                address: self.moved(view.address, part.first),
                element,
                rounds_to_tf32: rounds && view.address.memory != Memory::C,
                layout: MatrixLayout::one((rows, columns), view.leading)
                    .batched(part.batch.count, stride),
                box_rows: box_rows as usize,
                box_columns: BOX_ROW_BYTES / element.bytes(),
            })
        };
        // Boxes of C are square.
        let rows_of_c = (BOX_ROW_BYTES / variant.types.c.bytes()) as u32;
        let c = View {
            address: self.c(0),
            extent: 0,
            leading: self.call.ldc,
        };
        let (a, b, scales) = match variant.splits_operands {
            true => {
                // Without a depth nothing is split, and nothing is read.
                let split = |factor: Factor, stored: View, rows: usize| {
                    let copy = self.copy_of(factor);
                    let view = copy.map_or(stored, |copy| copy.view());
                    let columns = copy.map_or(0, |copy| copy.view().leading);
                    map(view, ElementType::F16, (rows, columns), tile.m)
                };
                let scales = [Factor::A, Factor::B].map(|factor| match self.copy_of(factor) {
                    Some(copy) => Argument::Pointer(copy.scales()),
                    None => Argument::Count(0),
                });
                (split(Factor::A, a, m), split(Factor::B, b, n), scales)
            }
            false => {
                let a = match variant.a.major {
                    Major::K => map(a, variant.types.a, (m, k), tile.m),
                    Major::Mn => map(a, variant.types.a, (k, m), tile.k),
                };
                let b = match variant.b.major {
                    Major::K => map(b, variant.types.b, (n, k), tile.n),
                    Major::Mn => map(b, variant.types.b, (k, n), tile.k),
                };
                (a, b, [Argument::Count(0); 2])
            }
        };
        let stream_k = self.stream_k();
        // A `MappedBlock`: A and B are read through the maps alone.
        let [stored_a, stored_b] = stored.map(|view| View { extent: 0, ..view });
        let mut arguments = vec![a, b, map(c, variant.types.c, (m, n), rows_of_c)];
        arguments.extend(self.gemm_arguments([0, part.first], m, stored_a, stored_b));
        let waves = stream_k.map_or(0, |stream_k| stream_k.data_parallel_waves);
        arguments.extend([waves, part.batch.count].map(Argument::Count));
        arguments.extend(scales);
        let ctas = match stream_k {
            Some(stream_k) => stream_k.ctas,
            None => {
                let tiles = self.tiles().saturating_mul(part.batch.count);
                tiles.min(self.ctas as usize)
            }
        };
        self.launch((ctas as u32, 1), arguments, Waits::InTheKernel)
    }

    fn launch(&self, grid: (u32, u32), arguments: Vec<Argument>, waits: Waits) -> Launch {
        let variant = self.variant;
        Launch {
            kernel: variant.entry,
            grid,
            products: 1,
            block: (variant.block.x, variant.block.y),
            dynamic_shared_bytes: variant.dynamic_shared_bytes(self.call.shape.k),
            element: variant.types.a,
            arguments,
            waits,
        }
    }

    fn partials(&self) -> Address {
        Memory::Workspace.start().after(self.partials_offset)
    }

    /// The launch that adds up partial sums, if tiles are split.
    fn fix_up_launch(&self) -> Option<Launch> {
        let stream_k = self.stream_k().filter(|_| self.is_split)?;
        let m = self.call.shape.m;
        let tile = self.variant.tile;
        let groups = self.fix_up_groups();
        let ctas = self
            .tile_elements()
            .div_ceil(fix_up::elements_of_block(groups));
        let [tile_m, tile_n, tile_k] = [tile.m, tile.n, tile.k].map(|size| size as usize);
        let (waves, of_grid) = (stream_k.data_parallel_waves, stream_k.ctas);
        // A `FixUp`: A and B are not read.
        let none = View {
            address: Memory::C.start(),
            extent: 0,
            leading: 0,
        };
        let mut arguments = self.gemm_arguments([0, 0], m, none, none);
        arguments.extend([tile_m, tile_n, tile_k, of_grid, waves, groups].map(Argument::Count));
        Some(Launch {
            kernel: self.variant.fix_up?,
            grid: (ctas as u32, stream_k.stream_k_tiles() as u32),
            products: 1,
            block: (fix_up::THREADS as u32, 1),
            dynamic_shared_bytes: 0,
            element: self.variant.types.c,
            arguments,
            waits: Waits::InTheKernel,
        })
    }
}
