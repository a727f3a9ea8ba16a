//! Several GPUs, and one that is several: panels travel over streams of their own, in every order
//! that events allow.

use gpu_gemm::device::cuda::Staging;
use gpu_gemm::device::several::Start;
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{Choice, Device, Devices, ElementType, Scalar, Shape, Split, Transpose};
use host::data::{Layout, Problem};
use host::run::several::{gathered, product};
use host::verify::{self, Coverage};
use serde_json::Value;

use crate::common::assert_contains;
use crate::fake::{Line, Ran, again, host, is_loaded};
use crate::{EXACT, SHAPE};

const M_N_K: Shape = Shape::new(33, 70, 19);

/// Streams do what they get at once, or as late as possible, those of kernels before those of
/// copies or after them; or kernels early and copies late.
pub const ORDERS: [&str; 4] = ["deferred=0", "deferred=1", "deferred=2", "deferred=3"];

fn multiply(settings: &str, device: &str, more: &str) -> Ran {
    let runs = if more.contains("--runs") {
        ""
    } else {
        "--runs 2"
    };
    let kernel = format!("--kernel naive {runs}");
    host(
        &format!("{EXACT} waits=0 {settings}"),
        &format!("--device {device} {SHAPE} {kernel} {more}"),
    )
}

/// The only record of a report, and the log.
fn record(settings: &str, device: &str, more: &str) -> (Value, Vec<Line>) {
    let ran = multiply(settings, device, &format!("--format json {more}"));
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    let record = report["results"][0].clone();
    assert_eq!(record["proven"], true);
    assert_eq!(record["coverage"], "full");
    (record, ran.log)
}

fn bytes(received: impl IntoIterator<Item = usize>) -> Value {
    received.into_iter().map(|elements| 4 * elements).collect()
}

pub fn panels_travel_peer_to_peer_and_are_multiplied_only_when_they_have_arrived() {
    let split = Split::of(M_N_K, 2);
    for order in ORDERS {
        for more in ["", "--beta 2 --transpose-a", "--transpose-b --padding 3"] {
            let (record, log) = record(&format!("gpus=2 {order}"), "cuda:0+1", more);
            let several = &record["several"];
            assert_eq!(several["link"], "panels travel peer to peer");
            assert_eq!([&several["devices"], &several["gpus"]], [2, 2]);
            assert_eq!(several["grid"], serde_json::json!([1, 2]));
            // Of the kernel that was asked for.
            assert_eq!([&record["block_x"], &record["block_y"]], [64, 4]);
            let formula = bytes((0..2).map(|device| split.received(device)));
            assert_eq!(several["received_bytes"], formula);
            // Each product copies so much from one to the other: two that are proven, one that
            // loads code, and two that are timed.
            for (from, to) in [(1, 2), (2, 1)] {
                let copies = log.iter().filter(|line| line.kind == "copy");
                let between = copies.filter(|line| line.numbers(["from", "to"]) == [from, to]);
                let copied: Vec<u64> = between.map(|line| line.number("bytes")).collect();
                let one = 4 * split.received(to as usize - 1) as u64;
                assert_eq!(copied, [one; 5], "{order} {more}");
            }
            // Both multiply.
            for context in [1, 2] {
                let launches = log.iter().filter(|line| line.kind == "launch");
                let here = launches.filter(|line| line.number("context") == context);
                assert!(here.count() >= 5 * split.blocks(0).len());
            }
        }
    }
}

