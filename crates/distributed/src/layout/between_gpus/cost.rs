//! What the layouts should take between GPUs: the critical path through what the files beside this
//! one do, of parts that were timed one by one ([`Gpus`]).
//!
//! ```text
//! distribute   rank 0 makes room for C and copies parts to its GPU; then the others' travel
//! compute      products on the GPU
//! wait         what of a panel's way the product before it does not hide
//! collect      each rank copies its block of C to the host, which sends it to rank 0
//! ```

use std::ops::Range;

use gpu_gemm::Shape;

use super::scattered_parts;
use crate::comm::transport::Way;
use crate::layout::broadcasts::Distribution;
use crate::layout::of_c_on_first;
use crate::layout::scatter_rows::collecting;
use crate::model::{Bytes, Case, Cost, Gpus, Lie, Machine, Travel, waiting};
use crate::share_out::{Block, Grid};
use crate::volume::Volume;

/// A case, and what is known of the machine.
pub(crate) struct Costs<'a> {
    case: &'a Case,
    grid: Grid,
    machine: &'a Machine,
    gpus: &'a Gpus,
    of_element: Bytes,
}

impl<'a> Costs<'a> {
    /// None of ranks without GPUs.
    pub fn new(
        case: &'a Case,
        grid: Grid,
        machine: &'a Machine,
        of_element: Bytes,
    ) -> Option<Self> {
        let gpus = machine.gpus.as_ref()?;
        Some(Costs {
            case,
            grid,
            machine,
            gpus,
            of_element,
        })
    }

    /// `scatter-rows` and `scatter-blocks`.
    pub fn scatter(&self) -> Cost {
        let shape = self.case.shape;
        let block = self.grid.block(shape, 0);
        let own = Shape::new(block.rows.len(), block.columns.len(), shape.k);
        Cost {
            distribute_s: self.distributing(|rank| scattered_parts(shape, self.grid, rank)),
            compute_s: self.machine.multiplying_on_gpu(self.gpus, own, false),
            collect_s: self.collecting(),
            ..Cost::default()
        }
    }

    /// `overlapped`.
    pub fn overlapped(&self, panels: &[Range<usize>]) -> Cost {
        let block = self.grid.block(self.case.shape, 0);
        let timed = |panel: &Range<usize>| {
            let product = Shape::new(block.rows.len(), block.columns.len(), panel.len());
            (self.scattering(panel.len()), self.panel(product))
        };
        let panels: Vec<_> = panels.iter().map(timed).collect();
        let first = panels.first().map_or(0.0, |(travel, _)| travel.total());
        Cost {
            distribute_s: self.making_room() + first,
            compute_s: panels.iter().map(|(_, multiplying)| multiplying).sum(),
            wait_s: waiting(&panels, self.gpus.hidden),
            collect_s: self.collecting(),
            ..Cost::default()
        }
    }

    /// `summa` and `broadcast-b`.
    pub(in crate::layout) fn broadcasts(&self, distribution: &Distribution) -> Cost {
        let case = self.case;
        let timed = |panel: &Range<usize>| {
            let product = distribution.product(case, panel);
            (self.broadcasting(distribution, panel), self.panel(product))
        };
        let panels: Vec<_> = distribution.panels(case).iter().map(timed).collect();
        let first = panels.first().map_or(0.0, |(travel, _)| travel.total());
        let hidden = match distribution.along_row {
            Some(_) => self.gpus.hidden_broadcasts,
            None => self.gpus.hidden_columns,
        };
        Cost {
            distribute_s: self.distributing(|rank| distribution.held(case, rank)),
            compute_s: panels.iter().map(|(_, multiplying)| multiplying).sum(),
            wait_s: first + waiting(&panels, hidden),
            collect_s: self.collecting(),
            ..Cost::default()
        }
    }

    /// How long rank 0 multiplies what it has of a panel.
    fn panel(&self, product: Shape) -> f64 {
        let adds = product.k < self.case.shape.k;
        self.machine.multiplying_on_gpu(self.gpus, product, adds)
    }

