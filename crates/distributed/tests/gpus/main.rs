//! Ranks with GPUs, without a GPU: the real program under a real `mpirun`, on a fake driver and a
//! fake NCCL, in every order of streams that events allow.

mod fake;
#[allow(dead_code)] // this does not need all of it
#[path = "../mpi/job.rs"]
mod job;

use std::collections::BTreeMap;
use std::process::ExitCode;

use gpu_gemm::device::ptx;
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

use fake::{Nccl, Ran, beside, number, ranks};

/// Tests, each by its name.
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        vec![$(Trial::test(stringify!($test), || {
            $test();
            Ok(())
        })),*]
    };
}

fn main() -> ExitCode {
    let trials = trials![
        every_layout_is_exact_by_nccl_in_every_order_of_streams,
        every_layout_is_exact_by_peer_access_in_every_order_of_streams,
        every_layout_is_exact_by_mpi_in_every_order_of_streams,
        every_layout_is_exact_through_page_locked_memory_in_every_order_of_streams,
        other_types_travel_as_well,
        elements_of_16_bits_are_added_up_in_f32,
        nccl_sends_elements_of_16_bits_and_c_is_fetched_as_f32,
        blocks_are_proven_where_they_lie,
        nccl_sends_the_bytes_of_the_formulas,
        panels_are_read_from_the_gpus_that_have_them_and_nccl_sends_the_rest,
        memory_is_opened_for_all_products_of_a_layout_and_closed_before_the_next_layout,
        c_is_fetched_once_and_parts_are_copied_to_the_gpu_once,
        a_product_by_way_of_the_host_copies_all_three_matrices_and_adds,
        large_parts_travel_through_page_locked_buffers,
        large_parts_arrive_in_every_order_of_streams,
        the_model_adds_up_what_gpus_were_timed_at,
        a_prediction_is_by_what_gpus_were_timed_at,
        the_resident_time_is_compute_and_wait_of_the_slowest_rank,
        the_next_panel_is_on_its_way_before_this_one_is_waited_for,
        each_rank_broadcasts_a_then_b_panel_after_panel,
        every_panel_of_a_b_on_the_first_gpu_is_broadcast_from_there,
        the_way_is_chosen_said_and_recorded,
        a_way_that_cannot_be_has_a_sentence_and_an_exit_code,
        ranks_without_a_gpu_multiply_beside_those_with_one,
        a_gpu_that_fails_ends_the_job_with_the_rank_and_the_reason,
        matrices_that_do_not_fit_end_the_job_though_nccl_would_wait,
    ];
    let why_not = job::why_not().or(ptx::why_absent().map(String::from));
    if let Some(reason) = &why_not {
        println!("these tests are ignored here: {reason}");
    }
    let trials = trials
        .into_iter()
        .map(|trial| trial.with_ignored_flag(why_not.is_some()));
    let mut arguments = Arguments::from_args();
    // Jobs have more ranks than there are cores already.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Uneven shares, shares that are no multiple of anything, fewer rows or columns than ranks, no
/// elements, and nothing to add.
const SHAPES: &str = "33x65x17,7x5x3,1x9x4,9x1x4,2x3x40,2x2x0,0x3x2,3x0x2";

/// What is in a stream is done at once, or as late as possible, by the stream that was made first
/// before others or by the last, or copies and messages are as early as possible and launches late.
const ORDERS: [&str; 4] = ["deferred=0", "deferred=1", "deferred=2", "deferred=4"];

/// Rows of C where `a[i][l] = i + l` and `b[l][j] = l + j`.
fn index_sums(m: usize, n: usize, k: usize) -> Vec<Vec<f64>> {
    let element = |i, j| (0..k).map(|l| ((i + l) * (l + j)) as f64).sum();
    (0..m)
        .map(|i| (0..n).map(|j| element(i, j)).collect())
        .collect()
}

fn records(ran: &Ran) -> Vec<Value> {
    let report = ran.ended.report();
    report["records"].as_array().unwrap().clone()
}

/// Checks each record: C, where it was gathered, and what was sent.
fn check(records: &[Value], name: &str) {
    for record in records {
        let [m, n, k] = ["m", "n", "k"].map(|key| record[key].as_u64().unwrap() as usize);
        let name = format!(
            "{name}: {} {m} x {n} x {k} on {}",
            record["layout"], record["ranks"]
        );
        assert_eq!(record["proven"], true, "{name}: {}", record["verification"]);
        if record["gathered"] == true {
            let corner: Vec<Vec<f64>> = serde_json::from_value(record["corner"].clone()).unwrap();
            assert_eq!(corner, index_sums(m, n, k), "{name}");
        }
        for rank in record["per_rank"].as_array().unwrap() {
            assert_eq!(rank["sent"], rank["formula"], "{name}");
        }
    }
}

fn exact(way: &str, more: &str) {
    for order in ORDERS {
        let arguments = format!(
            "--layout all --scaling 1,2,3,4 --shapes {SHAPES} --panel 4 --kernel naive \
             --data index-sum --show 65 --runs 1 --format json --transport {way}"
        );
        let settings = format!("gpus=4 {order} {more}");
        let ran = ranks(4, Nccl::Here, &settings, &arguments);
        let records = records(&ran);
        assert_eq!(records.len(), 6 * 4 * 8);
        check(&records, &format!("{way} {order}"));
    }
}

fn every_layout_is_exact_by_nccl_in_every_order_of_streams() {
    exact("nccl", "");
}

fn every_layout_is_exact_by_peer_access_in_every_order_of_streams() {
    exact("peer", "ipc=1");
}

fn every_layout_is_exact_by_mpi_in_every_order_of_streams() {
    exact("mpi", "mpi=1");
}

fn every_layout_is_exact_through_page_locked_memory_in_every_order_of_streams() {
    exact("pinned", "");
}

fn other_types_travel_as_well() {
    for (dtype, kernel) in [("f64", "tiled"), ("i32", "tiled")] {
        for way in ["peer", "nccl", "pinned"] {
            let arguments = format!(
                "--layout all --shapes 33x65x17 --panel 4 --dtype {dtype} --kernel {kernel} \
                 --data index-sum --show 65 --runs 1 --format json --transport {way}"
            );
            let ran = ranks(4, Nccl::Here, "gpus=4 ipc=1 deferred=1", &arguments);
            check(&records(&ran), dtype);
        }
    }
}

/// The panels' odd rows are padded for the copy engine.
fn elements_of_16_bits_are_added_up_in_f32() {
    let kernel = "warp-specialized";
    for (dtype, kernel, way, order) in [
        ("bf16", kernel, "nccl", ORDERS[1]),
        ("f16-f32", kernel, "nccl", ORDERS[2]),
        ("bf16", kernel, "peer", ORDERS[2]),
        ("bf16", "auto", "pinned", ORDERS[1]),
        ("f16", kernel, "mpi", ORDERS[2]),
    ] {
        let arguments = format!(
            "--layout all --scaling 3,4 --shapes 33x65x17,7x5x3,2x2x0,0x3x2 --panel 4 \
             --dtype {dtype} --kernel {kernel} --alpha -2 --beta 3 --runs 1 --format json \
             --transport {way}"
        );
        let settings = format!("gpus=4 mpi=1 ipc=1 {order}");
        let records = records(&ranks(4, Nccl::Here, &settings, &arguments));
        let layouts = distributed::layout::layouts::<f32>().len();
        assert_eq!(records.len(), layouts * 2 * 4);
        for record in records {
            let name = format!("{dtype} {way} {}", record["layout"]);
            let said = record["verification"].as_str().unwrap();
            assert_eq!(record["proven"], true, "{name}: {said}");
            assert!(said.starts_with("exact: "), "{name}: {said}");
            assert_eq!(record["dtype"], dtype);
            for rank in record["per_rank"].as_array().unwrap() {
                assert_eq!(rank["sent"], rank["formula"], "{name}");
            }
            assert_eq!(record["sent_bytes"], record["formula_bytes"], "{name}");
        }
    }
}

fn nccl_sends_elements_of_16_bits_and_c_is_fetched_as_f32() {
    for layout in ["scatter-rows", "overlapped", "summa"] {
        let arguments = format!(
            "--layout {layout} --shapes 16x16x32 --panel 8 --dtype bf16 --kernel warp-specialized"
        );
        let [one, two] = one_run_and_two(2, "gpus=2", &arguments);
        let record = &records(&one)[0];
        let elements = |phase: &str| {
            let ranks = record["per_rank"].as_array().unwrap().iter();
            let elements = ranks.map(|rank| rank["formula"][phase]["elements"].as_u64());
            elements.map(Option::unwrap).sum::<u64>()
        };
        let more = |is_meant: &dyn Fn(&String) -> bool| {
            bytes(&two.log, is_meant) - bytes(&one.log, is_meant)
        };
        let inputs = 2 * (elements("distribute") + elements("multiply"));
        assert_eq!(more(&|line| line.starts_with("nccl ")), inputs, "{layout}");
        let host = |to| more(&|line| line.starts_with("host ") && number(line, "to") == to);
        assert_eq!(host(1), 4 * 16 * 16, "{layout}: all of C");
        assert_eq!(host(0), 2 * 2 * 16 * 32, "{layout}: A and B");
        let collected = 4 * elements("collect");
        assert_eq!(elements("collect"), 8 * 16);
        assert_eq!(record["formula_bytes"], inputs + collected, "{layout}");
    }
}

fn blocks_are_proven_where_they_lie() {
    let arguments = "--layout all --shapes 33x65x17 --panel 4 --kernel naive --runs 1 \
                     --format json --proof distributed";
    let records = records(&ranks(4, Nccl::Here, "gpus=4 deferred=2", arguments));
    assert!(records.iter().all(|record| record["gathered"] == false));
    check(&records, "distributed");
    let arguments = "--layout all --shapes 33x65x17 --panel 4 --kernel warp-specialized --runs 1 \
                     --dtype bf16-f32 --format json --proof distributed";
    let of_f32 = self::records(&ranks(4, Nccl::Here, "gpus=4 deferred=1", arguments));
    assert!(of_f32.iter().all(|record| record["gathered"] == false));
    check(&of_f32, "distributed, bf16-f32");
}

/// Products of a call with `--runs 1`: two that are proven, and one that is timed.
const PRODUCTS: u64 = 3;

/// The logs of a call with one timed run, and with two: between them is one product. What the model
/// measures before and between them is in both.
fn one_run_and_two(number_of_ranks: usize, settings: &str, arguments: &str) -> [Ran; 2] {
    [1, 2].map(|runs| {
        let arguments = format!("{arguments} --runs {runs} --format json");
        ranks(number_of_ranks, Nccl::Here, settings, &arguments)
    })
}

/// The bytes of these lines.
fn bytes<'l>(log: &'l [String], is_meant: impl Fn(&'l String) -> bool) -> u64 {
    let meant = log.iter().filter(|line| is_meant(line));
    meant.map(|line| number(line, "bytes")).sum()
}

fn nccl_sends_the_bytes_of_the_formulas() {
    for layout in [
        "scatter-rows",
        "scatter-blocks",
        "overlapped",
        "summa",
        "broadcast-b",
    ] {
        for number_of_ranks in 2..=4 {
            let arguments = format!("--layout {layout} --shapes 33x65x17 --panel 4 --kernel naive");
            let [one, two] = one_run_and_two(number_of_ranks, "gpus=4", &arguments);
            let record = &records(&one)[0];
            let of_formula = |phase: &str| {
                let ranks = record["per_rank"].as_array().unwrap().iter();
                let elements = ranks.map(|rank| rank["formula"][phase]["elements"].as_u64());
                elements.map(Option::unwrap).sum::<u64>()
            };
            let formula = 4 * (of_formula("distribute") + of_formula("multiply"));
            let sent = |ran: &Ran| bytes(&ran.log, |line| line.starts_with("nccl "));
            assert!(formula > 0);
            let more = sent(&two) - sent(&one);
            assert_eq!(more, formula, "{layout} on {number_of_ranks}");
        }
    }
}

fn panels_are_read_from_the_gpus_that_have_them_and_nccl_sends_the_rest() {
    for layout in ["summa", "broadcast-b"] {
        for number_of_ranks in 2..=4 {
            let arguments = format!(
                "--layout {layout} --shapes 33x65x17 --panel 4 --kernel naive --transport peer"
            );
            let [one, two] = one_run_and_two(number_of_ranks, "gpus=4 ipc=1", &arguments);
            let record = &records(&one)[0];
            let of_formula = |phase: &str| {
                let ranks = record["per_rank"].as_array().unwrap().iter();
                let elements = ranks.map(|rank| rank["formula"][phase]["elements"].as_u64());
                4 * elements.map(Option::unwrap).sum::<u64>()
            };
            let more = |kind: &str| {
                let of_kind = |ran: &Ran| bytes(&ran.log, |line| line.starts_with(kind));
                of_kind(&two) - of_kind(&one)
            };
            let name = format!("{layout} on {number_of_ranks}");
            assert!(of_formula("multiply") > 0);
            // Memory that was opened is the reader's own to the driver.
            assert_eq!(more("copy "), of_formula("multiply"), "{name}");
            assert_eq!(more("nccl "), of_formula("distribute"), "{name}");
        }
    }
}

fn memory_is_opened_for_all_products_of_a_layout_and_closed_before_the_next_layout() {
    for layout in ["summa", "broadcast-b"] {
        let arguments = format!(
            "--layout {layout} --shapes 33x65x17 --panel 4 --kernel naive --transport peer"
        );
        let logs = one_run_and_two(3, "gpus=3 ipc=1", &arguments).map(|ran| ran.log);
        let [one, two] = logs.map(|log| log.iter().filter(|line| is_open(line)).count());
        // Each rank opens all others' once to see whether it can, and rank 1 rank 0's for the model.
        assert!(one > 3 * 2 + 1, "{layout}");
        assert_eq!(one, two, "{layout}");
    }
    let arguments = "--layout summa,broadcast-b --shapes 33x65x17 --panel 4 --kernel naive \
                     --transport peer --runs 1 --format json";
    let ran = ranks(3, Nccl::Here, "gpus=3 ipc=1", arguments);
    check_proofs(&ran, "two layouts");
    // A panel of A has 4 columns, or 1; broadcast-b multiplies all 17.
    let of_summa = |line: &String| line.starts_with("launch ") && number(line, "k") < 17;
    let last = ran.log.iter().rposition(of_summa).unwrap();
    let is_either = |line: &&String| is_open(line) || line.starts_with("close ");
    let next = ran.log[last..].iter().find(is_either);
    assert!(!is_open(next.unwrap()));
}

fn is_open(line: &str) -> bool {
    line.starts_with("open ")
}

fn c_is_fetched_once_and_parts_are_copied_to_the_gpu_once() {
    let of_layout = |layout: &str, product: [u64; 3]| {
        let panels = 8 * 16 * 16 / product.iter().product::<u64>();
        let arguments = format!("--layout {layout} --shapes 16x16x16 --panel 4 --kernel naive");
        let [one, two] = one_run_and_two(2, "gpus=2", &arguments);
        let own = one.log.iter().filter(|line| {
            let size = |name| number(line, name);
            line.starts_with("launch ") && ["m", "n", "k"].map(size) == product
        });
        // Only products of panels that are cut along k add to others.
        let adds = own.clone().any(|line| number(line, "adds") == 1);
        assert_eq!(adds, product[2] < 16, "{layout}");
        let launches = own.count() as u64;
        assert!(launches >= 2 * PRODUCTS * panels, "{layout}: {launches}");
        let copied = |ran: &Ran, to: &str| {
            let is_meant = |line: &String| line.starts_with("host ") && line.contains(to);
            bytes(&ran.log, is_meant)
        };
        let fetched = copied(&two, "to=1") - copied(&one, "to=1");
        assert_eq!(fetched, 4 * 16 * 16, "{layout}: all of C");
        let uploaded = copied(&two, "to=0") - copied(&one, "to=0");
        assert_eq!(uploaded, 2 * 4 * 16 * 16, "{layout}: A and B");
    };
    of_layout("scatter-rows", [8, 16, 16]);
    of_layout("overlapped", [8, 16, 4]);
    of_layout("summa", [8, 16, 4]);
    of_layout("broadcast-b", [8, 4, 16]);
}

/// The worker's product is added to the C that the host has, though that is zero here.
fn a_product_by_way_of_the_host_copies_all_three_matrices_and_adds() {
    let arguments = "--layout point-to-point --shapes 16x16x16 --kernel naive";
    let [one, two] = one_run_and_two(2, "gpus=2", arguments);
    let launches = one.log.iter().filter(|line| line.starts_with("launch "));
    let adds: Vec<u64> = launches.map(|line| number(line, "adds")).collect();
    assert!(adds.len() as u64 >= PRODUCTS && adds.iter().all(|adds| *adds == 1));
    for (to, matrices) in [("to=0", 3), ("to=1", 1)] {
        let is_meant = |line: &String| line.starts_with("host ") && line.contains(to);
        let more = bytes(&two.log, is_meant) - bytes(&one.log, is_meant);
        assert_eq!(more, matrices * 4 * 16 * 16, "{to}");
    }
}

/// Two ranks copy half of A each, or half of C; what else there is, is small.
const LARGE: [&str; 2] = ["2213x5x1009", "2213x1031x3"];

fn large_parts_travel_through_page_locked_buffers() {
    const BUFFER: u64 = 2 << 20;
    // Elements of A and B, and of C, that are small, and that are large.
    for (shape, small, large) in [
        (LARGE[0], [1009 * 5, 2213 * 5], [2213 * 1009, 0]),
        (LARGE[1], [2213 * 3 + 3 * 1031, 0], [0, 2213 * 1031]),
    ] {
        let arguments = format!("--layout scatter-rows --shapes {shape} --kernel naive");
        let [one, two] = one_run_and_two(2, "gpus=2", &arguments);
        check_proofs(&one, shape);
        for to in [0, 1] {
            let more = |locked: u64| {
                let is_meant = |line: &String| {
                    let is_copy = line.starts_with("host ");
                    let found = |name| number(line, name);
                    is_copy && found("to") == to as u64 && found("locked") == locked
                };
                bytes(&two.log, is_meant) - bytes(&one.log, is_meant)
            };
            let formula = [small[to], large[to]].map(|elements| 4 * elements);
            assert_eq!([more(0), more(1)], formula, "{shape} to={to}");
        }
        // So each large part is several.
        let locked = two
            .log
            .iter()
            .filter(|line| line.starts_with("host ") && number(line, "locked") == 1);
        assert!(locked.clone().count() > 0, "{shape}");
        assert!(locked.clone().all(|line| number(line, "bytes") <= BUFFER));
    }
}

fn large_parts_arrive_in_every_order_of_streams() {
    let shapes = LARGE.join(",");
    for (way, order) in [
        ("nccl", ORDERS[1]),
        ("nccl", ORDERS[2]),
        ("nccl", ORDERS[3]),
        ("pinned", ORDERS[1]),
    ] {
        let arguments = format!(
            "--layout all --shapes {shapes} --panel 601 --kernel naive --runs 1 --format json \
             --transport {way}"
        );
        let ran = ranks(2, Nccl::Here, &format!("gpus=2 {order}"), &arguments);
        check_proofs(&ran, &format!("{way} {order}"));
    }
}

/// Checks that there are records, and each is proven.
fn check_proofs(ran: &Ran, name: &str) {
    let records = records(ran);
    assert!(!records.is_empty());
    for record in records {
        let why = &record["verification"];
        assert_eq!(record["proven"], true, "{name}: {} {why}", record["layout"]);
    }
}

/// One of a record's lists of what was timed.
fn timed<'r>(record: &'r Value, name: &str) -> &'r Vec<Value> {
    let timed = &record["machine"]["gpus"][name];
    timed
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {record}"))
}

