//! What one multiplication launches, decided before anything is launched: a pure function of shape, layout and choice, the same
//! for a GPU and for the simulator.
//!
//! ```text
//!     A, if its layout does not suit --- pack ---.
//!                                                 > kernel ---> C
//!     B, if its layout does not suit --- pack ---'    \
//!                                                      partial sums --- fix up ---> C, where tiles are split
//! ```
//!
//! Where a kernel leaves the last columns of C to another ([`Variant::rest`]), the same follows for those, but that A is packed already.

use gpu_kernels::fix_up;
use gpu_kernels::spec::{Grid, Variant};
use gpu_kernels::streams::Streams;

use super::call::Call;
use super::pack::{Pack, Role, end, pack, packings};
use super::sharing::{Sharing, splits, tiles};
use crate::device::launch::{TooLarge, bands};
use crate::problem::Shape;

/// Threads of the blocks that add up partial sums.
pub const FIX_UP_BLOCK: (u32, u32) = (fix_up::THREADS as u32, 1);

/// What one multiplication launches.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'v> {
    variant: &'v Variant,
    call: Call,
    a: Option<Pack>,
    b: Option<Pack>,
    sharing: Option<Sharing>,
    split: bool,
    /// Where the partial sums begin in the workspace.
    partials: usize,
    workspace: usize,
    /// What the columns of C after those of `call` take.
    rest: Option<Rest>,
    /// Whether the copy of A is there already: this is the rest of another plan.
    follows: bool,
}

/// The last columns of C, which another kernel takes.
#[derive(Clone, Copy, Debug)]
struct Rest {
    variant: &'static Variant,
    call: Call,
    sharing: Sharing,
}

impl<'v> Plan<'v> {
    /// The plan of `call` by `variant`. A kernel that streams shares its steps as `sharing` says; others ignore it. If it leaves columns to
    /// another, that shares theirs evenly among as many blocks.
    ///
    /// None if the copies would be larger than any memory.
    pub fn new(variant: &'v Variant, call: Call, sharing: Sharing) -> Option<Plan<'v>> {
        let Some((columns, variant_of_rest)) = rest_of(variant, call.shape) else {
            return Plan::of_all_columns(variant, call, sharing);
        };
        let of_columns = |n| Call {
            shape: Shape { n, ..call.shape },
            ..call
        };
        let mut plan = Plan::of_all_columns(variant, of_columns(columns), sharing)?;
        let of_rest = of_columns(call.shape.n - columns);
        let sharing_of_rest = match sharing {
            Sharing::NONE => Sharing::NONE,
            Sharing { streams, .. } => {
                Sharing::even(tiles(of_rest.shape, variant_of_rest.tile), streams)
            }
        };
        let rest = Plan::of_all_columns(variant_of_rest, of_rest, sharing_of_rest)?;
        if rest.a != plan.a {
            // It would need a copy of its own.
            return Plan::of_all_columns(variant, call, sharing);
        }
        plan.workspace = plan.workspace.max(rest.workspace);
        plan.rest = Some(Rest {
            variant: variant_of_rest,
            call: of_rest,
            sharing: sharing_of_rest,
        });
        Some(plan)
    }

    /// The same, of all columns of C by the one kernel.
    fn of_all_columns(variant: &'v Variant, call: Call, sharing: Sharing) -> Option<Plan<'v>> {
        let [a, b] = packings(variant, &call);
        let a = pack(Role::A, a, variant, &call, 0)?;
        let b_offset = end(&a, 0)?;
        let b = pack(Role::B, b, variant, &call, b_offset)?;
        let partials = end(&b, b_offset)?;
        let mut plan = Plan {
            variant,
            call,
            a,
            b,
            sharing: None,
            split: false,
            partials,
            workspace: partials,
            rest: None,
            follows: false,
        };
        if variant.grid == Grid::Streams && !call.shape.is_empty() {
            let tile = variant.tile;
            let sharing = sharing.limited(call.shape, tile);
            plan.sharing = Some(sharing);
            plan.split = splits(&sharing.of(call.shape, tile));
            if plan.split {
                let slots = 2 * sharing.streams as usize;
                let elements = slots.checked_mul((tile.m * tile.n) as usize)?;
                plan.workspace = plan.partials.checked_add(elements)?;
            }
        }
        Some(plan)
    }

    /// The kernel.
    pub fn variant(&self) -> &'v Variant {
        self.variant
    }

    /// What it multiplies: all columns of C but those of the rest.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The plan of the columns that follow those of [`Plan::call`], in the same workspace, to be done after this one; none if there are no more.
    pub fn rest(&self) -> Option<Plan<'v>> {
        let Rest {
            variant,
            call,
            sharing,
        } = self.rest?;
        let plan = Plan::of_all_columns(variant, call, sharing)?;
        Some(Plan {
            follows: true,
            ..plan
        })
    }

