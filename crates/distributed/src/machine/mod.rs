//! What a model needs to know about this machine, measured.
//!
//! | file | what is measured |
//! | --- | --- |
//! | `host_memory.rs` | messages, zeros and rounding in the memory of hosts |
//! | `beside_products.rs` | messages there while ranks multiply |
//! | this one | products that begin and end there |
//! | `layout/between_gpus/measured.rs` | copies, messages and products where parts stay on GPUs |

mod beside_products;
mod host_memory;

use std::time::Instant;

use gpu_gemm::Shape;
use host::cpu::view::{View, ViewMut};
use host::statistics;

use crate::Element;
use crate::comm::Ranks;
use crate::layout::{LayoutError, Multiply, between_gpus, in_strips};
use crate::local::gpu::Gpu;
use crate::local::{LocalError, LocalProduct};
use crate::model::{Case, Gpus, Lie, Machine, Product};
use beside_products::Waits;
use host_memory::HostMemory;

/// Flops of a product that is timed at most, unless it has few rows.
const FLOPS: f64 = 2e10;
const FEWEST_ROWS: usize = 256;
/// Rounds in which what is done in the hosts' memory is measured: on cores, and beside GPUs.
const ROUNDS: usize = 5;
const ROUNDS_BESIDE_GPUS: usize = 2;
/// How often a product, which is never cut there, is timed in a round beside GPUs, unless it takes
/// longer than so many seconds. On cores, once.
const PRODUCTS_BESIDE_GPUS: usize = 3;
const LONG: f64 = 0.25;

/// A product that a layout computes on each rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LocalShape {
    pub shape: Shape,
    /// Whether it is one of many panels, and multiplied in strips.
    pub is_panel: bool,
    /// Whether such a panel is cut along k, so that products are added to the same elements of C.
    pub adds: bool,
    /// Whether rank 0 only hands out work, and leaves its host's memory to the others.
    pub has_master: bool,
}

/// What multiplies on the ranks.
pub struct Local<'a, T: Element> {
    pub product: &'a dyn LocalProduct<T>,
    /// If they multiply on GPUs.
    pub gpu: Option<&'a Gpu>,
}

/// Measures what these layouts do, in rounds without runs between them. All ranks must call it, and
/// all get the same answer.
///
/// # Errors
///
/// A product fails, or there is no memory.
pub fn measure<T: Element>(
    ranks: &Ranks,
    case: &Case,
    layouts: &[&dyn Multiply<T>],
    local: &Local<'_, T>,
) -> Result<Machine, LayoutError> {
    let mut measuring = Measuring::start(ranks, case, layouts, local)?;
    for _ in 1..measuring.rounds() {
        measuring.round()?;
    }
    Ok(measuring.machine())
}

/// What ranks do in some layouts. What GPUs do is measured once. What is done in the hosts' memory
/// is measured in rounds: messages between ranks 0 and 1, up to those that the case needs, alone
/// and beside products, and local products while all ranks multiply that do in the layout. A
/// machine that is slow for a second is then not slow for one of them alone. All ranks must do the
/// same with it, and all get the same answer. A group of one sends nothing: its latency is zero,
/// its bandwidth infinite.
pub struct Measuring<'m, T: Element> {
    ranks: &'m Ranks,
    case: Case,
    local: &'m Local<'m, T>,
    /// Of parts in the host's memory, and the seconds that each took.
    products: Vec<(LocalShape, Vec<f64>)>,
    host_memory: Vec<HostMemory>,
    waits: Vec<Waits>,
    gpus: Option<Gpus>,
}

impl<'m, T: Element> Measuring<'m, T> {
    /// With a first round.
    ///
    /// # Errors
    ///
    /// A product fails, or there is no memory.
    pub fn start(
        ranks: &'m Ranks,
        case: &Case,
        layouts: &[&dyn Multiply<T>],
        local: &'m Local<'m, T>,
    ) -> Result<Self, LayoutError> {
        // Parts of some layouts stay on GPUs, if there are any.
        let stays = |layout: &dyn Multiply<T>| local.gpu.is_some() && layout.moves(case).is_some();
        let in_host_memory = products(layouts.iter().filter(|layout| !stays(**layout)), case);
        let cut = |product: LocalShape| match local.gpu {
            Some(_) => product,
            None => LocalShape {
                shape: timed_shape(product.shape),
                ..product
            },
        };
        let mut measuring = Measuring {
            ranks,
            case: *case,
            local,
            products: in_host_memory
                .into_iter()
                .map(|product| (cut(product), Vec::new()))
                .collect(),
            host_memory: Vec::new(),
            waits: Vec::new(),
            gpus: None,
        };
        measuring.round()?;
        let moves = layouts.iter().filter_map(|layout| layout.moves(case));
        let moves: Vec<_> = moves.collect();
        if let Some(gpu) = local.gpu.filter(|_| !moves.is_empty()) {
            let products = products(layouts.iter().filter(|layout| stays(**layout)), case);
            let gpus = between_gpus::measure::<T>(ranks, gpu, case, &moves, &products)?;
            measuring.gpus = Some(gpus);
        }
        Ok(measuring)
    }