fn the_model_adds_up_what_gpus_were_timed_at() {
    for way in ["nccl", "pinned", "mpi"] {
        let arguments = format!(
            "--layout all --shapes 64x64x64 --panel 16 --kernel naive --runs 1 --transport {way}"
        );
        let ran = ranks(
            2,
            Nccl::Here,
            "gpus=2 mpi=1",
            &format!("{arguments} --format json"),
        );
        for record in records(&ran) {
            let layout = record["layout"].as_str().unwrap();
            let (gpus, on_host) = (&record["machine"]["gpus"], &record["machine"]["products"]);
            let on_host = on_host.as_array().unwrap().len();
            if layout == "point-to-point" {
                // Its product begins and ends in the host's memory.
                assert_eq!((gpus, on_host), (&Value::Null, 1), "{way}");
                continue;
            }
            assert_eq!((&gpus["way"], on_host), (&way.into(), 0), "{layout}");
            assert!((1..=8).contains(&gpus["copy_threads"].as_u64().unwrap()));
            let (sends_panels, broadcasts) = match layout {
                "overlapped" => (true, false),
                "summa" | "broadcast-b" => (false, true),
                _ => (false, false),
            };
            for (name, has) in [
                ("uploads", true),
                ("fetches", true),
                ("parts", true),
                ("broadcasts", broadcasts),
                ("rows", sends_panels && way != "nccl"),
                ("columns", sends_panels && way != "nccl"),
            ] {
                let timed = timed(&record, name).len();
                assert_eq!(timed > 1, has, "{way}, {layout}: {timed} {name}");
            }
            for (hidden, of) in [
                ("hidden", "overlapped"),
                ("hidden_broadcasts", "summa"),
                ("hidden_columns", "broadcast-b"),
            ] {
                let part = gpus[hidden].as_f64();
                assert_eq!(part.is_some(), layout == of, "{layout}: {hidden}");
                assert!(part.is_none_or(|part| (0.0..=1.0).contains(&part)));
            }
            let of_columns = |one: &&Value| one["row_bytes"] == 4.0 * 16.0;
            let strips = timed(&record, "broadcasts").iter().filter(of_columns);
            assert_eq!(strips.count() > 1, layout == "broadcast-b", "{way}");
            // Its own product, of operands on the GPU.
            let [product] = &timed(&record, "products")[..] else {
                panic!("{record}");
            };
            let shape = ["m", "n", "k"].map(|key| product[key].as_u64().unwrap());
            let (expected, adds, panels) = match layout {
                "overlapped" | "summa" => ([32, 64, 16], true, 4.0),
                "broadcast-b" => ([32, 16, 64], false, 4.0),
                _ => ([32, 64, 64], false, 1.0),
            };
            assert_eq!((shape, product["adds"] == true), (expected, adds), "{way}");
            let seconds = panels * product["seconds"].as_f64().unwrap();
            let predicted = record["predicted"]["compute_s"].as_f64().unwrap();
            assert!((predicted / seconds - 1.0).abs() < 1e-9, "{way}: {record}");
        }
        let table = ranks(2, Nccl::Here, "gpus=2 mpi=1", &arguments).ended.out;
        let said = table
            .matches(&format!("GPUs, by {way}: to rank 0's "))
            .count();
        assert_eq!(said, 5, "{table}");
        let threads = table.matches(" a rank copy to and from the host").count();
        assert_eq!(threads, 5, "{table}");
    }
}

