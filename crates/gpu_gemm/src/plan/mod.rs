//! The launches of one product. The plan is made before anything is launched: it is a pure
//! function of the call, the variant and the decomposition, the same for every backend.
//!
//! ```text
//!     A, if in another layout --- operand copy ---.
//!                                                  > kernel ---> C
//!     B, if in another layout --- operand copy ---'    \
//!                                                       partial sums --- fix-up ---> C,
//!                                                                    if tiles are split
//! ```
//!
//! A batch of products is one launch where the kernel takes batches ([`Variant::takes_batches`]),
//! needs no copies and splits no tiles; else the launches are made for one product after the
//! other, in the same workspace.
//!
//! A kernel for few rows computes the transposed product, `C^T = B^T * A^T`, where C has fewer
//! columns than rows: few columns are few rows of that. The operands stay where they are, and C is
//! written column by column.
//!
//! If a kernel leaves the last columns of C to another kernel ([`Variant::n_remainder`]), they
//! are a second panel: the same launches follow for them, with the existing copy of A.

pub(crate) mod bands;
pub mod decomposition;
mod operand_copy;
mod panel;
#[cfg(test)]
mod tests;

use gpu_kernels::remainder_variant;
use gpu_kernels::spec::{ElementType, Variant};
use thiserror::Error;

pub use bands::TooLarge;
pub use decomposition::Decomposition;
pub use operand_copy::OperandCopy;
pub use panel::Panel;
pub(crate) use panel::takes_batch;

use crate::call::{Batch, Call, Shape};
use crate::launch::{Bindings, Launch};

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    #[error("`{kernel}` needs copies of A or B, which for {shape} are larger than any memory.")]
    CopiesTooLarge { kernel: &'static str, shape: Shape },
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// What one product launches.
#[derive(Clone, Debug)]
pub struct Plan {
    variant: &'static Variant,
    call: Call,
    panels: Vec<Panel>,
    launches: Vec<Launch>,
}

impl Plan {
    /// The plan of `call` by `variant`. A stream-K kernel divides its tiles as `decomposition`
    /// says; others ignore it. The N remainder, if another kernel computes it, is divided evenly
    /// among the same number of CTAs.
    ///
    /// # Errors
    ///
    /// The copies, or C, would be larger than any memory.
    pub fn new(
        variant: &'static Variant,
        call: Call,
        decomposition: Decomposition,
    ) -> Result<Plan, PlanError> {
        let panels = panels(variant, call, decomposition).ok_or(PlanError::CopiesTooLarge {
            kernel: variant.name,
            shape: call.shape,
        })?;
        let mut launches = Vec::new();
        for panel in &panels {
            panel.add_launches(&call, &mut launches)?;
        }
        Ok(Plan {
            variant,
            call,
            panels,
            launches,
        })
    }

    /// The kernel: if there are two, the one that computes the first columns.
    pub fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// What is multiplied.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The launches, in order: of all products of a batch, or of one ([`Plan::repeats`]).
    pub fn launches(&self) -> &[Launch] {
        &self.launches
    }

    /// How often the launches are made: once, or for each product of a batch again, where no
    /// kernel computes all of them in one launch.
    pub fn repeats(&self) -> usize {
        let count = self.call.batch.count;
        let is_one_launch = self.panels.iter().all(|panel| panel.is_one_launch());
        match is_one_launch {
            true => 1,
            false => count,
        }
    }

    /// The bindings of a later product of the batch: its matrices follow those of the first.
    pub fn bindings_of(&self, repeat: usize, first: &Bindings) -> Bindings {
        let (types, [a, b, c]) = (self.variant.types, self.call.batch.strides);
        let moved = |start: *mut u8, stride: usize, element: ElementType| {
            start.wrapping_add(repeat.wrapping_mul(stride).wrapping_mul(element.bytes()))
        };
        Bindings {
            a: moved(first.a, a, types.a),
            b: moved(first.b, b, types.b),
            c: moved(first.c, c, types.c),
            first: [first.first[0], first.first[1], first.first[2] + repeat],
            ..*first
        }
    }

    /// The columns of C that one kernel computes: all of them in one panel, or two panels.
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }

    /// How the CTAs of a stream-K kernel divide the tiles; `None` for other kernels, and for an
    /// empty C.
    pub fn decomposition(&self) -> Option<Decomposition> {
        self.panels.first()?.decomposition()
    }

    /// The bytes of workspace that the plan needs, beginning at a multiple of 256 bytes; they
    /// need not be initialized.
    pub fn workspace_bytes(&self) -> usize {
        let of_panels = self.panels.iter().map(Panel::workspace_bytes);
        of_panels.max().unwrap_or(0)
    }
}

/// The panels of a product. `None` if the copies would be larger than any memory.
fn panels(
    variant: &'static Variant,
    call: Call,
    decomposition: Decomposition,
) -> Option<Vec<Panel>> {
    let Some((columns, other)) = n_remainder(variant, call.shape) else {
        return Some(vec![Panel::new(variant, call, 0, decomposition, None)?]);
    };
    // Two kernels for a product are launched for one product of a batch after the other.
    let of_columns = |n| Call {
        shape: Shape { n, ..call.shape },
        batch: Batch::ONE,
        ..call
    };
    let first = Panel::new(variant, of_columns(columns), 0, decomposition, None)?;
    let remaining = of_columns(call.shape.n - columns);
    let decomposition = match decomposition {
        Decomposition::DATA_PARALLEL => decomposition,
        Decomposition { ctas, .. } => {
            Decomposition::even(decomposition::tiles(remaining.shape, other.tile), ctas)
        }
    };
    let second = Panel::new(
        other,
        remaining,
        columns,
        decomposition,
        first.copies().next(),
    )?;
    Some(vec![first, second])
}

/// The columns of C that a kernel computes itself, and the variant that computes the N remainder,
/// if there is one. The remainder is as small as possible, but consists of exact tiles of that
/// variant if giving up a few tiles of the kernel achieves that.
fn n_remainder(variant: &Variant, shape: Shape) -> Option<(usize, &'static Variant)> {
    let other = remainder_variant(variant)?;
    let (wide, narrow) = (variant.tile.n as usize, other.tile.n as usize);
    let most = shape.n / wide * wide;
    if shape.is_empty() || most == 0 || most == shape.n {
        return None;
    }
    let fewer = (0..narrow).map_while(|tiles| most.checked_sub(tiles * wide));
    let mut exact =
        fewer.filter(|columns| *columns > 0 && (shape.n - columns).is_multiple_of(narrow));
    Some((exact.next().unwrap_or(most), other))
}
