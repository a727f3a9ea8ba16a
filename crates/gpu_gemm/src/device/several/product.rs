//! A product on several devices: what lies where, and what each device launches.

use std::collections::BTreeMap;
use std::ops::Range;

use gpu_kernels::spec::DataType;

use super::located::Located;
use super::{Devices, Planner, Start};
use crate::buffer::Buffer;
use crate::call::{Batch, Shape, Transpose};
use crate::error::DeviceError;
use crate::launch::{Bindings, Element, Scalar};
use crate::plan::Plan;
use crate::split::{Block, Panel, Split};

/// A product on several devices: the matrices where they lie, and what each device launches.
/// A and B are of `T`.
pub struct Product<'devices, T: Element, C: Element> {
    pub(super) devices: &'devices Devices,
    pub(super) split: Split,
    pub(super) transposes: [Transpose; 2],
    pub(super) starts: [Start; 3],
    pub(super) alpha: Scalar,
    pub(super) beta: Scalar,
    /// The panels, one a device, or all of A, or of B, on the first.
    pub(super) a: Vec<Buffer<T>>,
    pub(super) b: Vec<Buffer<T>>,
    /// The blocks, one a device; if C starts on the first device, its own is all of C.
    pub(super) c: Vec<Buffer<C>>,
    /// For each device the panels that it receives.
    pub(super) received: Vec<BTreeMap<Panel, Buffer<T>>>,
    /// What each device launches, with the memory for it.
    pub(super) work: Vec<(Vec<Step>, Buffer<f64>)>,
}

/// A block of C, the panels for it, and its launches.
pub(super) struct Step {
    pub(super) panels: [Panel; 2],
    pub(super) plan: Plan,
    pub(super) bindings: Bindings,
}