    /// This plan, and that of its rest.
    pub fn parts(&self) -> impl Iterator<Item = Plan<'v>> + use<'v> {
        std::iter::once(*self).chain(self.rest())
    }

    /// The copies to make first, in this order.
    pub fn packs(&self) -> impl Iterator<Item = Pack> + use<> {
        let a = self.a.filter(|_| !self.follows);
        a.into_iter().chain(self.b)
    }

    /// Whether its kernel runs after another of the same product.
    pub fn follows(&self) -> bool {
        self.follows || self.packs().next().is_some()
    }

    /// The copy of A or B that the kernel reads, if it does not read the matrix itself.
    pub fn packed(&self, role: Role) -> Option<Pack> {
        match role {
            Role::A => self.a,
            Role::B => self.b,
        }
    }

    /// How the blocks of a kernel that streams share its steps; none for other kernels, and for a C without elements.
    pub fn sharing(&self) -> Option<Sharing> {
        self.sharing
    }

    /// The same, as the kernel sees it.
    pub fn streams(&self) -> Option<Streams> {
        let of = |sharing: Sharing| sharing.of(self.call.shape, self.variant.tile);
        self.sharing.map(of)
    }

    /// Blocks along x and y of a kernel that streams; none for others.
    pub fn grid(&self) -> Option<(u32, u32)> {
        let sharing = self.sharing?;
        Some((sharing.streams, sharing.whole_waves + 1))
    }

    /// Blocks along x and y of the launch that adds up partial sums; none if there are none.
    pub fn fix_up_grid(&self) -> Option<(u32, u32)> {
        let streams = self.streams().filter(|_| self.split)?;
        let tile = self.variant.tile;
        let elements = (tile.m * tile.n) as usize;
        let blocks = elements.div_ceil(fix_up::elements_of_block(self.fix_up_groups()));
        Some((blocks as u32, streams.shared() as u32))
    }

    /// Groups of threads of each of its blocks that share the parts of a tile.
    pub fn fix_up_groups(&self) -> usize {
        let tile = self.variant.tile;
        let split = self.streams().filter(|_| self.split);
        split.map_or(1, |streams| {
            fix_up::groups((tile.m * tile.n) as usize, streams.most_parts())
        })
    }

    /// The grids of all launches, in order, those of the rest among them.
    ///
    /// # Errors
    ///
    /// C is too large for any number of launches.
    pub fn grids(&self) -> Result<Vec<(u32, u32)>, TooLarge> {
        let of_parts: Result<Vec<_>, _> = self.parts().map(|part| part.own_grids()).collect();
        Ok(of_parts?.concat())
    }

    fn own_grids(&self) -> Result<Vec<(u32, u32)>, TooLarge> {
        let mut grids: Vec<(u32, u32)> = self.packs().map(|pack| pack.grid()).collect();
        match self.variant.grid {
            Grid::Streams => grids.extend(self.grid()),
            _ => {
                let bands = bands(self.variant, self.call.shape)?;
                grids.extend(bands.iter().map(|band| band.grid));
            }
        }
        grids.extend(self.fix_up_grid());
        Ok(grids)
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
        tiles(self.call.shape, self.variant.tile)
    }

    /// Steps of the tile's depth that a tile's sums take.
    pub fn steps_per_tile(&self) -> usize {
        self.call.shape.k.div_ceil(self.variant.tile.k as usize)
    }
}

/// The columns of C that a kernel takes itself, and what takes those after them, if there are any: as few as may be, but whole tiles of that, where
/// a few tiles less lead to that.
fn rest_of(variant: &Variant, shape: Shape) -> Option<(usize, &'static Variant)> {
    let rest = variant.variant_of_rest()?;
    let (wide, narrow) = (variant.tile.n as usize, rest.tile.n as usize);
    let most = shape.n / wide * wide;
    if shape.is_empty() || most == 0 || most == shape.n {
        return None;
    }
    let fewer = (0..narrow).map_while(|tiles| most.checked_sub(tiles * wide));
    let mut whole =
        fewer.filter(|columns| *columns > 0 && (shape.n - columns).is_multiple_of(narrow));
    Some((whole.next().unwrap_or(most), rest))
}
