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
use crate::model::{Case, Gpus, Machine, Product};
use host_memory::HostMemory;

/// Flops of a product that is timed at most, unless it has few rows; and how often it is.
const FLOPS: f64 = 2e10;
const FEWEST_ROWS: usize = 256;
const PRODUCTS: usize = 5;
/// Seconds after which a product by way of a GPU is not timed again: it is never cut.
const BUDGET: f64 = 0.5;

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

/// Measures what these layouts do: messages between ranks 0 and 1, up to those that the case needs,
/// and local products while all ranks multiply that do in the layout. All ranks must call it, and
/// all get the same answer. A group of one sends nothing: its latency is zero, its bandwidth
/// infinite.
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
    let before = HostMemory::measure::<T>(ranks, case, local.gpu)?;
    let mut machine = Machine::default();
    // Of ranks with GPUs, those layouts whose parts stay there.
    let stays = |layout: &&&dyn Multiply<T>| local.gpu.is_some() && layout.moves(case).is_some();
    let in_host_memory = products(layouts.iter().filter(|layout| !stays(layout)), case);
    machine.products = timed_products(ranks, &in_host_memory, local)?;
    let moves: Vec<_> = layouts
        .iter()
        .filter_map(|layout| layout.moves(case))
        .collect();
    if let Some(gpu) = local.gpu.filter(|_| !moves.is_empty()) {
        let products = products(layouts.iter().filter(stays), case);
        let gpus = between_gpus::measure::<T>(ranks, gpu, case, &moves, &products)?;
        machine.gpus = Some(gpus);
    }
    let on_gpus = machine.gpus.as_ref().map(Gpus::flops_per_s);
    let speeds = machine.products.iter().map(|product| product.flops_per_s);
    machine.flops_per_s = speeds.chain(on_gpus).fold(0.0, f64::max);
    // The programs beside this one need a host's memory now more and now less.
    let after = HostMemory::measure::<T>(ranks, case, local.gpu)?;
    before.mean(after).tell(&mut machine);
    let panel = in_host_memory.iter().find(|product| product.is_panel);
    if let (Some(panel), true, None) = (panel, ranks.size() > 1, local.gpu) {
        let panel = LocalShape {
            shape: timed_shape(panel.shape),
            ..*panel
        };
        machine.waited = beside_products::measure(ranks, &panel, local, &machine)?;
    }
    ranks.take_sent();
    Ok(machine)
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

/// Part of a product's rows, so that it does not take long on a CPU.
fn timed_shape(shape: Shape) -> Shape {
    let Shape { m, n, k } = shape;
    let of_a_row = Shape::new(1, n, k).flops();
    let affordable = (FLOPS / of_a_row) as usize;
    Shape::new(m.min(affordable.max(FEWEST_ROWS)), n, k)
}

/// The speed of one rank in each of these products, while all multiply but a master. Each is timed
/// once in a round, so that a machine that is slow for a second is not slow for one of them alone.
fn timed_products<T: Element>(
    ranks: &Ranks,
    products: &[LocalShape],
    local: &Local<'_, T>,
) -> Result<Vec<Product>, LocalError> {
    let shape = |product: &LocalShape| match local.gpu {
        Some(_) => product.shape,
        None => timed_shape(product.shape),
    };
    let multiplies = |product: &LocalShape| ranks.rank() > 0 || !product.has_master;
    let most = |elements: fn(Shape) -> usize| {
        let own = products.iter().filter(|product| multiplies(product));
        let all = own.map(|product| elements(shape(product)));
        all.max().unwrap_or(0)
    };
    let a = vec![T::from_integer(1); most(|Shape { m, k, .. }| m * k)];
    let b = vec![T::from_integer(1); most(|Shape { n, k, .. }| k * n)];
    let mut c = vec![T::Sum::default(); most(|Shape { m, n, .. }| m * n)];
    let mut multiply = |product: &LocalShape| {
        if !multiplies(product) {
            return Ok(());
        }
        let Shape { m, n, k } = shape(product);
        let strip = local.product.rows_of_a_strip().filter(|_| product.is_panel);
        let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
        in_strips(strip, a, ViewMut::new(&mut c, m, n, n), |a, c| {
            local.product.add_product(a, b, c)
        })
    };
    let mut times = vec![Vec::new(); products.len()];
    for round in 0..PRODUCTS {
        for (product, times) in products.iter().zip(&mut times) {
            if local.gpu.is_some() && round == 0 {
                // It compiles its kernel.
                multiply(product)?;
            }
            if local.gpu.is_none() || times.iter().sum::<f64>() < BUDGET {
                times.push(slowest(ranks, 1, || multiply(product))?);
            }
        }
    }
    let speeds = products.iter().zip(&times).map(|(product, times)| {
        let shape = shape(product);
        let Shape { m, n, k } = shape;
        Product {
            m,
            n,
            k,
            flops_per_s: shape.flops() / statistics::median(times),
        }
    });
    Ok(speeds.collect())
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