impl<T: Element, C: Element> Product<'_, T, C> {
    /// How it is divided.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The launches of each device.
    pub fn plans(&self, device: usize) -> impl Iterator<Item = &Plan> {
        self.work[device].0.iter().map(|step| &step.plan)
    }

    /// Makes room for the matrices, and for what travels.
    pub(super) fn allocate(&mut self) -> Result<(), DeviceError> {
        let (devices, Shape { m, n, k }) = (self.devices, self.split.shape());
        for device in 0..self.split.devices() {
            let named = devices.named(device);
            let part = &devices.parts[device];
            let allocate = |elements| part.allocate::<T>(elements).map_err(&named);
            let whole = |start, elements: usize, part| match (start, device) {
                (Start::Spread, _) => part,
                (Start::First, 0) => elements,
                (Start::First, _) => 0,
            };
            let (rows, columns) = self.split.block_of_c(device);
            let of_a = self.split.elements(Panel::A(device));
            let of_b = self.split.elements(Panel::B(device));
            self.a.push(allocate(whole(self.starts[0], m * k, of_a))?);
            self.b.push(allocate(whole(self.starts[1], k * n, of_b))?);
            let is_whole = self.starts[2] == Start::First && device == 0;
            let block = rows.len() * columns.len();
            let of_c = if is_whole { m * n } else { block };
            self.c.push(part.allocate(of_c).map_err(&named)?);
            let needed = self.panels_of(device).into_iter();
            let elsewhere = needed.filter(|&panel| self.origin(panel).device != device);
            let received =
                elsewhere.map(|panel| Ok((panel, allocate(self.split.elements(panel))?)));
            let received: Result<_, DeviceError> = received.collect();
            self.received.push(received?);
        }
        Ok(())
    }

    /// The panels that a device reads.
    fn panels_of(&self, device: usize) -> Vec<Panel> {
        let mut panels = Vec::new();
        for block in self.split.blocks(device) {
            for panel in [Panel::A(block.a), Panel::B(block.b)] {
                if !panels.contains(&panel) {
                    panels.push(panel);
                }
            }
        }
        panels
    }

    /// The rows and columns of a panel, as stored.
    fn size(&self, panel: Panel) -> (usize, usize) {
        let k = self.split.shape().k;
        match panel {
            Panel::A(of) => self.transposes[0].of((self.split.rows_of_a(of).len(), k)),
            Panel::B(of) => self.transposes[1].of((k, self.split.columns_of_b(of).len())),
        }
    }

    /// Where a panel begins in its matrix, as stored: row and column.
    pub(super) fn position(&self, panel: Panel) -> (usize, usize) {
        match panel {
            Panel::A(of) => self.transposes[0].of((self.split.rows_of_a(of).start, 0)),
            Panel::B(of) => self.transposes[1].of((0, self.split.columns_of_b(of).start)),
        }
    }

    /// The part of a panel, which lies there, with these rows of A or columns of B.
    pub(super) fn lines_of(
        &self,
        located: Located<T>,
        panel: Panel,
        lines: &Range<usize>,
    ) -> Located<T> {
        let k = self.split.shape().k;
        let (first, size) = match panel {
            Panel::A(of) => {
                let first = lines.start - self.split.rows_of_a(of).start;
                ((first, 0), (lines.len(), k))
            }
            Panel::B(of) => {
                let first = lines.start - self.split.columns_of_b(of).start;
                ((0, first), (k, lines.len()))
            }
        };
        let transpose = match panel {
            Panel::A(_) => self.transposes[0],
            Panel::B(_) => self.transposes[1],
        };
        located.part(transpose.of(first), transpose.of(size))
    }

    /// Where a panel lies before the product.
    pub(super) fn origin(&self, panel: Panel) -> Located<T> {
        let Shape { m, n, k } = self.split.shape();
        let (index, memory, start, whole) = match panel {
            Panel::A(of) => (of, &self.a, self.starts[0], self.transposes[0].of((m, k))),
            Panel::B(of) => (of, &self.b, self.starts[1], self.transposes[1].of((k, n))),
        };
        let size = self.size(panel);
        match start {
            // While memory is made, that of a later device does not exist yet.
            Start::Spread => Located {
                device: index,
                start: memory
                    .get(index)
                    .map_or(std::ptr::null_mut(), Buffer::start),
                size,
                leading: size.1.max(1),
            },
            Start::First => Located {
                device: 0,
                start: memory[0].start(),
                size: whole,
                leading: whole.1.max(1),
            }
            .part(self.position(panel), size),
        }
    }

    /// Where a device reads a panel: where it lies, or where it arrives.
    pub(super) fn seen_from(&self, device: usize, panel: Panel) -> Located<T> {
        match self.received[device].get(&panel) {
            None => self.origin(panel),
            Some(memory) => {
                let size = self.size(panel);
                Located {
                    device,
                    start: memory.start(),
                    size,
                    leading: size.1.max(1),
                }
            }
        }
    }

    /// Where a device computes its block of C.
    pub(super) fn c_of(&self, device: usize) -> Located<C> {
        if device == 0 && self.starts[2] == Start::First {
            return self.c_at_first(0);
        }
        let (rows, columns) = self.split.block_of_c(device);
        Located {
            device,
            start: self.c[device].start(),
            size: (rows.len(), columns.len()),
            leading: columns.len().max(1),
        }
    }

    /// The block of a device in the C that lies on the first.
    fn c_at_first(&self, device: usize) -> Located<C> {
        let Shape { m, n, .. } = self.split.shape();
        let (rows, columns) = self.split.block_of_c(device);
        let whole = Located {
            device: 0,
            start: self.c[0].start(),
            size: (m, n),
            leading: n.max(1),
        };
        whole.part((rows.start, columns.start), (rows.len(), columns.len()))
    }

    /// Where the block of a device lies before and after the product.
    pub(super) fn home_of_c(&self, device: usize) -> Located<C> {
        match self.starts[2] {
            Start::Spread => self.c_of(device),
            Start::First => self.c_at_first(device),
        }
    }

    /// Chooses a plan for every block that a device multiplies, makes room for their workspaces,
    /// and has their kernels compiled.
    pub(super) fn plan(
        &mut self,
        plan: &Planner<'_>,
        blocks: impl Fn(&Split, usize) -> Vec<Block>,
    ) -> Result<(), DeviceError> {
        for device in 0..self.split.devices() {
            let part = &self.devices.parts[device];
            let named = self.devices.named(device);
            let mut steps = Vec::new();
            let c = self.c_of(device);
            let (rows, columns) = self.split.block_of_c(device);
            for block in blocks(&self.split, device) {
                let panels = [Panel::A(block.a), Panel::B(block.b)];
                let [a, b] = [(panels[0], &block.rows), (panels[1], &block.columns)].map(
                    |(panel, lines)| self.lines_of(self.seen_from(device, panel), panel, lines),
                );
                let first = (
                    block.rows.start - rows.start,
                    block.columns.start - columns.start,
                );
                let c = c.part(first, (block.rows.len(), block.columns.len()));
                let block = crate::product::Product {
                    data_type: DataType {
                        inputs: T::TYPE,
                        c: C::TYPE,
                    },
                    shape: Shape::new(c.size.0, c.size.1, self.split.shape().k),
                    alpha: self.alpha,
                    beta: self.beta,
                    a: a.stored(self.transposes[0]),
                    b: b.stored(self.transposes[1]),
                    c: c.stored(Transpose::No),
                    batch: Batch::ONE,
                };
                let call = block.call();
                let plan = plan(device, call).map_err(|error| named(error.into()))?;
                assert_eq!(
                    plan.variant().types.data_type(),
                    block.data_type,
                    "a plan for these types"
                );
                assert_eq!(*plan.call(), call, "a plan for this call");
                let facts = self.devices.facts(device);
                if let Some(error) = DeviceError::lacks_tensor_cores(&facts, plan.variant()) {
                    return Err(named(error));
                }
                steps.push(Step {
                    panels,
                    plan,
                    bindings: block.bindings(std::ptr::null_mut()),
                });
            }
            let most = steps.iter().map(|step| step.plan.workspace_bytes()).max();
            // One block after the other: one workspace is enough for all.
            let words = most.unwrap_or(0).div_ceil(size_of::<f64>());
            let workspace = part.allocate::<f64>(words).map_err(&named)?;
            for step in &mut steps {
                step.bindings.workspace = workspace.start().cast();
                let backend = part.device.as_backend(&|| ())?;
                backend.compile(&step.plan).map_err(&named)?;
            }
            self.work.push((steps, workspace));
        }
        Ok(())
    }
}

impl<T: Element, C: Element> Drop for Product<'_, T, C> {
    /// Waits, so that no kernel and no copy loses its memory while it runs; then frees the memory
    /// of each device in that device's context.
    fn drop(&mut self) {
        for part in &self.devices.parts {
            // After a crash nothing can still be running.
            let _ = part.synchronize();
        }
        for device in (0..self.split.devices()).rev() {
            let _ = self.devices.parts[device].enter();
            self.a.truncate(device);
            self.b.truncate(device);
            self.c.truncate(device);
            self.received.truncate(device);
            self.work.truncate(device);
        }
    }
}