    /// How many rounds there should be.
    fn rounds(&self) -> usize {
        match self.local.gpu {
            Some(_) => ROUNDS_BESIDE_GPUS,
            None => ROUNDS,
        }
    }

    /// What is due before this one `of` several timed runs of a layout: the other rounds are spread
    /// over them. Products on cores, which other programs share, are timed before each, so that
    /// they meet the same machine.
    ///
    /// # Errors
    ///
    /// As [`Measuring::start`].
    pub fn before_run(&mut self, run: usize, of: usize) -> Result<(), LayoutError> {
        if is_due(run, of, self.rounds() - 1) {
            self.round()
        } else if self.local.gpu.is_none() {
            Ok(self.time_products()?)
        } else {
            Ok(())
        }
    }

    /// Times all that is done in the hosts' memory.
    fn round(&mut self) -> Result<(), LayoutError> {
        let (ranks, local) = (self.ranks, self.local);
        let host_memory = HostMemory::measure::<T>(ranks, &self.case, local.gpu)?;
        self.host_memory.push(host_memory);
        self.time_products()?;
        if let (Some(panel), 2.., None) = (self.panel(), ranks.size(), local.gpu) {
            let waits = beside_products::measure(ranks, &panel, local)?;
            self.waits.push(waits);
        }
        Ok(())
    }

