//! Consecutive columns of C that one kernel computes, and the launches for them.

use gpu_kernels::fix_up::{self, FIX_UP};
use gpu_kernels::spec::{Grid, Variant};
use gpu_kernels::stream_k::StreamK;

use super::bands::{TooLarge, bands};
use super::decomposition::{Decomposition, splits, tiles};
use super::operand_copy::{OperandCopy, copy};
use crate::call::{Call, Factor, Shape};
use crate::launch::{Address, Argument, Launch, Memory, Waits};

/// Consecutive columns of C, and the kernel that computes them.
#[derive(Clone, Debug)]
pub struct Panel {
    variant: &'static Variant,
    /// The product that it computes: the call with its own columns only.
    call: Call,
    first_column: usize,
    /// The copies that the kernel reads, of A and of B.
    a_copy: Option<OperandCopy>,
    b_copy: Option<OperandCopy>,
    /// Whether the copy of A is the previous panel's.
    shares_a: bool,
    decomposition: Option<Decomposition>,
    is_split: bool,
    /// Where the partial sums begin in the workspace, and where the workspace ends.
    partials_offset: usize,
    workspace_bytes: usize,
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
        let (own_a_copy, offset) = copy(Factor::A, variant, &call, 0)?;
        let (b_copy, partials_offset) = copy(Factor::B, variant, &call, offset)?;
        let mut panel = Panel {
            variant,
            call,
            first_column,
            a_copy: own_a_copy,
            b_copy,
            shares_a: own_a_copy.is_some() && own_a_copy == a_copy,
            decomposition: None,
            is_split: false,
            partials_offset,
            workspace_bytes: partials_offset,
        };
        if variant.grid == Grid::StreamK && !call.shape.is_empty() {
            let decomposition = decomposition.limited(call.shape, variant.tile);
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

    /// The product that it computes: its own columns of C only.
    pub fn call(&self) -> &Call {
        &self.call
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
        let of =
            |decomposition: Decomposition| decomposition.of(self.call.shape, self.variant.tile);
        self.decomposition.map(of)
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

    fn tile_elements(&self) -> usize {
        (self.variant.tile.m * self.variant.tile.n) as usize
    }

    fn tile_bytes(&self) -> usize {
        self.tile_elements() * self.variant.types.accumulator.bytes()
    }

    /// Adds its launches. `whole` is the call that it is a part of.
    pub(super) fn add_launches(
        &self,
        whole: &Call,
        launches: &mut Vec<Launch>,
    ) -> Result<(), TooLarge> {
        for copy in self.copies() {
            let (source, extent) = self.stored(copy.factor, whole);
            let leading = self.call.operand(copy.factor).leading;
            launches.push(copy.launch(source, extent, leading));
        }
        // A launch that follows another one of the same product begins early, and waits in the
        // kernel.
        let follows = self.first_column > 0 || self.copies().next().is_some();
        let [a, b] = [Factor::A, Factor::B].map(|factor| self.read(factor, whole));
        match self.decomposition {
            Some(decomposition) => {
                launches.push(self.stream_k_launch(decomposition, a, b, follows))
            }
            None => {
                for band in bands(self.variant, self.call.shape)? {
                    let skipped = band.first_row.saturating_mul(a.leading).min(a.extent);
                    let a = Read {
                        address: a
                            .address
                            .after(skipped.wrapping_mul(self.variant.types.a.bytes())),
                        extent: a.extent - skipped,
                        ..a
                    };
                    let c = self.c().after(
                        band.first_row
                            .wrapping_mul(self.call.ldc)
                            .wrapping_mul(self.variant.types.c.bytes()),
                    );
                    let arguments = self.gemm_arguments(band.rows, a, b, c);
                    launches.push(self.launch(band.grid, arguments, Waits::ForTheStream));
                }
            }
        }
        if let Some(stream_k) = self.stream_k().filter(|_| self.is_split) {
            launches.push(self.fix_up_launch(&stream_k));
        }
        Ok(())
    }

    /// The first element of its columns of C.
    fn c(&self) -> Address {
        Memory::C
            .start()
            .after(self.first_column.wrapping_mul(self.variant.types.c.bytes()))
    }

    /// Where A or B begins as stored, and its extent in elements.
    fn stored(&self, factor: Factor, whole: &Call) -> (Address, usize) {
        let operand = self.call.operand(factor);
        let (memory, skipped, element) = match factor {
            Factor::A => (Memory::A, 0, self.variant.types.a),
            Factor::B => {
                let (row, column) = operand.transpose.of((0, self.first_column));
                let skipped = row.saturating_mul(operand.leading).saturating_add(column);
                (Memory::B, skipped, self.variant.types.b)
            }
        };
        let extent = whole.extent(factor).saturating_sub(skipped);
        (
            memory.start().after(skipped.wrapping_mul(element.bytes())),
            extent,
        )
    }

    /// What the kernel reads as A or B: the matrix itself, or its copy.
    fn read(&self, factor: Factor, whole: &Call) -> Read {
        match self.copy_of(factor) {
            Some(copy) => Read {
                address: copy.address(),
                extent: copy.elements(),
                leading: copy.leading(),
            },
            None => {
                let (address, extent) = self.stored(factor, whole);
                Read {
                    address,
                    extent,
                    leading: self.call.operand(factor).leading,
                }
            }
        }
    }

    /// The parameters that all multiplying kernels share, for `rows` rows of C.
    fn gemm_arguments(&self, rows: usize, a: Read, b: Read, c: Address) -> Vec<Argument> {
        let Shape { n, k, .. } = self.call.shape;
        vec![
            Argument::Count(rows),
            Argument::Count(n),
            Argument::Count(k),
            Argument::Alpha,
            Argument::Slice(a.address, a.extent),
            Argument::Count(a.leading),
            Argument::Slice(b.address, b.extent),
            Argument::Count(b.leading),
            Argument::Beta,
            Argument::Pointer(c),
            Argument::Count(self.call.ldc),
        ]
    }

    fn launch(&self, grid: (u32, u32), arguments: Vec<Argument>, waits: Waits) -> Launch {
        let variant = self.variant;
        Launch {
            kernel: variant.entry,
            grid,
            block: (variant.block.x, variant.block.y),
            cluster: variant.cluster,
            dynamic_shared_bytes: variant.dynamic_shared_bytes(self.call.shape.k),
            arguments,
            waits,
        }
    }

    fn stream_k_launch(
        &self,
        decomposition: Decomposition,
        a: Read,
        b: Read,
        follows: bool,
    ) -> Launch {
        let mut arguments = self.gemm_arguments(self.call.shape.m, a, b, self.c());
        arguments.push(Argument::Pointer(self.partials()));
        let waits = match follows {
            true => Waits::InTheKernel,
            false => Waits::ForTheStream,
        };
        let grid = (decomposition.ctas, decomposition.data_parallel_waves + 1);
        self.launch(grid, arguments, waits)
    }

    fn partials(&self) -> Address {
        Memory::Workspace.start().after(self.partials_offset)
    }

    /// The launch that adds up partial sums.
    fn fix_up_launch(&self, stream_k: &StreamK) -> Launch {
        let Shape { m, n, k } = self.call.shape;
        let tile = self.variant.tile;
        let groups = self.fix_up_groups();
        let ctas = self
            .tile_elements()
            .div_ceil(fix_up::elements_of_block(groups));
        let counts = |counts: &[usize]| -> Vec<Argument> {
            counts.iter().copied().map(Argument::Count).collect()
        };
        let arguments = [
            counts(&[m, n, k]),
            vec![
                Argument::Alpha,
                Argument::Beta,
                Argument::Pointer(self.c()),
                Argument::Count(self.call.ldc),
                Argument::Pointer(self.partials()),
            ],
            counts(&[
                tile.m as usize,
                tile.n as usize,
                tile.k as usize,
                stream_k.ctas,
                stream_k.data_parallel_waves,
                groups,
            ]),
        ];
        Launch {
            kernel: FIX_UP,
            grid: (ctas as u32, stream_k.stream_k_tiles() as u32),
            block: (fix_up::THREADS as u32, 1),
            cluster: 1,
            dynamic_shared_bytes: 0,
            arguments: arguments.concat(),
            waits: Waits::InTheKernel,
        }
    }
}

/// An operand as the kernel reads it.
#[derive(Clone, Copy)]
struct Read {
    address: Address,
    /// The number of elements from the first to the last.
    extent: usize,
    leading: usize,
}
