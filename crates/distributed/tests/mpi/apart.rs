//! A C that is not gathered: each rank's block is proven right in place.

use serde_json::Value;

use crate::job::{end, job};

fn records(report: &Value) -> &[Value] {
    report["records"].as_array().unwrap()
}

fn said(record: &Value) -> &str {
    record["verification"].as_str().unwrap()
}

pub fn blocks_are_proven_where_they_lie_and_c_does_not_travel() {
    for dtype in ["f32", "f64", "i32"] {
        let arguments = format!(
            "--layout all --scaling 1,3,4 --shapes 130x90x70,5x7x0,0x3x2,2x3x40 --panel 16 --dtype {dtype} \
             --alpha -2 --proof distributed --runs 2 --format json"
        );
        let report = end(job(4, &arguments)).report();
        assert_eq!(records(&report).len(), 5 * 3 * 4);
        for record in records(&report) {
            let name = format!("{dtype} {} on {}", record["layout"], record["ranks"]);
            assert_eq!(record["proven"], true, "{name}: {}", said(record));
            assert_eq!(record["gathered"], false, "{name}");
            let is_empty = record["m"] == 0;
            assert!(said(record).contains(if is_empty {
                "no element"
            } else {
                "where it lies"
            }));
            for rank in record["per_rank"].as_array().unwrap() {
                assert_eq!(rank["sent"], rank["formula"], "{name}");
                assert_eq!(rank["sent"]["collect"]["elements"], 0, "{name}");
            }
        }
    }
}

pub fn blocks_of_a_c_of_f32_are_proven_where_they_lie() {
    let arguments = "--layout all --scaling 1,3,4 --shapes 13x21x37,0x3x2,2x3x40 --panel 16 \
                     --dtype bf16-f32 --kernel auto --device sim --alpha -2 --proof distributed \
                     --runs 1 --format json";
    let report = end(job(4, arguments)).report();
    let layouts = distributed::layout::layouts::<f32>().len();
    assert_eq!(records(&report).len(), layouts * 3 * 3);
    for record in records(&report) {
        let name = format!("{} on {}", record["layout"], record["ranks"]);
        assert_eq!(record["proven"], true, "{name}: {}", said(record));
        assert_eq!(record["gathered"], false, "{name}");
        let is_exact = record["m"] == 0 || said(record).contains("Freivalds' check on integers");
        assert!(is_exact, "{name}: {}", said(record));
        assert_eq!(record["sent_bytes"], record["formula_bytes"], "{name}");
    }
}

pub fn a_wrong_element_in_any_ranks_block_is_noticed() {
    let of_16_bits = "--dtype bf16-f32 --kernel auto --device sim";
    for (planted, more) in [(0, ""), (1, ""), (2, ""), (1, of_16_bits)] {
        let arguments = format!(
            "--layout all --m 50 --n 40 --k 30 --panel 16 --proof distributed --plant-on-rank {planted} \
             --format json {more}"
        );
        let ended = end(job(3, &arguments));
        let report: Value = serde_json::from_str(&ended.out).expect("a report as JSON");
        assert_eq!(ended.code, Some(1), "{}", ended.notes);
        for record in records(&report) {
            let of_a_master = planted == 0 && record["layout"] == "point-to-point";
            assert_eq!(record["proven"], of_a_master, "{record}");
            let named = said(record).contains(&format!("rank {planted}, whose block"));
            assert_eq!(named, !of_a_master, "{}", said(record));
        }
    }
}

pub fn what_needs_all_of_c_is_refused_beside_it() {
    for option in ["--beta 1", "--show 3", "--out c.npy"] {
        let ended = end(job(2, &format!("--size 8 --proof distributed {option}")));
        assert_eq!(ended.code, Some(2), "{option}: {}", ended.notes);
        ended.assert_failed(&["--proof distributed leaves C where it is computed"]);
    }
}
