//! The launches of a plan, one after the other.

use cuda_std::simulator::Launch;

use super::buffer::SharedPointer;
use super::{Product, Simulator};
use crate::blas::{Call, FIX_UP_BLOCK, PACK_BLOCK, Pack, Plan, Role, Transpose};
use crate::device::error::DeviceError;
use crate::device::launch::bands;
use crate::element::{Element, Entry, Helpers};
use crate::problem::Shape;

/// Matrices in the simulated GPU's memory, each with its leading dimension, and the workspace.
#[derive(Clone, Copy)]
pub(super) struct Matrices<'a, T> {
    pub a: (&'a [T], usize),
    pub b: (&'a [T], usize),
    pub c: (SharedPointer<T>, usize),
    pub workspace: SharedPointer<T>,
}

impl<T: Element> Matrices<'_, T> {
    /// What is left of them after the columns of C that `call` speaks of.
    fn after_columns_of(self, call: &Call) -> Self {
        let columns = call.shape.n;
        let ((b, ldb), (c, ldc)) = (self.b, self.c);
        let skipped = match call.b.transpose {
            Transpose::No => columns,
            Transpose::Yes => columns * ldb,
        };
        Matrices {
            b: (&b[skipped.min(b.len())..], ldb),
            c: (SharedPointer(c.get().wrapping_add(columns)), ldc),
            ..self
        }
    }
}

impl Simulator {
    /// Does what `plan` says.
    pub(super) fn launch_plan<T: Element>(
        &self,
        plan: &Plan<'_>,
        product: &Product<'_, T>,
        matrices: &Matrices<'_, T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<(), DeviceError> {
        let mut matrices = *matrices;
        for part in plan.parts() {
            let run = Running {
                simulator: self,
                plan: &part,
                product,
                matrices: &matrices,
                block_done,
            };
            for pack in part.packs() {
                run.pack(&pack)?;
            }
            run.multiply()?;
            run.fix_up()?;
            matrices = matrices.after_columns_of(part.call());
        }
        Ok(())
    }
}

/// A plan that is being run.
struct Running<'a, T> {
    simulator: &'a Simulator,
    plan: &'a Plan<'a>,
    product: &'a Product<'a, T>,
    matrices: &'a Matrices<'a, T>,
    block_done: &'a (dyn Fn() + Sync),
}