    /// Times products once more, or several times beside GPUs.
    fn time_products(&mut self) -> Result<(), LocalError> {
        let (ranks, local) = (self.ranks, self.local);
        let multiplies = |product: &LocalShape| ranks.rank() > 0 || !product.has_master;
        let most = |elements: fn(Shape) -> usize| {
            let products = self.products.iter().map(|(product, _)| product);
            let own = products.filter(|product| multiplies(product));
            own.map(|product| elements(product.shape))
                .max()
                .unwrap_or(0)
        };
        let a = vec![T::from_integer(1); most(|Shape { m, k, .. }| m * k)];
        let b = vec![T::from_integer(1); most(|Shape { n, k, .. }| k * n)];
        let mut c = vec![T::Sum::default(); most(|Shape { m, n, .. }| m * n)];
        let mut multiply = |product: &LocalShape| {
            if !multiplies(product) {
                return Ok(());
            }
            let Shape { m, n, k } = product.shape;
            let strip = local.product.rows_of_a_strip().filter(|_| product.is_panel);
            let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
            in_strips(strip, a, ViewMut::new(&mut c, m, n, n), |a, c| {
                local.product.add_product(a, b, c)
            })
        };
        for (product, times) in &mut self.products {
            if local.gpu.is_some() && times.is_empty() {
                // It compiles its kernel.
                multiply(product)?;
            }
            for _ in 0..local.gpu.map_or(1, |_| PRODUCTS_BESIDE_GPUS) {
                let time = slowest(ranks, 1, || multiply(product))?;
                times.push(time);
                // The same on all ranks.
                if time > LONG {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A product of panels, if one of the layouts has any.
    fn panel(&self) -> Option<LocalShape> {
        let mut products = self.products.iter().map(|(product, _)| *product);
        products.find(|product| product.is_panel)
    }

    /// What was measured.
    pub fn machine(self) -> Machine {
        let panel = self.panel();
        let speed = |(product, times): (LocalShape, Vec<f64>)| {
            let Shape { m, n, k } = product.shape;
            Product {
                m,
                n,
                k,
                flops_per_s: product.shape.flops() / statistics::median(&times),
            }
        };
        let products: Vec<_> = self.products.into_iter().map(speed).collect();
        let on_gpus = self.gpus.as_ref().map(Gpus::flops_per_s);
        let speeds = products.iter().map(|product| product.flops_per_s);
        let mut machine = Machine {
            flops_per_s: speeds.chain(on_gpus).fold(0.0, f64::max),
            products,
            gpus: self.gpus,
            ..Machine::default()
        };
        HostMemory::median(&self.host_memory).tell(&mut machine);
        if let Some(panel) = panel.filter(|_| !self.waits.is_empty()) {
            let of_panel = beside_products::message(&panel);
            let alone = machine.sending(of_panel, Lie::Together, size_of::<T>());
            machine.waited = Waits::median(&self.waits).beside(alone);
        }
        machine
    }
}

/// The products that these layouts compute on a rank, each once, none of them empty.
fn products<'l, T: Element>(
    layouts: impl Iterator<Item = &'l &'l dyn Multiply<T>>,
    case: &Case,
) -> Vec<LocalShape> {
    let mut products: Vec<LocalShape> = Vec::new();
    for layout in layouts {
        let Shape { m, n, k } = layout.local_product(case);
        let adds = k < case.shape.k;
        let blocks = layout.blocks(case);
        let has_block = |rank: usize| !blocks[rank].is_empty();
        let product = LocalShape {
            shape: Shape::new(m.max(1), n.max(1), k.max(1)),
            is_panel: adds || n < layout.grid(case).block(case.shape, 0).columns.len(),
            adds,
            has_master: !has_block(0) && (1..case.ranks).any(has_block),
        };
        if !products.contains(&product) {
            products.push(product);
        }
    }
    products
}

/// Whether one of so many rounds is due before this one `of` several runs.
fn is_due(run: usize, of: usize, rounds: usize) -> bool {
    (run * rounds + of / 2) % of < rounds
}

/// Part of a product's rows, so that it does not take long on a CPU.
fn timed_shape(shape: Shape) -> Shape {
    let Shape { m, n, k } = shape;
    let of_a_row = Shape::new(1, n, k).flops();
    let affordable = (FLOPS / of_a_row) as usize;
    Shape::new(m.min(affordable.max(FEWEST_ROWS)), n, k)
}

/// The median of one number of all that was measured.
fn median_of<M>(measured: &[M], number: impl Fn(&M) -> f64) -> f64 {
    let numbers: Vec<_> = measured.iter().map(number).collect();
    statistics::median(&numbers)
}

/// The time of `work` on the rank that takes the longest, the median of so many times. What it
/// makes is given back to the system later.
pub(crate) fn slowest<R, E>(
    ranks: &Ranks,
    runs: usize,
    mut work: impl FnMut() -> Result<R, E>,
) -> Result<f64, E> {
    slowest_after(ranks, runs, || Ok(()), |()| work())
}

/// The same of work on what is made ready before each run.
fn slowest_after<P, R, E>(
    ranks: &Ranks,
    runs: usize,
    mut prepare: impl FnMut() -> Result<P, E>,
    mut work: impl FnMut(P) -> Result<R, E>,
) -> Result<f64, E> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let ready = prepare()?;
        ranks.barrier();
        let started = Instant::now();
        let made = std::hint::black_box(work(ready)?);
        let own = started.elapsed().as_secs_f64();
        drop(made);
        let all = ranks.all_gather(&[own]);
        times.push(all.into_iter().fold(0.0, f64::max));
    }
    let mut time = [statistics::median(&times)];
    ranks.from_first(&mut time);
    Ok(time[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::layouts;

    #[test]
    fn rounds_are_spread_over_the_runs_of_a_layout() {
        let due = |of, rounds| Vec::from_iter((0..of).filter(|run| is_due(*run, of, rounds)));
        assert_eq!(due(10, 1), [5]);
        assert_eq!(due(10, 4), [2, 4, 7, 9]);
        assert_eq!(due(3, 4), [0, 1, 2]);
        assert_eq!(due(1, 1), [0]);
        for of in 1..30 {
            assert_eq!(due(of, 4).len(), of.min(4));
        }
    }

    #[test]
    fn only_where_others_multiply_is_rank_0_a_master() {
        let has_master = |name: &str, m, ranks| {
            let case = Case {
                shape: Shape::new(m, 90, 7),
                ranks,
                panel: 7,
                gathers: true,
            };
            let layouts = layouts::<f32>();
            let products = products(layouts.iter().filter(|one| one.name() == name), &case);
            assert_eq!(products.len(), 1, "{name}");
            products[0].has_master
        };
        assert!(has_master("point-to-point", 100, 2) && has_master("point-to-point", 1, 3));
        // Alone, or where C is empty, it would measure nothing.
        assert!(!has_master("point-to-point", 100, 1));
        assert!(!has_master("point-to-point", 0, 1) && !has_master("point-to-point", 0, 2));
        assert!(!has_master("scatter-rows", 100, 2) && !has_master("summa", 100, 4));
    }
}
