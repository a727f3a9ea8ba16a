//! What holds for every layout, whatever shape and rank count.

use gpu_gemm::Shape;

use super::scatter_blocks::ScatterBlocks;
use super::scatter_rows::ScatterRows;
use super::{Layout, layouts, panel};
use crate::model::Case;
use crate::model::tests::plain;
use crate::volume::Bytes;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (m, n, k) in [
        (7, 5, 3),
        (1, 9, 4),
        (9, 1, 4),
        (2, 2, 0),
        (0, 3, 2),
        (3, 0, 2),
        (20, 30, 10),
    ] {
        for ranks in 1..9 {
            let shape = Shape::new(m, n, k);
            cases.push(Case {
                shape,
                ranks,
                panel: 4,
                gathers: true,
            });
        }
    }
    cases
}

#[test]
fn panels_are_as_wide_as_asked_and_else_a_quarter_on_gpus_and_256_on_cpus() {
    let shape = Shape::new(9, 7, 4098);
    assert_eq!(panel(Some(3), shape, true), 3);
    assert_eq!(panel(None, shape, true), 1280);
    assert_eq!(panel(None, shape, false), 256);
    assert_eq!(panel(None, Shape::new(5000, 5000, 20), true), 256);
}

#[test]
fn a_cost_is_never_negative_and_one_rank_only_computes() {
    for layout in layouts::<f32>() {
        for case in cases() {
            let cost = layout.cost(&case, &plain(), Bytes::of(gpu_gemm::ElementType::F32));
            assert!(cost.to_array().iter().all(|seconds| *seconds >= 0.0));
            if case.ranks == 1 {
                assert_eq!(cost.total(), cost.compute_s, "{}", layout.name());
            }
        }
    }
}

#[test]
fn a_and_b_cost_the_bytes_of_inputs_and_c_those_of_sums() {
    let of = |inputs, sums| Bytes { inputs, sums };
    for layout in layouts::<f32>() {
        for case in cases() {
            let cost = |bytes| layout.cost(&case, &plain(), bytes);
            let (mixed, inputs, sums) = (cost(of(2, 4)), cost(of(2, 2)), cost(of(4, 4)));
            let name = format!("{} {case:?}", layout.name());
            assert_eq!(mixed.distribute_s, inputs.distribute_s, "{name}");
            assert_eq!(mixed.wait_s, inputs.wait_s, "{name}");
            assert_eq!(mixed.compute_s, inputs.compute_s, "{name}");
            assert_eq!(mixed.collect_s, sums.collect_s, "{name}");
        }
    }
}

#[test]
fn the_formulas_of_the_report_hold_for_even_shares() {
    let (m, n, k) = (24, 24, 7);
    for (ranks, p, q) in [(1, 1, 1), (2, 2, 1), (4, 2, 2), (6, 3, 2), (16, 4, 4)] {
        let case = Case {
            shape: Shape::new(m, n, k),
            ranks,
            panel: 4,
            gathers: true,
        };
        let elements = |layout: &dyn Layout| layout.sent(&case, 0).distribute.elements as usize;
        let others = ranks - 1;
        let (rows, blocks) = (elements(&ScatterRows), elements(&ScatterBlocks));
        if m % ranks == 0 {
            assert_eq!(rows, others * (m * k / ranks + k * n));
        }
        assert_eq!(blocks, others * (m * k / p + k * n / q));
    }
}