pub fn one_gpu_is_two_parts_and_all_gpus_are_a_grid() {
    for order in ORDERS {
        let (record_of_two, log) = record(order, "cuda:0+0", "");
        let several = &record_of_two["several"];
        assert_eq!(several["link"], "panels are copied within the GPU");
        assert_eq!([&several["devices"], &several["gpus"]], [2, 1]);
        assert_eq!(several["speed_up"], several["efficiency"]);
        let copies = log.iter().filter(|line| line.kind == "copy");
        assert!(copies.clone().count() >= 4);
        assert!(
            copies
                .clone()
                .all(|line| line.numbers(["from", "to"]) == [1, 1])
        );

        let square = "--device cuda:all --kernel naive --m 40 --n 41 --k 7 --beta 1 --format json";
        let ran = host(&format!("{EXACT} waits=0 gpus=4 {order}"), square);
        let of_all: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
        let several = &of_all["results"][0]["several"];
        assert_eq!([&several["devices"], &several["gpus"]], [4, 4]);
        assert_eq!(several["grid"], serde_json::json!([2, 2]));
        let (record_of_one, log) = record(&format!("gpus=1 {order}"), "cuda:all", "");
        assert_eq!(record_of_one["several"]["devices"], 1);
        assert!(log.iter().all(|line| line.kind != "copy"));
    }
}

pub fn without_peer_access_panels_travel_through_the_host_and_the_report_says_so() {
    let (record, _) = record("gpus=2 peers=0 deferred=1", "cuda:0+1", "");
    let link = record["several"]["link"].as_str().unwrap();
    assert_contains(link, &["through page-locked host memory, since not all"]);
    let ran = multiply("gpus=2 peers=0", "cuda:0+1", "");
    let device = "device  2 devices: Fake GPU (GPU 0, compute capability 9.0";
    assert_contains(
        &ran.ended.succeeded(),
        &[device, "page-locked host memory", " 2 GPUs, 1 x 2: "],
    );
}

pub fn a_failure_names_the_gpu() {
    // The first of the second GPU's allocations, and the last launches of a product, which are
    // the second GPU's.
    let ran = multiply("gpus=2", "cuda:0+1", "");
    let mut allocations = ran.log.iter().filter(|line| line.kind == "allocate");
    let second = allocations.position(|line| line.number("context") == 2);
    let no_memory = format!("gpus=2 no_memory_at={}", second.unwrap() + 1);
    for (settings, gpu, why) in [
        (no_memory.as_str(), 1, "The GPU is out of memory"),
        ("gpus=2 no_memory_at=1", 0, "The GPU is out of memory"),
        ("gpus=2 launch=701", 0, "`naive` cannot be launched"),
        ("gpus=2 crash_at=4", 1, "`naive` crashed on the GPU"),
        ("gpus=1", 1, "There is no GPU 1"),
    ] {
        let ran = multiply(settings, "cuda:0+1", "");
        assert_eq!(ran.ended.code, Some(1), "{settings}");
        let named = format!("Device {gpu} (cuda:{gpu}) of several, counted from 0: ");
        assert_contains(&ran.ended.err, &[&named, why]);
    }
}

/// Integers whose products are exact, between elements that are not theirs.
fn random(shape: Shape, seed: u64, beta: f32) -> Problem<f32> {
    let layout = Layout::padded(shape, [1, 2, 3], [3, 2, 1]);
    let data = verify::small_integers::<f32>(shape.k).unwrap();
    Problem::random(shape, layout, data, seed, 2.0, beta).unwrap()
}

/// Several devices of this process.
fn open(name: &str) -> Devices {
    match Device::open(name.parse().unwrap()).unwrap().device {
        Device::Several(devices) => *devices,
        _ => panic!("{name} is one device"),
    }
}

pub fn matrices_that_start_on_the_first_gpu_travel_from_it_and_back() {
    if !is_loaded() {
        let test = "several::matrices_that_start_on_the_first_gpu_travel_from_it_and_back";
        for order in ORDERS {
            let log = again(&format!("{EXACT} waits=0 gpus=3 {order}"), test);
            assert!(log.iter().any(|line| line.kind == "copy"));
        }
        return;
    }
    let choice = Choice::even(&naive::KERNEL.variants[0]);
    for name in ["cuda:0+1", "cuda:0+1+2", "cuda:0+0+1", "cuda:2+0+0+1"] {
        let devices = open(name);
        for start in 0..8 {
            let starts = [0, 1, 2].map(|matrix| match start >> matrix & 1 {
                0 => Start::Spread,
                _ => Start::First,
            });
            let problem = random(M_N_K, 5, -1.0);
            let (stored, count) = (problem.stored().unwrap(), devices.count());
            let product = product(&devices, count, Some(choice), &problem, &stored, starts);
            let mut product = product.unwrap();
            product.multiply().unwrap();
            let c = gathered(&product, &problem).unwrap();
            let exact = verify::exact(&problem, &c, choice.variant.tile, Coverage::Full);
            exact.unwrap_or_else(|failure| panic!("{name}, {starts:?}: {failure}"));
        }
    }
}