fn a_prediction_is_by_what_gpus_were_timed_at() {
    let predict = "--predict --size 64 --panel 16 --kernel naive";
    let said = |more: &str| {
        let ended = ranks(2, Nccl::Here, "gpus=2", &format!("{predict} {more}")).ended;
        assert_eq!(ended.code, Some(0), "{}", ended.notes);
        ended.out
    };
    let measured = said("");
    for part in [
        "GPUs, by nccl: to rank 0's",
        "of a message hidden",
        "summa, resident",
    ] {
        assert!(measured.contains(part), "no `{part}` in {measured}");
    }
    // What is given is not measured.
    let given = said("--latency 1 --bandwidth 10");
    assert!(!given.contains("from rank 0 to another's"), "{given}");
    assert!(given.contains("products "), "{given}");
}

fn the_resident_time_is_compute_and_wait_of_the_slowest_rank() {
    let arguments = "--layout all --scaling 1,2 --shapes 33x65x17 --panel 4 --kernel naive \
                     --runs 3 --format json";
    for record in records(&ranks(2, Nccl::Here, "gpus=2", arguments)) {
        let seconds = |value: &Value| value.as_f64().unwrap();
        let ranks = record["per_rank"].as_array().unwrap().iter();
        let of_ranks = ranks.map(|rank| {
            let times = &rank["times"];
            seconds(&times["compute_s"]) + seconds(&times["wait_s"])
        });
        // Those are of the run with the median time.
        let slowest = of_ranks.fold(0.0, f64::max);
        let resident = record["resident_times_s"].as_array().unwrap();
        if record["layout"] == "overlapped" {
            // Its panels come from the host's memory meanwhile.
            assert!(resident.is_empty() && record["resident_median_s"].is_null());
            continue;
        }
        assert_eq!(resident.len(), 3);
        assert!(
            resident.iter().any(|of_run| seconds(of_run) == slowest),
            "{record}"
        );
        let mut sorted: Vec<f64> = resident.iter().map(seconds).collect();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(seconds(&record["resident_median_s"]), sorted[1]);
        assert!(seconds(&record["resident_speedup"]) > 0.0);
    }
}

