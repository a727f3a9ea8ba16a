//! A kernel on a rank's device: its block of C stays in the device's memory while products are
//! added to it; factors come from the host's memory, to where MPI has brought them.
//!
//! There is room for two panels of each factor. On a GPU a launch returns at once, so while the GPU
//! multiplies one panel, the host waits for the next in MPI and copies it to the other room:
//!
//! ```text
//!     host    | MPI, copy 0 | MPI, copy 1 | MPI,  copy 2 |            time ---->
//!     GPU                   | product 0   | product 1    | product 2 |
//!                                         ^ copy 2 overwrites panel 0: it waits for product 0
//! ```
//!
//! Memory is kept for the next product: to get it from the driver takes longer than a small
//! product.

use std::cell::RefCell;
use std::time::Duration;

use gpu_gemm::device::Copies;
use gpu_gemm::device::cuda::{Side, Staging, Transfer};
use gpu_gemm::{Buffer, Choice, Context, Device, DeviceError, Mark, Shape, Transpose, Way, gemm};
use verification::cpu::view::{View, ViewMut};
use verification::data::Number;

use super::{LocalError, LocalProduct, Place};
use crate::Element;
use crate::clock::{Clock, Phase};

/// A device, and a rank's block of C on it.
pub(super) struct OnDevice<T: Element> {
    // Dropped in this order: the context waits for what uses the others.
    state: RefCell<State<T>>,
    copies: Copies,
    device: Device,
}

struct State<T: Element> {
    context: Context,
    /// Rows and columns of the block.
    size: (usize, usize),
    /// Compact, as all are here. Without products, what it holds is undefined.
    c: Buffer<T::Sum>,
    a: [Buffer<T>; 2],
    b: [Buffer<T>; 2],
    /// Before and after each product of the block.
    products: Vec<(Mark, Mark)>,
    /// Products whose kernels are compiled, and that the workspace is large enough for.
    prepared: Vec<Shape>,
}

impl<T: Element> OnDevice<T> {
    /// Multiplies by this kernel, or for `None` by the one that suits each shape.
    pub fn new(place: &Place, choice: Option<Choice>) -> Result<Self, DeviceError> {
        let device = &place.device;
        let context = Context::new(device, 0)?;
        let context = match choice {
            Some(choice) => context.with_kernel(choice),
            None => context,
        };
        let room = || context.allocate(0);
        let (a, b) = ([room()?, room()?], [room()?, room()?]);
        let state = State {
            size: (0, 0),
            c: context.allocate(0)?,
            a,
            b,
            products: Vec::new(),
            prepared: Vec::new(),
            context,
        };
        let staging = Staging::of(place.ranks_on_these_cores);
        Ok(OnDevice {
            state: RefCell::new(state),
            copies: Copies::of(device, staging)?,
            device: device.clone(),
        })
    }

    /// Copies a matrix in the host's memory, whose rows are `leading` elements apart, to a compact
    /// one on the device, or the other way, and waits for it.
    ///
    /// # Safety
    ///
    /// The rows exist on the host, and the copy may write them if it goes to the host. `device` has
    /// room for all of them, and nothing that was launched uses it any longer.
    unsafe fn copy<E>(
        &self,
        way: Way,
        (host, leading): (*mut E, usize),
        device: *mut E,
        (height, columns): (usize, usize),
    ) -> Result<(), DeviceError> {
        let side = |start: *mut E, columns: usize| Side {
            start: start.cast(),
            pitch: columns * size_of::<E>(),
        };
        let transfer = Transfer {
            way,
            host: side(host, leading),
            device: side(device, columns.max(1)),
            width: columns * size_of::<E>(),
            height,
        };
        // SAFETY: the caller vouches for both sides.
        unsafe { self.copies.copy(&self.device, transfer)? };
        self.copies.wait()
    }