/// Copies of a few rows, or less than one, by several threads, and products of a few lines.
pub const FINELY: Staging = Staging {
    threads: 3,
    buffer_bytes: 1000,
    least_bytes: 1,
    least_lines: 8,
};

pub fn matrices_in_host_memory_are_multiplied_while_they_arrive() {
    if !is_loaded() {
        let test = "several::matrices_in_host_memory_are_multiplied_while_they_arrive";
        for order in ORDERS {
            let log = again(&format!("{EXACT} waits=0 gpus=3 {order}"), test);
            // Both ways, and more launches than blocks.
            for to in [0, 1] {
                let staged = |line: &&Line| line.kind == "host" && line.number("to") == to;
                let staged: Vec<&Line> = log.iter().filter(staged).collect();
                assert!(staged.iter().all(|line| line.number("bytes") <= 1000));
                assert!(staged.len() > 100, "{}", staged.len());
            }
            let direct = |line: &Line| line.kind == "host" && line.number("bytes") > 1000;
            assert!(!log.iter().any(direct));
        }
        return;
    }
    let choice = Choice::even(&naive::KERNEL.variants[0]);
    let shape = Shape::new(67, 70, 290);
    for name in ["cuda:0+1", "cuda:0+1+2", "cuda:0+0", "cuda:2+0+0+1"] {
        let devices = open(name).with_staging(FINELY);
        let count = devices.count();
        for (index, beta) in [0.0, -1.0].into_iter().enumerate() {
            let transposes = [Transpose::ALL[index], Transpose::ALL[1 - index]];
            let planner = devices.planner(Some(choice), ElementType::F32);
            let scalars = (Scalar::F32(2.0), Scalar::F32(beta));
            let product = devices.streamed((shape, transposes), count, scalars, &planner);
            let mut product = product.unwrap();
            // Other matrices each time: what the first left on a device is wrong for the second.
            for seed in [1, 2] {
                let problem = Problem {
                    transposes,
                    ..random(shape, seed, beta)
                };
                let stored = problem.stored().unwrap();
                let [a, b] =
                    [&*stored.a, &*stored.b].map(|matrix| (matrix.elements(), matrix.leading()));
                let (mut c, leading) = (problem.c.clone(), problem.c.leading());
                let done = product.multiply(a, b, (c.elements_mut(), leading)).unwrap();
                let case = format!("{name}, beta {beta}, seed {seed}");
                let exact = verify::exact(&problem, &c, choice.variant.tile, Coverage::Full);
                exact.unwrap_or_else(|failure| panic!("{case}: {failure}"));
                let padding = c.first_padding_difference(problem.c.buffer());
                assert_eq!(padding, None, "{case}");
                let split = product.split();
                let formula = (0..count).map(|device| 4 * split.received(device));
                assert_eq!(done.received, formula.collect::<Vec<_>>(), "{case}");
            }
            // The same copies, before the product and after it.
            let problem = random(shape, 3, beta);
            let starts = [Start::First, Start::Spread, Start::First];
            let (stored, choice) = (problem.stored().unwrap(), Some(choice));
            let product = self::product(&devices, count, choice, &problem, &stored, starts);
            let mut product = product.unwrap();
            product.multiply().unwrap();
            let c = gathered(&product, &problem).unwrap();
            let tile = naive::KERNEL.variants[0].tile;
            verify::exact(&problem, &c, tile, Coverage::Full).unwrap();
        }
    }
}