fn the_next_panel_is_on_its_way_before_this_one_is_waited_for() {
    for layout in ["overlapped", "summa", "broadcast-b"] {
        let arguments = format!(
            "--layout {layout} --shapes 16x16x16 --panel 4 --kernel naive --runs 1 --format json"
        );
        let ran = ranks(2, Nccl::Here, "gpus=2 deferred=1", &arguments);
        // What one rank's GPU is told, in order; its log also has the other's, by context.
        let own = ran.log.iter().filter_map(|line| {
            let is_panel = |line| number(line, "k") == 4 || number(line, "n") == 4;
            let is_launch = line.starts_with("launch ") && is_panel(line);
            let is_wait = line.starts_with("wait ");
            let is_message = line.starts_with("nccl ");
            let is_own = |name| number(line, name) == 1;
            match (is_launch, is_wait, is_message) {
                (true, ..) if is_own("context") => Some('m'),
                (_, true, _) if is_own("context") => Some('w'),
                (_, _, true) if number(line, "from") == 0 => Some('s'),
                _ => None,
            }
        });
        let told: String = own.collect();
        // Four panels are multiplied without a wait by the host between them, and something is sent
        // after the first launch, in the same breath.
        let overlaps = told.split('w').filter(|part| {
            let first = part.find('m');
            part.matches('m').count() == 4 && first.is_some_and(|first| part[first..].contains('s'))
        });
        assert_eq!(overlaps.count() as u64, PRODUCTS, "{layout}: {told}");
    }
}

