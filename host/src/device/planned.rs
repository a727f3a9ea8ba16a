//! The launches of a plan on a GPU.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ffi::c_void;

use cust::function::{BlockSize, Function};
use cust::launch;
use cust::memory::{DeviceBuffer, DeviceCopy, DevicePointer};
use cust::stream::Stream;
use gpu_kernels::KERNELS;
use gpu_kernels::fix_up::FIX_UP;
use gpu_kernels::spec::{Grid, Variant};
use gpu_kernels::transpose::{PAD, TRANSPOSE};

use super::cuda::{CudaDevice, during, launch_error};
use super::error::DeviceError;
use super::uploaded::{Operand, Operands};
use crate::blas::{
    Call, FIX_UP_BLOCK, PACK_BLOCK, Pack, Plan, Processor, Role, Sharing, Stored, Transpose,
};
use crate::element::{DataType, Element};
use crate::problem::{ProblemError, Shape};

/// Kernels, looked up by their entry points.
pub(crate) struct Functions<'device> {
    found: HashMap<&'static str, Function<'device>>,
}

impl<'device> Functions<'device> {
    /// What plans by `variants` need, however A and B are stored.
    pub fn load<'v>(
        device: &'device CudaDevice,
        variants: impl IntoIterator<Item = &'v Variant>,
    ) -> Result<Self, DeviceError> {
        let multiplying = variants.into_iter().flat_map(|variant| {
            let rest = variant.variant_of_rest();
            [Some(variant.entry), rest.map(|rest| rest.entry)]
        });
        let multiplying = multiplying.flatten();
        let mut found = HashMap::new();
        for entry in multiplying.chain(gpu_kernels::HELPERS) {
            found.insert(entry, device.function(entry)?);
        }
        Ok(Functions { found })
    }

    /// What plans by `variant` need for row-major matrices.
    pub fn of(device: &'device CudaDevice, variant: &Variant) -> Result<Self, DeviceError> {
        match variant.grid {
            Grid::Streams => Functions::load(device, [variant]),
            _ => {
                let function = device.function(variant.entry)?;
                Ok(Functions {
                    found: HashMap::from([(variant.entry, function)]),
                })
            }
        }
    }

    fn get(&self, entry: &str) -> Result<&Function<'device>, DeviceError> {
        self.found
            .get(entry)
            .ok_or_else(|| DeviceError::NoSuchEntry {
                entry: entry.to_string(),
            })
    }
}

/// One multiplication on a GPU: the kernels for it, and the stream to launch them on.
pub(crate) struct Launcher<'a> {
    pub device: &'a CudaDevice,
    pub functions: &'a Functions<'a>,
    pub stream: &'a Stream,
}