    /// Of a part of A or B.
    fn bytes(&self, rows: usize, columns: usize) -> f64 {
        rows as f64 * columns as f64 * self.of_element.inputs as f64
    }

    /// How long rows are that do not lie one after the other in a matrix of so many columns.
    fn row_bytes(&self, rows: usize, columns: usize, of_columns: usize) -> Option<f64> {
        let apart = rows > 1 && columns < of_columns;
        apart.then_some(self.bytes(1, columns))
    }

    /// Rank 0's room for C on the host.
    fn making_room(&self) -> f64 {
        let of_c = of_c_on_first(self.case, self.grid);
        self.machine.zeroing(of_c.bytes(self.of_element))
    }

    /// From rank 0's host memory to its GPU.
    fn uploading(&self, rows: usize, columns: usize, of_columns: usize) -> f64 {
        let apart = self.row_bytes(rows, columns, of_columns);
        let bytes = self.bytes(rows, columns);
        self.machine.copying(&self.gpus.uploads, apart, bytes)
    }

    /// Until each rank has what it needs of A and B in its GPU's memory (`parts.rs`).
    fn distributing(&self, needed: impl Fn(usize) -> (Block, Block)) -> f64 {
        let (machine, gpus, shape) = (self.machine, self.gpus, self.case.shape);
        let upload = |of_a: bool, block: &Block| {
            let of_columns = if of_a { shape.k } else { shape.n };
            self.uploading(block.rows.len(), block.columns.len(), of_columns)
        };
        let elements = |(a, b): &(Block, Block)| {
            let of = |block: &Block| block.rows.len() * block.columns.len();
            of(a) + of(b)
        };
        let others: Vec<_> = (1..self.case.ranks).map(&needed).collect();
        let (own_a, own_b) = needed(0);
        let mut seconds = self.making_room();
        if gpus.way.has_nccl() {
            // Each part once, and then all messages together.
            let mut copied = vec![(true, own_a), (false, own_b)];
            for (a, b) in &others {
                for part in [(true, a.clone()), (false, b.clone())] {
                    if !copied.contains(&part) {
                        copied.push(part);
                    }
                }
            }
            let uploads = copied.iter().map(|(of_a, block)| upload(*of_a, block));
            seconds += uploads.sum::<f64>();
            let bytes = self.bytes(1, others.iter().map(elements).sum());
            return seconds + machine.copying(&gpus.parts, None, bytes);
        }
        seconds += upload(true, &own_a) + upload(false, &own_b);
        // MPI sends one after the other; only the last rank's copy to its GPU is not beside that.
        let mut left = others.len();
        for parts in &others {
            left -= 1;
            let elements = elements(parts);
            seconds += match gpus.way {
                Way::Pinned if left > 0 => {
                    let message = Volume::of(1, elements as u64);
                    machine.sending(message, Lie::Apart, self.of_element.inputs)
                }
                _ => machine.copying(&gpus.parts, None, self.bytes(1, elements)),
            };
        }
        seconds
    }

    /// A panel of `overlapped`, on its way from rank 0 to all ranks.
    fn scattering(&self, width: usize) -> Travel {
        let (machine, gpus) = (self.machine, self.gpus);
        let Shape { m, n, k } = self.case.shape;
        let own = self.grid.block(self.case.shape, 0).rows.len();
        let others = (1..self.case.ranks).map(|rank| self.grid.block(self.case.shape, rank));
        let others: Vec<_> = others.filter(|block| !block.is_empty()).collect();
        let by_nccl = gpus.way.has_nccl() && self.case.ranks > 1;
        let rows = if by_nccl { m } else { own };
        let copies_s = self.uploading(rows, width, k) + self.uploading(width, n, n);
        let of_b = self.bytes(width, n);
        let messages_s = match by_nccl {
            true => {
                let of_a = others
                    .iter()
                    .map(|block| self.bytes(block.rows.len(), width));
                let bytes = of_a.sum::<f64>() + others.len() as f64 * of_b;
                machine.copying(&gpus.parts, None, bytes)
            }
            false => {
                let of_rank = |block: &Block| {
                    let of_a = self.bytes(block.rows.len(), width);
                    let apart = self.row_bytes(block.rows.len(), width, k);
                    machine.copying(&gpus.columns, apart, of_a)
                        + machine.copying(&gpus.rows, None, of_b)
                };
                others.iter().map(of_rank).sum()
            }
        };
        Travel {
            copies_s,
            messages_s,
        }
    }