/// In another order on one rank than on others, NCCL's ranks may wait for each other forever.
fn each_rank_broadcasts_a_then_b_panel_after_panel() {
    let arguments = "--layout summa --shapes 16x16x16 --panel 4 --kernel naive --runs 1";
    let ran = ranks(4, Nccl::Here, "gpus=4", arguments);
    assert_eq!(ran.ended.code, Some(0), "{}", ran.ended.notes);
    let mut of_processes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in ran.log.iter().filter(|line| line.starts_with("broadcast ")) {
        let communicators = of_processes.entry(number(line, "process")).or_default();
        communicators.push(number(line, "communicator"));
    }
    assert_eq!(of_processes.len(), 4);
    for communicators in of_processes.values() {
        // After the first product, what the model measures is broadcast by another one.
        let of_product = 4 * 2;
        let (first, others) = communicators.split_at(of_product);
        let measured = others.len() - (PRODUCTS as usize - 1) * of_product;
        let (measured, others) = others.split_at(measured);
        assert!(measured.iter().all(|one| !communicators[..2].contains(one)));
        let communicators = [first, others].concat();
        // The row's was made first, so its number is the lower one.
        let pairs = communicators.chunks(2);
        assert!(pairs.clone().all(|pair| pair == &communicators[..2]));
        assert!(communicators[0] < communicators[1], "{communicators:?}");
    }
}

