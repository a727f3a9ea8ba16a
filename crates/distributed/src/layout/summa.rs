//! SUMMA: ranks in a grid hold blocks of A, B and C, and nothing twice; panels of A are broadcast
//! along rows of the grid, panels of B along columns.
//!
//! Over `scatter-blocks`: no rank sends for all others, and none holds more than its share of A,
//! B and C, and two panels. On a grid of p x q = P ranks, with panels of W columns of A and rows
//! of B, a rank
//!
//! ```text
//! holds         (M K + K N + M N) / P       elements, and 2 W (M / p + N / q) of panels
//! receives      M W / p + W N / q           elements a panel, ceil(K / W) panels at least, but
//!                                           nothing of what it holds itself
//! computes    2 M N W / P                   flops a panel
//! ```
//!
//! and all ranks together receive (q-1) M K + (p-1) K N: each element of A travels to q - 1 ranks,
//! each of B to p - 1 (R. A. van de Geijn and J. Watts, "SUMMA: scalable universal matrix
//! multiplication algorithm", Concurrency: Practice and Experience 9(4), 1997). A rank so receives
//! about (M K + K N) / sqrt(P), which shrinks as ranks are added. Pipelined: the broadcasts of the
//! next panel are started before this one is multiplied. A panel ends where a rank's share of k
//! does, so that it has one owner.
//!
//! Here rank 0 has A and B, so it distributes blocks first, M K + K N elements, and collects C; in
//! programs that use SUMMA they are where they are, and stay there.

use super::broadcasts::{Distribution, OfPanels};
use crate::model::Case;
use crate::share_out::{Grid, Shares};

/// See the module.
pub struct Summa;

impl OfPanels for Summa {
    const NAME: &'static str = "summa";
    const IDEA: &'static str =
        "ranks hold blocks; panels are broadcast along rows and columns of a grid";

    fn distribution(case: &Case) -> Distribution {
        let grid = Grid::of(case.ranks, case.shape);
        let shares = |holders| Shares {
            size: case.shape.k,
            holders,
        };
        Distribution {
            grid,
            along_row: Some(shares(grid.columns)),
            along_column: shares(grid.rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use gpu_gemm::Shape;

    #[test]
    fn together_ranks_send_what_van_de_geijn_and_watts_say() {
        let (m, n, k) = (13, 11, 17);
        for ranks in 1..13 {
            let case = Case {
                shape: Shape::new(m, n, k),
                ranks,
                panel: 3,
                gathers: true,
            };
            let grid = Summa.grid(&case);
            let sent = (0..ranks).map(|rank| Summa.sent(&case, rank).multiply.elements);
            let expected = (grid.columns - 1) * m * k + (grid.rows - 1) * k * n;
            assert_eq!(sent.sum::<u64>() as usize, expected, "{ranks} ranks");
        }
    }
}