    /// A panel: what there is of A along a row of the grid, then what there is of B along a column.
    fn broadcasting(&self, distribution: &Distribution, panel: &Range<usize>) -> Travel {
        let Shape { m, n, k } = distribution.product(self.case, panel);
        let along_row = match distribution.along_row {
            Some(_) => {
                let (of_a, _) = distribution.held(self.case, 0);
                let apart = self.row_bytes(m, k, of_a.columns.len());
                self.broadcast(self.grid.columns, m * k, apart)
            }
            None => 0.0,
        };
        let (_, of_b) = distribution.held(self.case, 0);
        let apart = self.row_bytes(k, n, of_b.columns.len());
        Travel {
            copies_s: 0.0,
            messages_s: along_row + self.broadcast(self.grid.rows, k * n, apart),
        }
    }

    /// Of so many elements to a line of ranks. All read from the same GPU at a time; NCCL hands
    /// pieces on from rank to rank, so each further one adds a latency; MPI needs a step for each
    /// bit of the number of ranks.
    fn broadcast(&self, line: usize, elements: usize, apart: Option<f64>) -> f64 {
        if line < 2 || elements == 0 {
            return 0.0;
        }
        let (machine, gpus) = (self.machine, self.gpus);
        let of = |elements| machine.copying(&gpus.broadcasts, apart, self.bytes(1, elements));
        let to_one = of(elements);
        let steps = f64::from(line.next_power_of_two().trailing_zeros());
        match gpus.way {
            Way::Peer => of((line - 1) * elements),
            Way::Nccl => {
                let latency = machine.copying(&gpus.broadcasts, None, 1.0);
                to_one + (line - 2) as f64 * latency
            }
            Way::Mpi => steps * to_one,
            // Only the first and the last step have a copy from or to a GPU.
            Way::Pinned => {
                let message = Volume::of(1, elements as u64);
                let step = machine.sending(message, Lie::Together, self.of_element.inputs);
                to_one + (steps - 1.0) * step
            }
        }
    }

    /// Until rank 0 has C, or each rank its block.
    fn collecting(&self) -> f64 {
        let block = self.grid.block(self.case.shape, 0);
        let (rows, columns) = (block.rows.len(), block.columns.len());
        let of_columns = match self.case.gathers {
            true => self.case.shape.n,
            false => columns,
        };
        self.fetching(rows, columns, of_columns)
            + collecting(self.case, self.grid, self.machine, self.of_element)
    }

