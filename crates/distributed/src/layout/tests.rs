//! What holds for every layout, whatever shape and rank count.

use gpu_gemm::Shape;

use super::{Layout, layouts, overlapped, panel, summa};
use crate::model::tests::plain;
use crate::model::{Bytes, Case, Gpus, Machine, Waited};

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
fn every_element_of_c_is_computed_by_one_rank() {
    for layout in layouts::<f32>() {
        for case in cases() {
            let Shape { m, n, .. } = case.shape;
            let blocks = layout.blocks(&case);
            assert_eq!(blocks.len(), case.ranks);
            let mut computed = vec![0; m * n];
            for block in blocks {
                for row in block.rows {
                    block
                        .columns
                        .clone()
                        .for_each(|column| computed[row * n + column] += 1);
                }
            }
            assert_eq!(computed, vec![1; m * n], "{} {case:?}", layout.name());
        }
    }
}

#[test]
fn all_but_rank_0_send_their_blocks_of_c_and_one_rank_sends_nothing() {
    for layout in layouts::<f32>() {
        for case in cases() {
            let blocks = layout.blocks(&case);
            for (rank, block) in blocks.iter().enumerate() {
                let sent = layout.sent(&case, rank);
                let elements = block.rows.len() * block.columns.len();
                let expected = if rank == 0 { 0 } else { elements };
                assert_eq!(sent.collect.elements as usize, expected);
                if case.ranks == 1 {
                    assert_eq!(sent, Default::default(), "{}", layout.name());
                }
            }
        }
    }
}

#[test]
fn ranks_that_keep_their_blocks_send_nothing_of_c_and_make_room_for_no_more() {
    for layout in layouts::<f32>() {
        for gathered in cases() {
            let kept = Case {
                gathers: false,
                ..gathered
            };
            for rank in 0..kept.ranks {
                let (sent, kept) = (layout.sent(&gathered, rank), layout.sent(&kept, rank));
                assert_eq!(kept.collect, Default::default());
                assert_eq!(
                    (sent.distribute, sent.multiply),
                    (kept.distribute, kept.multiply)
                );
            }
            let cost = |case| layout.cost(case, &plain(), Bytes::each(4));
            let (sent, kept) = (cost(&gathered), cost(&kept));
            assert_eq!(kept.collect_s, 0.0, "{}", layout.name());
            assert!(kept.distribute_s <= sent.distribute_s);
            assert_eq!((sent.compute_s, sent.wait_s), (kept.compute_s, kept.wait_s));
        }
    }
}

#[test]
fn panels_are_as_wide_as_asked_and_else_a_quarter_on_gpus_and_256_on_cpus() {
    let shape = Shape::new(9, 5000, 4098);
    assert_eq!(panel(Some(3), shape, true), 3);
    assert_eq!(panel(None, shape, true), 1280);
    assert_eq!(panel(None, shape, false), 256);
    assert_eq!(panel(None, Shape::new(5000, 20, 5000), true), 256);
}

#[test]
fn a_cost_is_never_negative_and_one_rank_only_computes() {
    for layout in layouts::<f32>() {
        for case in cases() {
            let cost = layout.cost(&case, &plain(), Bytes::each(4));
            assert!(cost.to_array().iter().all(|seconds| *seconds >= 0.0));
            if case.ranks == 1 {
                assert_eq!(cost.total(), cost.compute_s, "{}", layout.name());
            }
        }
    }
}

#[test]
fn a_and_b_cost_the_bytes_of_inputs_and_c_those_of_sums() {
    let beside_gpus = Machine {
        gpus: Some(Gpus::default()),
        ..plain()
    };
    let mixed = Bytes { inputs: 2, sums: 4 };
    for machine in [plain(), beside_gpus] {
        for layout in layouts::<f32>() {
            for case in cases() {
                let of = |bytes| layout.cost(&case, &machine, bytes);
                let (cost, inputs, sums) = (of(mixed), of(Bytes::each(2)), of(Bytes::each(4)));
                let name = format!("{} {case:?}", layout.name());
                assert_eq!(cost.distribute_s, inputs.distribute_s, "{name}");
                assert_eq!(cost.wait_s, inputs.wait_s, "{name}");
                assert_eq!(cost.compute_s, inputs.compute_s, "{name}");
                assert_eq!(cost.collect_s, sums.collect_s, "{name}");
            }
        }
    }
}

#[test]
fn what_ranks_wait_for_beside_a_product_is_that_part_of_a_message() {
    let case = Case {
        shape: Shape::cube(100),
        ranks: 2,
        panel: 50,
        gathers: true,
    };
    // In microseconds: latency, and 4 bytes an element. Two messages of 3750 elements are a panel
    // of `overlapped`, one of 5000 is a panel of `summa`, whose rank 1 has all that it needs of A.
    let (panel, of_b) = (2.0 * (1.0 + 15.0), 1.0 + 20.0);
    for (first, messages, broadcasts) in [(7.0, 5.0, 3.0), (0.3, 0.2, 0.5)] {
        let waited = Waited {
            first,
            messages,
            broadcasts,
        };
        let machine = Machine { waited, ..plain() };
        let cost = |layout: &dyn Layout| layout.cost(&case, &machine, Bytes::each(4));
        let (sent, broadcast) = (cost(&overlapped::Overlapped), cost(&summa::Summa));
        let near = |seconds: f64, microseconds: f64| (seconds * 1e6 - microseconds).abs() < 1e-6;
        assert!(near(sent.distribute_s, first.max(1.0) * panel), "{sent:?}");
        assert!(near(sent.wait_s, messages * panel), "{sent:?}");
        let expected = of_b + broadcasts * of_b;
        assert!(near(broadcast.wait_s, expected), "{broadcast:?}");
    }
}

#[test]
fn names_are_distinct() {
    let names = layouts::<f64>().map(Layout::name);
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len());
}