    /// Copies a panel to a room that no product reads any longer.
    fn upload(
        &self,
        context: &Context,
        room: &mut Buffer<T>,
        panel: View<'_, T>,
    ) -> Result<(), DeviceError> {
        let (rows, columns) = (panel.rows(), panel.columns());
        enlarge(context, room, rows * columns)?;
        let host = (panel.elements().as_ptr().cast_mut(), panel.leading());
        // SAFETY: the view has these rows, which are only read; the room is large enough.
        unsafe { self.copy(Way::ToDevice, host, room.start(), (rows, columns)) }
    }
}

/// Replaces a buffer that is too small, and that nothing uses.
fn enlarge<T: gpu_gemm::Element>(
    context: &Context,
    buffer: &mut Buffer<T>,
    length: usize,
) -> Result<(), DeviceError> {
    if buffer.len() < length {
        *buffer = context.allocate(length)?;
    }
    Ok(())
}

impl<T: Element> LocalProduct<T> for OnDevice<T> {
    fn begin(&self, rows: usize, columns: usize) -> Result<(), LocalError> {
        let state = &mut *self.state.borrow_mut();
        state.context.synchronize()?;
        state.products.clear();
        state.size = (rows, columns);
        Ok(enlarge(&state.context, &mut state.c, rows * columns)?)
    }

    fn add(
        &self,
        clock: &Clock,
        phase: Phase,
        (a, b): (View<'_, T>, View<'_, T>),
        _: ViewMut<'_, T::Sum>,
        _: Option<&mut dyn FnMut()>,
    ) -> Result<(), LocalError> {
        let state = &mut *self.state.borrow_mut();
        let (m, n) = state.size;
        let shape = Shape::new(m, n, a.columns());
        assert_eq!((a.rows(), b.rows(), b.columns()), (m, shape.k, n));
        if shape.is_empty() || shape.k == 0 {
            return Ok(());
        }
        let number = state.products.len();
        let (of_a, of_b) = (&mut state.a[number % 2], &mut state.b[number % 2]);
        clock.time(phase, || {
            // The last but one reads these rooms.
            if let Some((_, ended)) = number.checked_sub(2).map(|of| &state.products[of]) {
                ended.wait()?;
            }
            self.upload(&state.context, of_a, a)?;
            self.upload(&state.context, of_b, b)
        })?;
        clock.time(Phase::Compute, || {
            if !state.prepared.contains(&shape) {
                let no = Transpose::No;
                state.context.prepare(T::PRODUCT, shape, no, no)?;
                state.prepared.push(shape);
            }
            let (context, a, b, c) = (&state.context, &*of_a, &*of_b, &mut state.c);
            let [one, beta] = [1, i32::from(number > 0)].map(T::Sum::from_integer);
            let k = shape.k;
            let started = context.mark()?;
            // SAFETY: the buffers live until the next block begins or the context is dropped, both
            // of which wait. Factors are not overwritten before the mark.
            unsafe { gemm(context, one, a, k, b, n, beta, c, n, m, n, k)? };
            state.products.push((started, context.mark()?));
            Ok(())
        })
    }

    /// The time that a GPU has multiplied while the host copied or waited for a panel counts as
    /// computing.
    fn wait(&self, clock: &Clock) -> Result<(), LocalError> {
        let state = self.state.borrow();
        clock.time(Phase::Compute, || state.context.synchronize())?;
        let mut multiplied = 0.0;
        for (started, ended) in &state.products {
            multiplied += ended.seconds_since(started)?;
        }
        clock.raise_compute_to(Duration::from_secs_f64(multiplied));
        Ok(())
    }

    fn fetch(&self, clock: &Clock, mut c: ViewMut<'_, T::Sum>) -> Result<(), LocalError> {
        self.wait(clock)?;
        let state = self.state.borrow();
        if state.products.is_empty() {
            return Ok(());
        }
        assert_eq!((c.rows(), c.columns()), state.size);
        let host = (c.as_mut_ptr(), c.leading());
        // SAFETY: the view has these rows exclusively, and all products are done.
        let copied = clock.time(Phase::Collect, || unsafe {
            self.copy(Way::ToHost, host, state.c.start(), state.size)
        });
        Ok(copied?)
    }

    fn is_on_gpu(&self) -> bool {
        self.device.gpu().is_some()
    }
}