impl Launcher<'_> {
    /// Launches what `plan` says, and does not wait.
    ///
    /// # Safety
    ///
    /// The device's context is current. `operands` hold the matrices of the plan's call, stored as that says, and `workspace` the
    /// elements that the plan asks for, until the launches have ended. `alpha` is not 0, unless the call has no depth.
    pub unsafe fn launch<T: Element>(
        &self,
        plan: &Plan<'_>,
        alpha: T,
        beta: T,
        operands: &Operands<T>,
        workspace: DevicePointer<T>,
    ) -> Result<(), DeviceError> {
        let mut operands = *operands;
        for part in plan.parts() {
            // SAFETY: as the caller vouches; what a part leaves in the workspace for those after it, these do not write.
            unsafe { self.launch_part(&part, alpha, beta, &operands, workspace)? };
            let columns = part.call().shape.n;
            operands.b = operands.b.starting_at(0, columns, part.call().b.transpose);
            operands.c = operands.c.starting_at(0, columns, Transpose::No);
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Launcher::launch`], of a plan and the columns of B and C that are its own.
    unsafe fn launch_part<T: Element>(
        &self,
        plan: &Plan<'_>,
        alpha: T,
        beta: T,
        operands: &Operands<T>,
        workspace: DevicePointer<T>,
    ) -> Result<(), DeviceError> {
        let copy = |pack: &Pack| Operand {
            pointer: workspace.wrapping_add(pack.offset),
            extent: pack.elements(),
            leading: pack.leading(),
        };
        let stored = |role| match role {
            Role::A => &operands.a,
            Role::B => &operands.b,
        };
        for pack in plan.packs() {
            // SAFETY: the caller vouches for the matrix and for the workspace.
            unsafe { self.pack(plan, &pack, stored(pack.role), &copy(&pack))? };
        }
        let read = |role| match plan.packed(role) {
            Some(pack) => copy(&pack),
            None => *stored(role),
        };
        let operands = Operands {
            a: read(Role::A),
            b: read(Role::B),
            c: operands.c,
        };
        let partials = workspace.wrapping_add(plan.partials_offset());
        // SAFETY: as above; the operands are stored as the kernel asks for them.
        unsafe {
            self.multiply(plan, alpha, beta, &operands, partials)?;
            self.fix_up(plan, alpha, beta, &operands.c, partials)
        }
    }

    /// # Safety
    ///
    /// `source` is the matrix that `pack` speaks of, and `target` has room for its copy.
    unsafe fn pack<T: Element>(
        &self,
        plan: &Plan<'_>,
        pack: &Pack,
        source: &Operand<T>,
        target: &Operand<T>,
    ) -> Result<(), DeviceError> {
        let function = self.functions.get(match pack.transposed {
            true => TRANSPOSE,
            false => PAD,
        })?;
        let (grid, stream) = (pack.grid(), self.stream);
        let ((rows, columns), (target_rows, target_leading)) = (pack.source, pack.target);
        // SAFETY: these are the parameters of both kernels, in order and type; the caller vouches for the memory.
        unsafe {
            launch!(function<<<grid, PACK_BLOCK, 0, stream>>>(
                source.pointer,
                source.extent,
                rows,
                columns,
                source.leading,
                target.pointer,
                target_rows,
                target_leading
            ))
        }
        .map_err(|error| launch_error(plan.variant(), error))
    }

    /// # Safety
    ///
    /// As [`Launcher::launch`], with A and B stored as the kernel asks for them.
    unsafe fn multiply<T: Element>(
        &self,
        plan: &Plan<'_>,
        alpha: T,
        beta: T,
        operands: &Operands<T>,
        partials: DevicePointer<T>,
    ) -> Result<(), DeviceError> {
        let variant = plan.variant();
        let Shape { m, n, k } = plan.call().shape;
        let function = self.functions.get(variant.entry)?;
        let Some(grid) = plan.grid() else {
            // SAFETY: the caller vouches for the memory.
            return unsafe {
                let shape = plan.call().shape;
                self.device
                    .launch(function, self.stream, variant, shape, alpha, beta, operands)
            };
        };
        let block = (variant.block.x, variant.block.y);
        let (a, b, c) = (operands.a, operands.b, operands.c);
        let mut parameters = [
            parameter(&m),
            parameter(&n),
            parameter(&k),
            parameter(&alpha),
            parameter(&a.pointer),
            parameter(&a.extent),
            parameter(&a.leading),
            parameter(&b.pointer),
            parameter(&b.extent),
            parameter(&b.leading),
            parameter(&beta),
            parameter(&c.pointer),
            parameter(&c.leading),
            parameter(&partials),
        ];
        let follows = plan.follows();
        // SAFETY: these are the parameters of every kernel that streams, in order and type; the caller vouches for the memory.
        unsafe { self.start(plan, function, grid, block, &mut parameters, follows) }
    }

    /// # Safety
    ///
    /// As [`Launcher::launch`]; the kernel before has left its partial sums at `partials`.
    unsafe fn fix_up<T: Element>(
        &self,
        plan: &Plan<'_>,
        alpha: T,
        beta: T,
        c: &Operand<T>,
        partials: DevicePointer<T>,
    ) -> Result<(), DeviceError> {
        let (Some(grid), Some(streams)) = (plan.fix_up_grid(), plan.streams()) else {
            return Ok(());
        };
        let groups = plan.fix_up_groups();
        let function = self.functions.get(FIX_UP)?;
        let Shape { m, n, k } = plan.call().shape;
        let tile = plan.variant().tile;
        let [tile_m, tile_n, tile_k] = [tile.m, tile.n, tile.k].map(|size| size as usize);
        let mut parameters = [
            parameter(&m),
            parameter(&n),
            parameter(&k),
            parameter(&alpha),
            parameter(&beta),
            parameter(&c.pointer),
            parameter(&c.leading),
            parameter(&partials),
            parameter(&tile_m),
            parameter(&tile_n),
            parameter(&tile_k),
            parameter(&streams.streams),
            parameter(&streams.whole_waves),
            parameter(&groups),
        ];
        // SAFETY: these are the kernel's parameters, in order and type; the caller vouches for the memory.
        unsafe { self.start(plan, function, grid, FIX_UP_BLOCK, &mut parameters, true) }
    }

    /// Launches a kernel of `plan`. If it `follows` another of the plan, it may begin before that has ended, as far as it does not need what
    /// that leaves: it waits for it itself (`grid_dependency`).
    ///
    /// # Safety
    ///
    /// `parameters` are the kernel's, in order and type; the caller vouches for the memory that they point to.
    unsafe fn start(
        &self,
        plan: &Plan<'_>,
        function: &Function<'_>,
        grid: (u32, u32),
        block: (u32, u32),
        parameters: &mut [*mut c_void],
        follows: bool,
    ) -> Result<(), DeviceError> {
        let ahead = self.device.ahead().filter(|_| follows);
        // SAFETY: as above; the kernels that follow another wait for it before they read anything.
        let started = ahead.is_some_and(|ahead| unsafe {
            ahead.launch(function, grid, block, self.stream, parameters)
        });
        if started {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.stream.launch(function, grid, block, 0, parameters) }
            .map_err(|error| launch_error(plan.variant(), error))
    }
}

/// A parameter of a kernel as the driver takes it: where it lies.
fn parameter<T: DeviceCopy>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

impl CudaDevice {
    /// What plans need to know of this GPU: asked of the driver once. The device's context is current.
    pub(crate) fn processor(&self) -> Result<&Processor, DeviceError> {
        if let Some(known) = self.known_processor().get() {
            return Ok(known);
        }
        let properties = self.properties();
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let mut resident = Vec::new();
        for variant in variants.filter(|variant| DataType::of(variant) == DataType::F32) {
            // PTX that is not this build's need not have it; a launch will say so.
            let Ok(function) = self.function(variant.entry) else {
                continue;
            };
            let block = BlockSize::xy(variant.block.x, variant.block.y);
            let blocks = function
                .max_active_blocks_per_multiprocessor(block, 0)
                .map_err(during("Asking how many blocks run at once"))?;
            resident.push((variant.entry, blocks));
        }
        let multiprocessors = u32::try_from(properties.multiprocessors).unwrap_or(1);
        let processor = Processor::new(properties.architecture(), multiprocessors, resident);
        Ok(self.known_processor().get_or_init(|| processor))
    }
}

/// The call of a product without transpositions.
pub(crate) fn call_of<T: Element>(shape: Shape, alpha: T, operands: &Operands<T>) -> Call {
    let stored = |operand: &Operand<T>| {
        let address = operand.pointer.as_raw() as usize;
        Stored::at(address, operand.leading, Transpose::No)
    };
    Call {
        shape: match alpha == T::default() {
            true => Shape { k: 0, ..shape },
            false => shape,
        },
        a: stored(&operands.a),
        b: stored(&operands.b),
    }
}

/// The plan of `call` by `variant`. A kernel that streams shares its steps as `sharing` says, or else evenly on `processor`, which
/// is asked for only then.
pub(crate) fn plan<'v, P: Borrow<Processor>>(
    variant: &'v Variant,
    call: Call,
    sharing: Option<Sharing>,
    processor: impl FnOnce() -> Result<P, DeviceError>,
) -> Result<Plan<'v>, DeviceError> {
    let sharing = match (sharing, variant.grid) {
        (Some(sharing), _) => sharing,
        (None, Grid::Streams) => processor()?.borrow().even(variant, call),
        (None, _) => Sharing::NONE,
    };
    Plan::new(variant, call, sharing).ok_or({
        DeviceError::Host(ProblemError::Overflow {
            rows: call.shape.m,
            leading: call.shape.n,
        })
    })
}

/// Memory for a plan's copies and partial sums. None where the plan needs none.
pub(crate) struct Workspace<T: Element> {
    buffer: Option<DeviceBuffer<T>>,
}

impl<T: Element> Workspace<T> {
    pub fn allocate(device: &CudaDevice, elements: usize) -> Result<Self, DeviceError> {
        let buffer = match elements {
            0 => None,
            elements => Some(device.allocate(elements)?),
        };
        Ok(Workspace { buffer })
    }

    /// Its first element.
    pub fn start(&self) -> DevicePointer<T> {
        match &self.buffer {
            Some(buffer) => buffer.as_device_ptr(),
            None => DevicePointer::null(),
        }
    }
}