impl<T: Element> Running<'_, T> {
    fn launch(&self, launch: Launch, kernel: impl Fn() + Sync) -> Result<(), DeviceError> {
        let launch = (self.simulator.configure)(launch);
        let ran = launch.run_observed(kernel, self.block_done);
        let told = ran.map(|report| (self.simulator.report)(&report));
        told.map_err(|fault| DeviceError::Simulator {
            kernel: self.plan.variant().name.to_string(),
            fault,
        })
    }

    /// The kernels beside the one that multiplies; plans ask for none where there are none.
    fn helpers(&self) -> Helpers<T> {
        match T::HELPERS {
            Some(helpers) => helpers,
            None => unreachable!("a plan for {} copies or shares", T::TYPE),
        }
    }

    /// `offset` elements into the workspace.
    fn workspace(&self, offset: usize) -> SharedPointer<T> {
        SharedPointer(self.matrices.workspace.get().wrapping_add(offset))
    }

    fn stored(&self, role: Role) -> (&[T], usize) {
        match role {
            Role::A => self.matrices.a,
            Role::B => self.matrices.b,
        }
    }

    fn pack(&self, pack: &Pack) -> Result<(), DeviceError> {
        let helpers = self.helpers();
        let kernel = match pack.transposed {
            true => helpers.transpose,
            false => helpers.pad,
        };
        let (source, leading) = self.stored(pack.role);
        let target = self.workspace(pack.offset);
        let ((rows, columns), (target_rows, target_leading)) = (pack.source, pack.target);
        self.launch(Launch::new(pack.grid(), PACK_BLOCK), || {
            // SAFETY: the source is a matrix of `rows x columns`, the workspace has room for the copy, which nothing else touches
            // until the launch ends, and the launch has the shape that the plan gives.
            unsafe {
                kernel(
                    source,
                    rows,
                    columns,
                    leading,
                    target.get(),
                    target_rows,
                    target_leading,
                )
            }
        })
    }

    /// What the kernel reads in the place of A or B: the matrix itself, or its copy.
    fn operand(&self, role: Role) -> (&[T], usize) {
        match self.plan.packed(role) {
            None => self.stored(role),
            Some(pack) => {
                let start = self.workspace(pack.offset).get();
                // SAFETY: the copy has been made there, and nobody writes it again.
                let copy = unsafe { std::slice::from_raw_parts(start, pack.elements()) };
                (copy, pack.leading())
            }
        }
    }

    fn multiply(&self) -> Result<(), DeviceError> {
        let variant = self.plan.variant();
        let Some(entry) = T::function(variant) else {
            unreachable!("the caller has compared the types");
        };
        let Shape { m, k, .. } = self.product.shape();
        let n = self.plan.call().shape.n;
        let (alpha, beta) = (self.product.alpha, self.product.beta);
        let ((a, lda), (b, ldb)) = (self.operand(Role::A), self.operand(Role::B));
        let (c, ldc) = self.matrices.c;
        let block = (variant.block.x, variant.block.y);
        match entry {
            Entry::Gemm(function) => {
                let shared_bytes = variant.dynamic_shared_elements(k) as usize * size_of::<T>();
                for band in bands(variant, self.plan.call().shape)? {
                    let rows = &a[(band.first_row * lda).min(a.len())..];
                    let c = SharedPointer(c.get().wrapping_add(band.first_row * ldc));
                    let launch = Launch::new(band.grid, block).dynamic_shared_bytes(shared_bytes);
                    self.launch(launch, || {
                        // SAFETY: the slices end with A and B, `c` is valid for the band's rows of C, which nothing else
                        // touches until the launch ends, and the launch has the shape that the variant asks for.
                        unsafe {
                            function(
                                band.rows,
                                n,
                                k,
                                alpha,
                                rows,
                                lda,
                                b,
                                ldb,
                                beta,
                                c.get(),
                                ldc,
                            )
                        }
                    })?;
                }
                Ok(())
            }
            Entry::Streamed(function) => {
                let Some(grid) = self.plan.grid() else {
                    return Ok(());
                };
                let partials = self.workspace(self.plan.partials_offset());
                self.launch(Launch::new(grid, block), || {
                    // SAFETY: A and B are stored as the variant asks for it, C and the partial sums are valid, and nothing
                    // else touches them until the launch ends, whose shape is the plan's.
                    unsafe {
                        function(
                            m,
                            n,
                            k,
                            alpha,
                            a,
                            lda,
                            b,
                            ldb,
                            beta,
                            c.get(),
                            ldc,
                            partials.get(),
                        )
                    }
                })
            }
        }
    }

    fn fix_up(&self) -> Result<(), DeviceError> {
        let (Some(grid), Some(streams)) = (self.plan.fix_up_grid(), self.plan.streams()) else {
            return Ok(());
        };
        let kernel = self.helpers().fix_up;
        let Shape { m, n, k } = self.plan.call().shape;
        let tile = self.plan.variant().tile;
        let (c, ldc) = self.matrices.c;
        let partials = self.workspace(self.plan.partials_offset());
        self.launch(Launch::new(grid, FIX_UP_BLOCK), || {
            // SAFETY: C is valid, nothing else touches it until the launch ends, and the kernel before left the partial sums that
            // the plan speaks of.
            unsafe {
                kernel(
                    m,
                    n,
                    k,
                    self.product.alpha,
                    self.product.beta,
                    c.get(),
                    ldc,
                    partials.get(),
                    tile.m as usize,
                    tile.n as usize,
                    tile.k as usize,
                    streams.streams,
                    streams.whole_waves,
                    self.plan.fix_up_groups(),
                )
            }
        })
    }
}