    /// From a GPU to its host, to rows of a matrix of so many columns.
    fn fetching(&self, rows: usize, columns: usize, of_columns: usize) -> f64 {
        let of_row = (columns * self.of_element.sums) as f64;
        let apart = (rows > 1 && columns < of_columns).then_some(of_row);
        let bytes = rows as f64 * of_row;
        self.machine.copying(&self.gpus.fetches, apart, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::layouts;
    use crate::model::tests::plain;
    use crate::model::{Copied, ResidentProduct, Timed};

    /// Seconds a byte, which are far apart, and 1 s or 2 s a flop, if it adds to C.
    fn machine(way: Way, hidden: f64) -> Machine {
        let copied = |row_bytes, seconds| Copied {
            row_bytes,
            bytes: 1.0,
            seconds,
        };
        let both = |together, apart| vec![copied(None, together), copied(Some(4.0), apart)];
        let product = |adds, seconds| ResidentProduct {
            m: 2,
            n: 2,
            k: 2,
            adds,
            seconds,
        };
        let message = |lie, seconds| Timed {
            lie,
            bytes: 1.0,
            seconds,
        };
        let gpus = Gpus {
            way,
            copy_threads: 1,
            uploads: both(1.0, 2.0),
            parts: vec![copied(None, 10.0)],
            columns: both(20.0, 25.0),
            rows: vec![copied(None, 30.0)],
            broadcasts: both(100.0, 200.0),
            fetches: both(1e3, 2e3),
            products: vec![product(false, 16.0), product(true, 32.0)],
            hidden: Some(hidden),
            hidden_broadcasts: Some(hidden),
            // As different as it can be.
            hidden_columns: Some(1.0 - hidden),
        };
        Machine {
            messages: vec![message(Lie::Together, 1e4), message(Lie::Apart, 1e5)],
            gpus: Some(gpus),
            ..plain()
        }
    }

    /// What a layout costs: to distribute, compute, wait and collect.
    fn cost(name: &str, machine: &Machine, shape: Shape, ranks: usize, panel: usize) -> [f64; 4] {
        let case = Case {
            shape,
            ranks,
            panel,
            gathers: true,
        };
        let layouts = layouts::<f32>();
        let layout = layouts.iter().find(|layout| layout.name() == name);
        let cost = layout.unwrap().cost(&case, machine, Bytes::each(1));
        assert_eq!(cost.idle_s, 0.0);
        let seconds = [
            cost.distribute_s,
            cost.compute_s,
            cost.wait_s,
            cost.collect_s,
        ];
        seconds.map(|seconds| (seconds * 1e6).round() / 1e6)
    }

    /// Blocks of 2 x 6 elements: rank 0 receives one, after both were copied to the host.
    const COLLECT: f64 = 12.0 * 1e3 + 12.0 * 1e5;

    #[test]
    fn a_block_that_its_rank_keeps_is_copied_to_the_host_and_lies_together_there() {
        let case = Case {
            shape: Shape::new(4, 6, 8),
            ranks: 2,
            panel: 4,
            gathers: false,
        };
        let (grid, machine) = (
            Grid {
                rows: 1,
                columns: 2,
            },
            machine(Way::Nccl, 0.0),
        );
        let costs = Costs::new(&case, grid, &machine, Bytes::each(1)).unwrap();
        assert_eq!(costs.collecting(), 12.0 * 1e3);
    }

    #[test]
    fn nccl_sends_from_the_first_gpu_to_which_each_part_is_copied_once() {
        let machine = machine(Way::Nccl, 0.0);
        let cost = cost("scatter-rows", &machine, Shape::new(4, 6, 8), 2, 4);
        // Two halves of A of 16 bytes and B's 48 are copied; one half and B are sent.
        let distribute = (16.0 + 48.0 + 16.0) + 64.0 * 10.0;
        assert_eq!(cost, [distribute, 192.0, 0.0, COLLECT]);
    }

    #[test]
    fn mpi_sends_from_the_host_and_all_but_the_last_copy_to_a_gpu_are_beside_that() {
        let by = |way, ranks| {
            let shape = Shape::new(2 * ranks, 6, 8);
            cost("scatter-rows", &machine(way, 0.0), shape, ranks, 4)[0]
        };
        let own = 16.0 + 48.0;
        assert_eq!(by(Way::Pinned, 1), own);
        assert_eq!(by(Way::Pinned, 2), own + 64.0 * 10.0);
        assert_eq!(by(Way::Pinned, 3), own + 64.0 * 1e5 + 64.0 * 10.0);
        assert_eq!(by(Way::Mpi, 3), own + 2.0 * 64.0 * 10.0);
    }

    #[test]
    fn a_panel_from_the_first_rank_is_copied_and_sent_and_partly_hidden() {
        let shape = Shape::new(4, 6, 8);
        // 4 x 4 of A, whose rows lie apart, and 4 x 6 of B; half of that A and B are sent.
        let (copies, messages) = (16.0 * 2.0 + 24.0, 32.0 * 10.0);
        // 2 x 6 x 4, each of two, at 2 s a flop.
        let multiplying = 192.0;
        let of = |hidden| cost("overlapped", &machine(Way::Nccl, hidden), shape, 2, 4);
        let expected = [copies + messages, 2.0 * multiplying, messages, COLLECT];
        assert_eq!(of(0.0), expected);
        assert_eq!(of(1.0)[2], messages - (multiplying - copies));
        // Rank 0 copies its half of A alone; the other half it copies together on the host.
        let own = 8.0 * 2.0 + 24.0;
        let sent = 8.0 * 25.0 + 24.0 * 30.0;
        let pinned = cost("overlapped", &machine(Way::Pinned, 0.0), shape, 2, 4);
        assert_eq!(pinned[0], own + sent);
    }

    #[test]
    fn a_panel_of_summa_is_broadcast_along_lines_of_more_than_one_rank() {
        // A grid of 1 x 2: half of A's columns, of which panels are two, and half of B's.
        let machine = machine(Way::Nccl, 0.5);
        let cost = cost("summa", &machine, Shape::new(4, 6, 8), 2, 2);
        let distribute = 2.0 * (16.0 * 2.0 + 24.0 * 2.0) + 40.0 * 10.0;
        let travelling = 8.0 * 200.0;
        let multiplying = 2.0 * 48.0;
        let wait = travelling + 3.0 * (travelling - 0.5 * multiplying);
        // Blocks of 4 x 3 are copied to rows of C.
        let collect = 12.0 * 2e3 + 12.0 * 1e5;
        assert_eq!(cost, [distribute, 4.0 * multiplying, wait, collect]);
    }

    #[test]
    fn a_b_on_the_first_gpu_is_copied_there_and_broadcast_while_ranks_wait_or_multiply() {
        let shape = Shape::new(4, 6, 8);
        let cost = |way| cost("broadcast-b", &machine(way, 0.0), shape, 2, 2);
        // By NCCL both halves of A of 16 bytes are on rank 0's GPU first; B, 48, stays there.
        assert_eq!(cost(Way::Nccl)[0], 16.0 + 48.0 + 16.0 + 16.0 * 10.0);
        assert_eq!(cost(Way::Pinned)[0], 16.0 + 48.0 + 16.0 * 10.0);
        // Three panels of 8 x 2, whose rows lie apart, and products of 2 x 2 x 8 at 1 s a flop.
        let (travelling, multiplying) = (16.0 * 200.0, 64.0);
        for way in [Way::Peer, Way::Nccl, Way::Mpi, Way::Pinned] {
            let [_, compute, wait, collect] = cost(way);
            assert_eq!((compute, collect), (3.0 * multiplying, COLLECT));
            assert_eq!(wait, travelling + 2.0 * (travelling - multiplying));
        }
    }

    #[test]
    fn a_longer_line_costs_its_readers_time_nccl_latencies_and_mpi_steps() {
        let case = Case {
            shape: Shape::cube(8),
            ranks: 4,
            panel: 4,
            gathers: true,
        };
        let of = |way, line| {
            let machine = machine(way, 0.0);
            let costs = Costs::new(&case, Grid::column(4), &machine, Bytes::each(1)).unwrap();
            costs.broadcast(line, 50, None)
        };
        let to_one = 50.0 * 100.0;
        for way in [Way::Peer, Way::Nccl, Way::Mpi, Way::Pinned] {
            assert_eq!(of(way, 1), 0.0);
            assert_eq!(of(way, 2), to_one);
        }
        assert_eq!(of(Way::Peer, 4), 3.0 * to_one);
        assert_eq!(of(Way::Nccl, 4), to_one + 2.0 * 100.0);
        assert_eq!(of(Way::Mpi, 4), 2.0 * to_one);
        assert_eq!(of(Way::Pinned, 4), to_one + 50.0 * 1e4);
    }

    #[test]
    fn parts_that_go_through_the_hosts_memory_cost_what_they_do_without_gpus() {
        let (with, without) = (machine(Way::Nccl, 1.0), plain());
        let without = Machine {
            messages: with.messages.clone(),
            ..without
        };
        let of = |machine: &Machine| cost("point-to-point", machine, Shape::cube(8), 2, 4);
        assert_eq!(of(&with), of(&without));
    }
}