pub fn a_benchmark_of_several_gpus_compares_them_with_one() {
    let line = "bench --device cuda:0+1 --kernel naive --sizes 24,32 --runs 2 --json r.json";
    let ran = host(&format!("{EXACT} waits=0 gpus=2"), line);
    let said = ran.ended.succeeded();
    let sentence = " times as fast as one part on one GPU (";
    assert_eq!(said.matches(sentence).count(), 2, "{said}");
    let text = std::fs::read_to_string(ran.folder.path().join("r.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    for size in results["sizes"].as_array().unwrap() {
        let record = &size["results"][0];
        let several = &record["several"];
        let number = |value: &Value| value.as_f64().unwrap();
        let speed_up =
            number(&several["one_device_time_median_s"]) / number(&record["time_median_s"]);
        assert_eq!(number(&several["speed_up"]), speed_up);
        assert_eq!(number(&several["efficiency"]), speed_up / 2.0);
    }
}

pub fn timed_products_start_where_they_are_told_to() {
    let elements = |rows: usize, columns: usize| 4 * rows * columns;
    let (m, n, k) = (M_N_K.m, M_N_K.n, M_N_K.k);
    // A is the smaller one, so C is cut in columns, of which the second GPU has the rest.
    let (rest, all_of_a) = (
        n - Split::of(M_N_K, 2).columns_of_b(0).len(),
        elements(m, k),
    );
    let half_of_a = elements(Split::of(M_N_K, 2).rows_of_a(0).len(), k);
    let other_half = all_of_a - half_of_a;
    for order in ORDERS {
        let received = |start: &str| {
            let start = format!("--beta 1 --start {start}");
            let several =
                record(&format!("gpus=2 {order}"), "cuda:0+1", &start).0["several"].clone();
            let received = several["received_bytes"].as_array().unwrap().iter();
            received
                .map(|bytes| bytes.as_u64().unwrap() as usize)
                .collect::<Vec<_>>()
        };
        assert_eq!(received("spread"), [other_half, half_of_a]);
        assert_eq!(received("host"), [other_half, half_of_a]);
        assert_eq!(
            received("first-b"),
            [other_half, half_of_a + elements(k, rest)]
        );
        let of_c = elements(m, rest);
        assert_eq!(
            received("first"),
            [of_c, all_of_a + elements(k, rest) + of_c]
        );
    }
    let refused = multiply("", "cuda", "--start host").ended.refused(2);
    assert_contains(&refused, &["--start goes with several devices"]);
}

pub fn only_from_host_memory_does_each_timed_run_copy_the_matrices_in_and_c_out() {
    let copied = |start: &str, runs: usize| {
        let more = format!("--beta 1 --start {start} --runs {runs}");
        let log = record("gpus=2", "cuda:0+1", &more).1;
        [0, 1].map(|to_host| {
            let copies = log
                .iter()
                .filter(|line| line.kind == "host" && line.number("to") == to_host);
            copies.map(|line| line.number("bytes")).sum::<u64>()
        })
    };
    let (m, n, k) = (M_N_K.m as u64, M_N_K.n as u64, M_N_K.k as u64);
    for (start, of_a_run) in [
        ("host", [m * k + k * n + m * n, m * n]),
        ("spread", [m * n, 0]),
    ] {
        let [few, more] = [2, 4].map(|runs| copied(start, runs));
        // Two more runs on both GPUs, and two on the first alone.
        let expected = of_a_run.map(|elements| (2 + 2) * 4 * elements);
        assert_eq!([0, 1].map(|at| more[at] - few[at]), expected, "{start}");
    }
}

pub fn cublas_and_tune_are_for_one_gpu() {
    let refused = multiply("gpus=2", "cuda:0+1", "--baseline cublas").ended;
    assert_contains(
        &refused.refused(2),
        &["cuBLAS, which `--baseline` names, multiplies on one GPU"],
    );
    let tune = host("gpus=2", "tune --device cuda:0+1 --sizes 8").ended;
    assert_contains(&tune.err, &["measures one GPU at a time"]);
}
