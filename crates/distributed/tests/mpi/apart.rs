//! A C that is not gathered: each rank's block is checked in place.

use serde_json::Value;

use crate::job::{end, job};

/// Sums of products of 16 bits, and what multiplies them here.
const OF_16_BITS: &str = "bf16-f32 --kernel auto --device sim";

fn records(report: &Value) -> &[Value] {
    report["records"].as_array().unwrap()
}

fn said(record: &Value) -> &str {
    record["verification"].as_str().unwrap()
}

pub fn blocks_pass_where_they_lie_and_c_does_not_travel() {
    const SHAPES: &str = "130x90x70,5x7x0,0x3x2,2x3x40";
    for (dtype, shapes) in [
        ("f32", SHAPES),
        ("f64", SHAPES),
        ("i32", SHAPES),
        (OF_16_BITS, "13x21x37,0x3x2,2x3x40"),
    ] {
        let arguments = format!(
            "--layout all --scaling 1,3,4 --shapes {shapes} --panel 16 --dtype {dtype} --alpha -2 \
             --check distributed --runs 1 --format json"
        );
        let report = end(job(4, &arguments)).report();
        let layouts = distributed::layout::layouts::<f32>().len();
        let count = layouts * 3 * shapes.split(',').count();
        assert_eq!(records(&report).len(), count);
        for record in records(&report) {
            let name = format!("{dtype} {} on {}", record["layout"], record["ranks"]);
            assert_eq!(record["passed"], true, "{name}: {}", said(record));
            assert_eq!(record["gathered"], false, "{name}");
            let parts: &[&str] = match record["m"] == 0 {
                true => &["no element"],
                false => &["where it is", "Freivalds' check on integers"],
            };
            for part in parts {
                assert!(said(record).contains(part), "{name}: {}", said(record));
            }
            for rank in record["per_rank"].as_array().unwrap() {
                assert_eq!(rank["sent"], rank["formula"], "{name}");
                assert_eq!(rank["sent"]["collect"]["elements"], 0, "{name}");
            }
            assert_eq!(record["sent_bytes"], record["formula_bytes"], "{name}");
        }
    }
}

pub fn a_wrong_element_in_any_ranks_block_is_noticed() {
    for (planted, dtype) in [(0, "f32"), (1, "f32"), (2, "f32"), (1, OF_16_BITS)] {
        let arguments = format!(
            "--layout all --m 50 --n 40 --k 30 --panel 16 --check distributed --plant-on-rank {planted} \
             --format json --dtype {dtype}"
        );
        let ended = end(job(3, &arguments));
        let report: Value = serde_json::from_str(&ended.out).expect("a report as JSON");
        assert_eq!(ended.code, Some(1), "{}", ended.notes);
        for record in records(&report) {
            let of_a_master = planted == 0 && record["layout"] == "point-to-point";
            assert_eq!(record["passed"], of_a_master, "{record}");
            let named = said(record).contains(&format!("rank {planted}, whose block"));
            assert_eq!(named, !of_a_master, "{}", said(record));
        }
    }
}

pub fn what_needs_all_of_c_is_refused_beside_it() {
    for option in ["--beta 1", "--show 3", "--out c.npy"] {
        let ended = end(job(2, &format!("--size 8 --check distributed {option}")));
        assert_eq!(ended.code, Some(2), "{option}: {}", ended.notes);
        ended.assert_failed(&["--check distributed leaves C where it is computed"]);
    }
}