fn every_panel_of_a_b_on_the_first_gpu_is_broadcast_from_there() {
    let arguments = "--layout broadcast-b --shapes 33x65x17 --panel 4 --kernel naive";
    let [one, two] = one_run_and_two(3, "gpus=3", arguments);
    let roots = |ran: &Ran| -> Vec<u64> {
        let broadcasts = ran.log.iter().filter(|line| line.starts_with("broadcast "));
        broadcasts.map(|line| number(line, "root")).collect()
    };
    let (one, two) = (roots(&one), roots(&two));
    assert!(two.iter().all(|root| *root == 0), "{two:?}");
    // Each of three ranks takes part in one for each of 17 panels.
    assert_eq!(two.len() - one.len(), 3 * 17);
}

fn the_way_is_chosen_said_and_recorded() {
    let small = "--size 8 --kernel naive --runs 1 --layout summa";
    for (nccl, settings, arguments, way, parts) in [
        (
            Nccl::Here,
            "gpus=2",
            "",
            "nccl",
            [
                "NCCL (2.21.5 is here, and each rank has a GPU of its own",
                "not by peer access, as rank 0 cannot share its GPU's memory",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2 ipc=1 peers=0",
            "",
            "nccl",
            [
                "NCCL (2.21.5 is here, and each rank has a GPU of its own",
                "not by peer access, as rank 0 cannot open other ranks' memory",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2 ipc=1",
            "",
            "peer",
            [
                "NCCL, and panels by peer access (2.21.5 is here",
                "each rank has a GPU of its own, and opens the others' memory)",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2 ipc=1",
            "--transport nccl",
            "nccl",
            ["NCCL (2.21.5", "asked for with --transport)"],
        ),
        (
            Nccl::Here,
            "gpus=1",
            "",
            "pinned",
            [
                "2 ranks share 1 GPU, which NCCL does not take",
                "MPIX_Query_cuda_support returns 0",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2",
            "--device cuda:1",
            "pinned",
            [
                "2 ranks share 1 GPU",
                "page-locked memory of the host and MPI",
            ],
        ),
        (
            Nccl::Missing,
            "gpus=2",
            "",
            "pinned",
            [
                "there is no NCCL on this machine (libnccl.so.2)",
                "not MPI alone",
            ],
        ),
        (
            Nccl::Missing,
            "gpus=2 mpi=1",
            "",
            "mpi",
            [
                "MPI, which takes GPUs' memory",
                "there is no NCCL on this machine",
            ],
        ),
        (
            Nccl::Here,
            "gpus=1 mpi=1",
            "",
            "mpi",
            ["MPI, which takes GPUs' memory", "2 ranks share 1 GPU"],
        ),
        (
            Nccl::Here,
            "gpus=2",
            "--transport pinned",
            "pinned",
            ["page-locked memory", "asked for with --transport"],
        ),
    ] {
        let name = format!("{settings} {arguments}");
        let arguments = format!("{small} {arguments}");
        let table = ranks(2, nccl, settings, &arguments).ended;
        assert_eq!(table.code, Some(0), "{name}: {}", table.notes);
        let line = table
            .out
            .lines()
            .find(|line| line.starts_with("between GPUs: "));
        let line = line.unwrap_or_else(|| panic!("{name}: {}", table.out));
        let report = ranks(2, nccl, settings, &format!("{arguments} --format json"));
        let transport = &report.ended.report()["transport"];
        assert_eq!(transport["way"], way, "{name}");
        let description = transport["description"].as_str().unwrap();
        assert!(line.ends_with(description), "{line}");
        for part in parts {
            assert!(description.contains(part), "no `{part}` in {description}");
        }
    }
    // Four would read from the GPU of the fifth.
    for (number_of_ranks, asked, way) in [
        (4, "", "peer"),
        (5, "", "nccl"),
        (5, "--transport peer", "peer"),
    ] {
        let arguments = format!("{small} {asked} --format json");
        let settings = format!("gpus={number_of_ranks} ipc=1");
        let report = ranks(number_of_ranks, Nccl::Here, &settings, &arguments);
        assert_eq!(report.ended.report()["transport"]["way"], way);
    }
    let native = ranks(2, Nccl::Here, "gpus=2", "--size 8 --runs 1 --format json");
    assert_eq!(native.ended.report()["transport"], Value::Null);
}

fn a_way_that_cannot_be_has_a_sentence_and_an_exit_code() {
    let kernel = "--kernel naive";
    for (nccl, settings, arguments, code, parts) in [
        (
            Nccl::Missing,
            "gpus=2",
            format!("{kernel} --transport nccl"),
            1,
            [
                "there is no NCCL on this machine (libnccl.so.2)",
                "Install NCCL 2",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2 nccl=2604",
            format!("{kernel} --transport nccl"),
            1,
            [
                "this is NCCL 2.6.4, but messages take NCCL 2 from 2.7.0 on",
                "Install NCCL 2",
            ],
        ),
        (
            Nccl::Here,
            "gpus=1",
            format!("{kernel} --transport nccl"),
            1,
            [
                "2 ranks share 1 GPU",
                "Start as many ranks as there are GPUs",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2",
            format!("{kernel} --transport peer"),
            1,
            [
                "--transport peer is not available: rank 0 cannot share its GPU's memory",
                "Leave --transport out, or use --transport nccl",
            ],
        ),
        (
            Nccl::Missing,
            "gpus=2 ipc=1",
            format!("{kernel} --transport peer"),
            1,
            [
                "--transport peer is not available: there is no NCCL on this machine",
                "Install NCCL 2",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2",
            format!("{kernel} --transport mpi"),
            1,
            [
                "this MPI does not take GPUs' memory",
                "Use an Open MPI that was built with CUDA",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2",
            "--kernel cpu-rows --transport nccl".to_string(),
            2,
            [
                "--transport nccl is for parts in GPUs' memory",
                "name a GPU kernel with --kernel",
            ],
        ),
        (
            Nccl::Here,
            "gpus=2",
            format!("{kernel} --device sim --transport pinned"),
            2,
            [
                "--transport pinned is for parts in GPUs' memory",
                "name a GPU kernel with --kernel",
            ],
        ),
    ] {
        let ended = ranks(2, nccl, settings, &format!("--size 8 {arguments}")).ended;
        assert_eq!(ended.code, Some(code), "{arguments}: {}", ended.notes);
        for part in parts {
            let said = ended.notes.matches(part).count();
            assert_eq!(said, 1, "`{part}` in {}", ended.notes);
        }
    }
}

fn a_gpu_that_fails_ends_the_job_with_the_rank_and_the_reason() {
    let small = "--size 16 --panel 4 --kernel naive --runs 1 --layout summa";
    for (settings, parts) in [
        (
            "gpus=2 launch=701",
            ["error: rank ", "`naive` cannot be launched"],
        ),
        (
            "gpus=2 memory_bytes=100",
            ["error: rank ", "The GPU is out of memory"],
        ),
    ] {
        let ended = ranks(2, Nccl::Here, settings, small).ended;
        ended.assert_failed(&parts);
    }
}

fn ranks_without_a_gpu_multiply_beside_those_with_one() {
    let arguments = "--layout all --size 16 --panel 4 --kernel naive --runs 1";
    let ran = beside(
        1,
        2,
        Nccl::Here,
        "gpus=2",
        &format!("{arguments} --format json"),
    );
    let report = ran.ended.report();
    assert_eq!(
        (&report["ranks"], &report["transport"]),
        (&3.into(), &Value::Null)
    );
    check_proofs(&ran, "two ranks with GPUs and one without");
    let ended = beside(
        1,
        1,
        Nccl::Here,
        "gpus=1",
        &format!("{arguments} --transport nccl"),
    )
    .ended;
    assert_eq!(ended.code, Some(2), "{}", ended.notes);
}

fn matrices_that_do_not_fit_end_the_job_though_nccl_would_wait() {
    let arguments = "--layout summa --shapes 16x16x16,400000x400000x8 --proof gathered --panel 4 \
                     --kernel naive --runs 1";
    let ended = ranks(2, Nccl::Here, "gpus=2", arguments).ended;
    ended.assert_failed(&["error: rank 0 of 2", "GiB of memory on the host"]);
}
