//! B is on rank 0 alone, A and C lie in rows on their ranks: columns of B are broadcast from rank 0
//! to all others, the next ones while these are multiplied.
//!
//! Over `scatter-rows`: B is not copied to all ranks first. A rank waits for one panel of B, and
//! has room for two. So the resident time has all of B's way, from the one rank that has B to
//! every other: that is what a product takes whose A is spread over the ranks, and whose B was made
//! or read by one of them. On P ranks, with panels of W columns of B, a rank
//!
//! ```text
//! holds         (M K + M N) / P     elements; rank 0 also K N, another 2 K W of panels
//! receives       K W                elements a panel, ceil(N / W) panels; rank 0 nothing
//! computes     2 M K W / P          flops a panel
//! ```
//!
//! and rank 0 sends (P-1) K N elements, in P-1 messages a panel: as the root of broadcasts, in
//! which MPI lets ranks pass on what they have received. Before, it sends (P-1)/P M K of A.
//!
//! The grid is P x 1, as rows of A stay where they are. A panel is all of K long, so its product is
//! W finished columns of C, which a rank writes once. (Panels of W rows of B, and columns of A, as
//! `summa` has them, would have C read and written K / W times: M N / P elements each time.) A
//! panel must arrive in the 2 M K W / P flops of the one before, so all but the first are hidden as
//! long as
//!
//! ```text
//! bytes a second of the broadcast  >=  element bytes * P / (2 M) * flops a second of a rank
//! ```
//!
//! Ranks without rows take part in the broadcasts, too: a broadcast is one call of all of them.

use super::broadcasts::{Distribution, OfPanels};
use crate::model::Case;
use crate::share_out::{Grid, Shares};

/// See the module.
pub struct BroadcastB;

impl OfPanels for BroadcastB {
    const NAME: &'static str = "broadcast-b";
    const IDEA: &'static str =
        "B is on rank 0 alone, and its columns are broadcast to the ranks that have rows of A";

    fn distribution(case: &Case) -> Distribution {
        let grid = Grid::column(case.ranks);
        Distribution {
            grid,
            along_row: None,
            along_column: Shares {
                size: case.shape.n,
                holders: 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::model::tests::plain;
    use crate::model::{Bytes, Elements};
    use crate::volume::Volume;
    use gpu_gemm::Shape;

    fn case(ranks: usize, panel: usize) -> Case {
        Case {
            shape: Shape::new(13, 11, 17),
            ranks,
            panel,
            gathers: true,
        }
    }

    #[test]
    fn rows_of_a_are_scattered_first_and_all_of_b_is_broadcast_beside_the_product() {
        let (m, n, k) = (13_u64, 11, 17);
        for ranks in 1..20 {
            for (panel, panels) in [(1, 11), (3, 4), (11, 1), (40, 1)] {
                let case = case(ranks, panel);
                let others = ranks as u64 - 1;
                let rows_of_others = m - m.div_ceil(ranks as u64);
                let with_rows = others.min(m - 1);
                let sent = BroadcastB.sent(&case, 0);
                let distribute = Volume {
                    elements: rows_of_others * k,
                    messages: with_rows,
                };
                assert_eq!(sent.distribute, distribute);
                let multiply = Volume {
                    elements: others * k * n,
                    messages: others * panels,
                };
                assert_eq!(sent.multiply, multiply);
                for rank in 1..ranks {
                    let sent = BroadcastB.sent(&case, rank);
                    let nothing = Volume::default();
                    assert_eq!((sent.distribute, sent.multiply), (nothing, nothing));
                }
            }
        }
    }

    #[test]
    fn another_rank_has_room_for_two_panels_of_b_and_not_for_b() {
        let others = |ranks, panel| {
            let Elements { inputs, sums } = BroadcastB.memory(&case(ranks, panel)).others;
            (inputs, sums)
        };
        assert_eq!(others(1, 3), (0, 0));
        // 4 rows of 13, as rank 0.
        assert_eq!(others(4, 3), (3 * 17 + 2 * 3 * 17, 3 * 11));
        assert_eq!(others(3, 100), (4 * 17 + 2 * 11 * 17, 4 * 11));
        assert_eq!(others(20, 3), (17 + 2 * 3 * 17, 11));
    }

    #[test]
    fn a_resident_product_waits_for_the_first_panel_and_hides_the_others_if_ranks_have_many_rows() {
        let cost = |m| {
            let case = Case {
                shape: Shape::new(m, 1000, 1000),
                ranks: 2,
                panel: 100,
                gathers: true,
            };
            BroadcastB.cost(&case, &plain(), Bytes::of::<f32>())
        };
        // 1 µs and 1000 x 100 elements of 4 bytes at 1 GB/s.
        let panel = 1e-6 + 400e-6;
        let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
        assert!(close(cost(1000).wait_s, panel));
        assert!(close(cost(1000).compute_s, 1.0));
        // Of 2 rows, a rank multiplies a panel in 200 µs.
        assert!(close(cost(2).wait_s, panel + 9.0 * panel - 10.0 * 200e-6));
    }
}
