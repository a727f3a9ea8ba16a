//! The whole path through a GPU, without one: the program runs on a fake driver and a fake cuBLAS
//! (`library/`) with an exactly known clock and a log of all launches.

use std::collections::HashSet;
use std::fs::{self, File};
use std::sync::Once;

use gpu_gemm::device::compiled;
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{DataType, Device, DeviceChoice, ElementType, Shape, Transpose};
use host::bench::Results;
use host::measure::Effort;
use host::measure::cublas::{Cublas, Interface, Precision};
use host::measure::gpu::{Contender, measure};
use host::measure::nvml::GpuState;
use host::npy;
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use verification::data::{Data, Matrix, Number, Problem, Storage};
use verification::epilogue::Epilogue;
use verification::run::Resident;
use verification::verify::{self, Coverage};

use crate::common::assert_contains;
use crate::fake::{Line, Ran, again, host, is_loaded, spans};
use crate::{guest, several, trials};

/// What the programs run.
const KERNELS: [&str; 16] = [
    "async_pipeline_16x128_nn",
    "async_pipeline_32x32_odd",
    "bias_relu_async_pipeline_64x64_nn",
    "bias_relu_fix_up",
    "few_rows_1",
    "few_rows_4x64",
    "fix_up",
    "grouped_64x128_bf16",
    "naive",
    "pad",
    "pitched",
    "tiled_16",
    "tiled_32",
    "tiled_32_f64",
    "tiled_32_i32",
    "transpose",
];

/// Compiles them together, which takes less time than one by one; none if tests are selected by
/// name. One that does not compile fails in its test.
pub fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if Arguments::from_args().filter.is_none() {
            let _ = compiled::module_for(90).and_then(|module| module.prepare(&KERNELS));
        }
    });
}

pub fn trials() -> Vec<Trial> {
    let tests = trials!["":
        times_speeds_and_ratios_are_those_of_the_clock,
        the_faster_of_cublas_and_cublaslt_counts_and_each_can_be_named,
        back_to_back_launches_have_their_speed_clock_and_power,
        the_time_of_a_short_launch_is_the_mean_of_many,
        no_launch_finds_its_operands_in_the_l2,
        a_kernel_that_copies_b_first_has_its_workspace,
        cublas_of_f64_may_use_tensor_cores,
        cublas_multiplies_the_same_matrices_in_the_mode_that_its_name_promises,
        without_a_cublas_nothing_is_compared,
        a_batch_is_one_launch_of_a_kernel_and_one_call_of_cublas,
        each_launch_of_groups_gets_their_ends,
        cublas_multiplies_all_inputs_in_every_layout_one_product_or_a_batch,
        padded_matrices_are_multiplied_as_they_lie_and_in_pitched_copies,
        a_benchmark_has_the_clocks_figures,
        files_are_multiplied_by_auto,
        what_the_gpu_did_is_read_while_it_works_and_known_only_where_there_is_an_nvml,
        a_wrong_kernel_is_not_timed_and_not_passed,
        what_is_wrong_only_while_it_is_timed_has_no_times,
        a_write_into_a_while_it_is_timed_is_an_error,
        a_time_that_no_gpu_can_reach_is_refused,
        out_of_memory_at_any_allocation_reports_sizes,
        a_crash_a_refused_launch_and_a_failing_cublas_are_told_apart,
        a_driver_that_is_of_no_use_says_why,
        the_doctor_names_the_gpu_and_the_cublas_that_there_are,
        guest::each_call_and_each_drop_leaves_the_context_that_was_current,
        guest::streams_and_memory_are_taken_by_their_handles,
        guest::a_prepared_call_only_launches_and_so_can_be_captured,
        several::panels_are_multiplied_only_when_they_have_arrived_wherever_matrices_start,
        several::what_is_for_one_gpu_says_so,
        several::matrices_in_host_memory_are_multiplied_while_they_arrive,
        several::each_row_arrives_though_the_buffers_owner_is_gone_and_nothing_between_rows_is_touched,
    ];
    // Large matrices take seconds.
    let exhaustive = trials!["exhaustive::":
        a_large_product_is_compared_with_one_that_the_gpu_computed_in_f64,
        a_large_product_of_two_devices_is_compared_and_none_with_a_wrong_reference,
    ];
    let exhaustive = exhaustive.into_iter();
    let exhaustive = exhaustive.map(|trial| trial.with_ignored_flag(true));
    let mut tests = trials::ignored_if(compiled::why_absent(), tests);
    tests.extend(exhaustive);
    tests
}

pub const SHAPE: &str = "--m 33 --n 70 --k 19";
const FLOPS: f64 = 2.0 * 33.0 * 70.0 * 19.0;

/// Runs a fixed product with `naive`, unless `more` names other kernels.
fn multiply(settings: &str, more: &str) -> Ran {
    let kernel = match more.contains("--kernel") {
        true => "",
        false => "--kernel naive",
    };
    host(settings, &format!("--device cuda {SHAPE} {kernel} {more}"))
}

/// The report of a run that succeeded, and the log.
fn report(settings: &str, more: &str) -> (Value, Vec<Line>) {
    let ran = multiply(settings, &format!("--format json {more}"));
    let text = ran.ended.succeeded();
    (serde_json::from_str(&text).unwrap(), ran.log)
}

/// The results of `bench` on the GPU, its table and the log.
fn bench(settings: &str, arguments: &str) -> (Results, String, Vec<Line>) {
    let arguments = format!("bench --device cuda {arguments} --json b.json");
    let ran = host(&format!("{EXACT} {settings}"), &arguments);
    let table = ran.ended.succeeded();
    let text = fs::read_to_string(ran.folder.path().join("b.json")).unwrap();
    (serde_json::from_str(&text).unwrap(), table, ran.log)
}

/// The error of a run that fails and shows nothing.
fn failure(settings: &str, more: &str) -> String {
    multiply(settings, more).ended.refused(1)
}

/// Times that are exact in every unit: 1/8 ms for a kernel, half of that for cuBLAS.
pub const EXACT: &str = "kernel_ns=125000 cublas_ns=62500";

fn times_speeds_and_ratios_are_those_of_the_clock() {
    let (report, _) = report(EXACT, "--baseline cublas");
    assert_eq!(report["backend"], "cuda");
    assert_contains(report["device"].as_str().unwrap(), &["Fake GPU", "9.0"]);
    assert_contains(report["cublas"].as_str().unwrap(), &["12.9.1 from "]);
    let [record, cublas] = [&report["results"][0], &report["yardsticks"][0]];
    assert_eq!(record["passed"], true);
    assert_eq!(record["coverage"], "full");
    for time in ["time_median_s", "time_min_s", "time_max_s"] {
        assert_eq!([&record[time], &cublas[time]], [1.25e-4, 6.25e-5]);
    }
    assert_eq!(record["flops_per_s"], FLOPS / 1.25e-4);
    assert_eq!(record["cublas_time_median_s"], 6.25e-5);
    assert_eq!(record["ratio_to_cublas"], 0.5);
    assert_eq!(cublas["kernel"], "cublas-fp32");
    assert_eq!(cublas["flops_per_s"], FLOPS / 6.25e-5);
    // Tiles of 4 x 64.
    let launch = ["grid_x", "grid_y", "block_x", "block_y", "launches"];
    assert_eq!(launch.map(|field| &record[field]), [2, 9, 64, 4, 1]);
}

/// cublasLt proposes three algorithms here: one that takes twice as long as the second, and one that
/// does not run.
fn the_faster_of_cublas_and_cublaslt_counts_and_each_can_be_named() {
    for (lt_ns, faster, ratio) in [(31_250, "cublaslt", 0.25), (93_750, "cublas", 0.5)] {
        for (dtype, compute, kernel, products) in
            [("f32", 68, "naive", 1), ("f64", 70, "tiled-32", 3)]
        {
            let settings = format!("{EXACT} cublaslt_ns={lt_ns}");
            let batch = format!("--batch {products} --padding 1 --beta 1");
            let more = format!("--kernel {kernel} --dtype {dtype} {batch}");
            let (report, log) = report(&settings, &more);
            let names = report["yardsticks"].as_array().unwrap().iter();
            let names: Vec<&str> = names.map(|one| one["kernel"].as_str().unwrap()).collect();
            let precision = dtype.replace("f32", "fp32").replace("f64", "fp64");
            let expected = ["cublas", "cublaslt"].map(|library| format!("{library}-{precision}"));
            assert_eq!(names, expected);
            let record = &report["results"][0];
            assert_eq!(record["compared_with"], format!("{faster}-{precision}"));
            assert_eq!(record["ratio_to_cublas"], ratio);
            assert_eq!(report["yardsticks"][1]["time_median_s"], lt_ns as f64 / 1e9);
            let calls = log
                .iter()
                .filter(|line| line.kind == "cublas" && line.text("name") == "matmul");
            for line in calls {
                assert_eq!(line.numbers(["mode", "products"]), [compute, products]);
            }
        }
    }
    let names = |settings: &str, baseline: &str| {
        let (report, _) = report(settings, &format!("--baseline {baseline}"));
        let yardsticks = report["yardsticks"].as_array().unwrap().iter();
        let names = yardsticks.map(|one| one["kernel"].as_str().unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(EXACT, "best"), ["cublas-fp32", "cublaslt-fp32"]);
    assert_eq!(names(EXACT, "cublaslt"), ["cublaslt-fp32"]);
    assert_eq!(names(EXACT, "cublas"), ["cublas-fp32"]);
    // Without an algorithm it is left out, unless it alone was requested.
    let none = format!("{EXACT} algorithms=0");
    assert_eq!(names(&none, "best"), ["cublas-fp32"]);
    assert_eq!(names(EXACT, "best --alpha 0"), ["cublas-fp32"]);
    // cuBLAS is, too, where it does not multiply the product.
    let not_supported = format!("{EXACT} gemm_ex=15");
    assert_eq!(names(&not_supported, "best"), ["cublaslt-fp32"]);
    let ran = multiply(&not_supported, "--baseline cublas");
    assert_eq!(ran.ended.code, Some(1));
    assert_contains(
        &ran.ended.err,
        &["error: cuBLAS does not multiply this type"],
    );
    let ran = multiply(&none, "--baseline cublaslt");
    assert_eq!(ran.ended.code, Some(1));
    let error = "error: cublasLt proposes no algorithm for this product.\n";
    assert_contains(&ran.ended.err, &[error]);
}

fn back_to_back_launches_have_their_speed_clock_and_power() {
    let arguments = "--kernel naive --shape 33x70x19 --baseline cublas --sustained 1";
    let sustained = |settings: &str| bench(&format!("tf32_ns=62500 {settings}"), arguments);
    let (results, table, _) = sustained("nvml=0");
    let columns = ["| sustained ", "| clock ", "J/TFLOP", "| 1755 MHz "];
    assert_contains(&table, &columns);
    let size = &results.sizes[0];
    let record = size.results[0].sustained.as_ref().unwrap();
    let cublas = size.yardsticks[0].sustained.as_ref().unwrap();
    let close = |one: f64, other: f64| {
        approx::assert_relative_eq!(one, other, max_relative = 1e-3);
    };
    // The counted part of a second depends on the machine's load; the speed does not.
    assert!(record.turns == 1 && record.seconds > 0.0, "{record:?}");
    close(record.flops_per_s, FLOPS / 125e-6);
    close(cublas.flops_per_s, FLOPS / 62.5e-6);
    close(record.ratio_to_cublas.unwrap(), 0.5);
    assert_eq!(cublas.ratio_to_cublas, None);
    assert_eq!(record.sm_clock_mhz, Some(1755.0));
    // The counter advances by the wall clock.
    if let Some(power) = record.power_w {
        let joules = record.joules_per_tflop.unwrap();
        close(joules * record.flops_per_s / 1e12, power);
    }
    let (results, ..) = sustained("");
    let unknown = results.sizes[0].results[0].sustained.as_ref().unwrap();
    assert_eq!((unknown.sm_clock_mhz, unknown.power_w), (None, None));
    let simulated = "bench --device sim --kernel naive --sizes 8 --sustained 1";
    let refused = host("", simulated).ended.refused(2);
    assert_contains(&refused, &["`--sustained` launches kernels on a GPU"]);
}

fn the_time_of_a_short_launch_is_the_mean_of_many() {
    let (report, log) = report("kernel_ns=1000 cublas_ns=2000", "--baseline cublas");
    let [record, cublas] = [&report["results"][0], &report["yardsticks"][0]];
    let repeats = ["runs", "warmup", "launches_per_run"];
    assert_eq!(repeats.map(|field| &record[field]), [20, 3, 100]);
    assert_eq!(cublas["runs"], 20);
    // A run takes a tenth of a millisecond, as precisely as the driver's f32 holds it.
    let run = f64::from(0.1_f32) / 1e3;
    assert_eq!(record["time_median_s"], run / 100.0);
    assert_eq!(cublas["time_median_s"], run / 50.0);
    assert_eq!(record["ratio_to_cublas"], (run / 50.0) / (run / 100.0));
    for (contender, launches) in [("naive", 100), ("gemm_ex in mode 68", 50)] {
        let spans = spans(&log).into_iter();
        let timed = spans.filter(|span| span.len() == launches);
        let is_alone = |span: &Vec<&Line>| span.iter().all(|line| line.contender() == contender);
        assert_eq!(timed.filter(is_alone).count(), 20, "{contender}");
        // Besides the timed launches: one that loads code, the warm-up, and one that is checked.
        let all = log
            .iter()
            .filter(|line| line.is_launch() && line.contender() == contender);
        let in_spans = spans_of(&log, contender);
        assert_eq!(all.count() - in_spans, 1 + 3 * launches + 1, "{contender}");
    }
}

/// Launches of a contender between two events.
fn spans_of(log: &[Line], contender: &str) -> usize {
    let launches = spans(log).into_iter().flatten();
    launches
        .filter(|line| line.contender() == contender)
        .count()
}

fn no_launch_finds_its_operands_in_the_l2() {
    const L2: u64 = 1 << 16;
    let settings = format!("kernel_ns=40000 cublas_ns=50000 l2_bytes={L2}");
    let (_, log) = report(&settings, "--kernel naive,pitched --baseline cublas");
    let spans = spans(&log).into_iter();
    // Launches for checks, and the one that sets the number of runs, are single.
    let timed: Vec<&Line> = spans.filter(|span| span.len() > 1).flatten().collect();
    assert_eq!(timed.len(), 20 * (3 + 3 + 2));
    for matrix in ["a", "b", "c"] {
        for pair in timed.windows(2) {
            assert_ne!(pair[0].number(matrix), pair[1].number(matrix));
        }
    }
    let bytes = 4 * (33 * 19 + 19 * 70 + 33 * 70);
    let enough = (2 * L2).div_ceil(bytes) as usize;
    for launches in timed.windows(enough) {
        let matrices = launches.iter().map(|line| line.numbers(["a", "b", "c"]));
        assert_eq!(matrices.collect::<HashSet<_>>().len(), enough);
    }
}

fn a_kernel_that_copies_b_first_has_its_workspace() {
    // A copy and a product take 1/8 ms.
    let settings = "kernel_ns=62500 l2_bytes=1000";
    let (report, log) = report(settings, "--kernel few-rows-1");
    let record = &report["results"][0];
    assert_eq!([&record["launches"], &record["runs"]], [2, 20]);
    assert_eq!(record["time_median_s"], 1.25e-4);
    let launches = log.iter().filter(|line| line.kind == "launch");
    let launches: Vec<&Line> = launches.collect();
    // Rows of 70 elements do not begin at multiples of 16 bytes.
    for pair in launches.chunks(2) {
        let names = [0, 1].map(|index: usize| pair[index].text("name"));
        assert_eq!(names, ["pad", "few_rows_1"]);
        assert_eq!(pair[0].number("target"), pair[1].number("b"));
        assert_eq!(pair[1].number("ldb"), 72);
    }
}

fn cublas_of_f64_may_use_tensor_cores() {
    let product = "--m 80 --n 80 --k 80 --dtype f64 --kernel tiled --runs 1 --warmup 0";
    let arguments = format!("--device cuda --baseline cublas {product} --format json");
    // 51.2 TFLOP/s: CUDA cores reach only 33.
    let ran = host("cublas_ns=20", &arguments);
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    assert_eq!(report["yardsticks"][0]["kernel"], "cublas-fp64");
    let ran = host("cublas_ns=15", &arguments);
    assert_eq!(ran.ended.code, Some(1));
    let why = "cublas-fp64 took 1.500e-8 s a launch, 68.27 TFLOP/s, but the GPU's peak is 66.91";
    assert_contains(&ran.ended.err, &[why]);
}

fn cublas_multiplies_the_same_matrices_in_the_mode_that_its_name_promises() {
    let arguments = "bench --device cuda --kernel naive --shape 33x70x19 --baseline cublas";
    // Two copies of the matrices, for all contenders.
    let settings = "kernel_ns=50000 cublas_ns=50000 tf32_ns=50000 l2_bytes=1000";
    let ran = host(settings, arguments);
    assert_contains(&ran.ended.succeeded(), &["cublas-fp32", "cublas-tf32"]);
    let of = |kind| ran.log.iter().filter(move |line: &&Line| line.kind == kind);
    let matrices: HashSet<[u64; 3]> = of("launch")
        .map(|line| line.numbers(["a", "b", "c"]))
        .collect();
    let streams: HashSet<u64> = of("launch").map(|line| line.number("stream")).collect();
    assert_eq!(streams.len(), 1);
    for line in of("cublas") {
        // Its matrices are column-major: C^T = B^T * A^T.
        let arguments = line.numbers(["m", "n", "k", "lda", "ldb", "ldc"]);
        assert_eq!(arguments, [70, 33, 19, 70, 19, 70]);
        assert_eq!(line.text("name"), "gemm_ex");
        assert!(matrices.contains(&line.numbers(["b", "a", "c"])));
        assert!(streams.contains(&line.number("stream")));
    }
    // TF32, which draws the most power, comes last; all others alternate.
    let timed: Vec<String> = spans(&ran.log)
        .iter()
        .filter(|span| span.len() == 2)
        .map(|span| span[0].contender())
        .collect();
    let (others, last) = timed.split_at(40);
    assert_eq!(last, vec!["gemm_ex in mode 77"; 20]);
    let orders: HashSet<&[String]> = others.chunks(2).collect();
    let [one, other] = ["naive", "gemm_ex in mode 68"].map(String::from);
    let both = [[one.clone(), other.clone()], [other, one]];
    assert_eq!(orders, HashSet::from([&both[0][..], &both[1][..]]));
}

/// A batch of five products.
const BATCH: &str = "--batch 5";

fn a_batch_is_one_launch_of_a_kernel_and_one_call_of_cublas() {
    for (kernel, precision, name, entry) in [
        ("tiled-32", "f32", "gemm_ex_batched", "tiled_32"),
        ("tiled-32", "f64", "gemm_ex_batched", "tiled_32_f64"),
    ] {
        let more = format!("{BATCH} --kernel {kernel} --dtype {precision} --padding 2 --beta 0.5");
        let (report, log) = report(EXACT, &format!("{more} --baseline cublas"));
        let record = &report["results"][0];
        assert_eq!(record["passed"], true, "{record}");
        assert_eq!(
            (&record["launches"], &record["grid_z"]),
            (&1.into(), &5.into())
        );
        // The operations of all products are counted.
        let speed = |record: &Value| record["flops_per_s"].as_f64().unwrap();
        assert_eq!(speed(record), 5.0 * FLOPS / 125e-6);
        assert_eq!(speed(&report["yardsticks"][0]), 5.0 * FLOPS / 62.5e-6);
        let of = |kind| log.iter().filter(move |line: &&Line| line.kind == kind);
        assert!(of("launch").count() > 0);
        for line in of("launch") {
            assert_eq!(line.text("name"), entry);
            assert_eq!(line.text("grid"), "3x2x5");
        }
        assert!(of("cublas").count() > 0);
        for line in of("cublas") {
            assert_eq!(line.text("name"), name);
            // Its matrices are column-major: C^T = B^T * A^T.
            let arguments = line.numbers(["m", "n", "k", "lda", "ldb", "ldc", "products"]);
            assert_eq!(arguments, [70, 33, 19, 72, 21, 72, 5]);
        }
    }
}

fn each_launch_of_groups_gets_their_ends() {
    let groups = "--device cuda --groups 3,0,2 --n 64 --k 8 --beta 0.5 --format json";
    let ran = host(EXACT, groups);
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    let record = &report["results"][0];
    assert_eq!(record["passed"], true, "{record}");
    assert_contains(
        record["verification"].as_str().unwrap(),
        &["a launch like the timed ones gives the same bits"],
    );
    let speed = record["flops_per_s"].as_f64().unwrap();
    assert_eq!(speed, 2.0 * 5.0 * 64.0 * 8.0 / 125e-6);
    assert_eq!(report["yardsticks"].as_array().unwrap().len(), 0);
    let launches = ran.log.iter().filter(|line| line.kind == "launch");
    let launches: Vec<&Line> = launches.collect();
    assert!(launches.len() > 20, "{} launches", launches.len());
    // One copy for each gate; the second is that of the timed launches.
    let ends: HashSet<u64> = launches.iter().map(|line| line.number("ends")).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    let ran = host(&format!("{EXACT} wrong_kernel_from=2"), groups);
    let report: Value = serde_json::from_str(&ran.ended.out).unwrap();
    let why = report["results"][0]["verification"].as_str().unwrap();
    assert!(why.starts_with("Product 2 of the groups"), "{why}");
}

fn cublas_multiplies_all_inputs_in_every_layout_one_product_or_a_batch() {
    if !is_loaded() {
        let log = again(
            &format!("{EXACT} l2_bytes=1000"),
            "cublas_multiplies_all_inputs_in_every_layout_one_product_or_a_batch",
        );
        let calls = log.iter().filter(|line| line.kind == "cublas");
        let calls: HashSet<(&str, u64)> = calls
            .map(|line| (line.text("name"), line.number("products")))
            .collect();
        let lt = [("matmul", 1), ("matmul", 2)];
        let expected = [("gemm_ex", 1), ("gemm_ex_batched", 2), lt[0], lt[1]];
        assert_eq!(calls, HashSet::from(expected));
        return;
    }
    multiplied_by_cublas::<f32>(DataType::F32);
    multiplied_by_cublas::<f64>(DataType::F64);
    multiplied_by_cublas::<f32>(DataType::BF16_F32);
    multiplied_by_cublas::<f32>(DataType::F16_F32);
}

/// Checks cuBLAS's products in every layout.
fn multiplied_by_cublas<T: Number>(data_type: DataType) {
    let opened = Device::open(DeviceChoice::Cuda(0)).unwrap().device;
    let Some(device) = opened.one_gpu() else {
        panic!("not a GPU");
    };
    let (precision, inputs) = (Precision::of(data_type).unwrap(), data_type.inputs);
    let both = Interface::ALL.map(|one| Cublas::load(device, one, precision).unwrap());
    let (shape, tile) = (Shape::new(5, 7, 9), naive::KERNEL.variants[0].tile);
    let [no, yes] = Transpose::ALL;
    for (batch, transposes) in [(1, [no, no]), (2, [no, no]), (1, [yes, no]), (2, [no, yes])] {
        let storage = Storage {
            transposes,
            batch,
            ..Storage::padded([1; 3], [0; 3])
        };
        let data = Data::SmallIntegers { largest: 2 };
        let scalars = [2, -1].map(T::from_integer).into();
        let problem = Problem::<T>::random_as(inputs, shape, storage, data, 1, scalars).unwrap();
        let measured = |problem: &Problem<T>, contenders: &[Contender<'_>]| {
            let mut check = |_, c: Matrix<T>| {
                verify::each_product(problem, &c, |_, problem, c| {
                    verify::exact(problem, c, tile, Coverage::Full)
                })
                .unwrap();
            };
            let mut resident = Resident::new(&opened, problem);
            let effort = Effort::of(1, None);
            measure(&mut resident, contenders, effort, &|_| (), &mut check).map(drop)
        };
        measured(&problem, &both.each_ref().map(Contender::Cublas)).unwrap();
        if T::TYPE != ElementType::F32 {
            continue;
        }
        let [cublas, lt] = &both;
        for (contender, epilogue, library) in [
            (lt, Epilogue::BiasRelu, None),
            (lt, Epilogue::Silu, Some("cublasLt")),
            (cublas, Epilogue::Bias, Some("cuBLAS")),
        ] {
            let problem = Problem {
                epilogue: Some(epilogue),
                ..problem.clone()
            };
            let refused = measured(&problem, &[Contender::Cublas(contender)]).err();
            let why =
                library.map(|name| format!("{name} has no such epilogue: leave out --baseline."));
            assert_eq!(refused.map(|error| error.to_string()), why);
        }
    }
}

fn without_a_cublas_nothing_is_compared() {
    for more in ["--kernel tiled --dtype i32", "--baseline none"] {
        let (other, log) = report(EXACT, more);
        assert_eq!(other["yardsticks"], Value::Array(Vec::new()));
        assert_eq!(other["results"][0]["ratio_to_cublas"], Value::Null);
        assert_eq!(other["results"][0]["time_median_s"], 1.25e-4);
        assert!(log.iter().all(|line| line.kind != "cublas"));
    }
    let error = failure(EXACT, "--kernel tiled --dtype i32 --baseline cublas");
    assert_eq!(error, "error: cuBLAS does not multiply i32.\n");
}

fn padded_matrices_are_multiplied_as_they_lie_and_in_pitched_copies() {
    // Launches alternate between two copies of the matrices.
    let settings = format!("{EXACT} l2_bytes=1000");
    let (report, log) = report(&settings, "--kernel naive,pitched --padding 2 --beta 2");
    for record in report["results"].as_array().unwrap() {
        assert_eq!(
            [&record["lda"], &record["ldb"], &record["ldc"]],
            [21, 72, 72]
        );
        assert_eq!(record["time_median_s"], 1.25e-4);
    }
    for line in log.iter().filter(|line| line.is_launch()) {
        let leading = line.numbers(["lda", "ldb", "ldc"]);
        match line.text("name") {
            "naive" => assert_eq!(leading, [21, 72, 72]),
            "pitched" => assert_eq!(leading, [128; 3]),
            _ => assert_eq!(leading, [72, 21, 72]),
        }
    }
}

fn a_benchmark_has_the_clocks_figures() {
    let arguments = "--kernel naive,tiled-16 --sizes 24 --shape 33x70x19";
    let (results, ..) = bench("tf32_ns=31250", arguments);
    let machine = &results.machine;
    // 128 multiply-adds a clock of 1.98 GHz on each of 132 SMs; 6144 bits at 2 * 3.201 GHz.
    let (peak, bandwidth) = (2.0 * 128.0 * 1.98e9 * 132.0, 768.0 * 2.0 * 3.201e9);
    assert_eq!(machine.peak_flops_per_s, Some(peak));
    assert_eq!(machine.bandwidth_bytes_per_s, Some(bandwidth));
    assert_eq!(results.sizes.len(), 2);
    for size in &results.sizes {
        let flops = 2.0 * (size.m * size.n * size.k) as f64;
        let yardsticks = [
            ("cublas-fp32", 6.25e-5),
            ("cublaslt-fp32", 9.375e-5),
            ("cublas-tf32", 3.125e-5),
            ("cublaslt-tf32", 3.125e-5),
        ];
        for (yardstick, (name, seconds)) in size.yardsticks.iter().zip(yardsticks) {
            assert_eq!(yardstick.kernel, name);
            assert_eq!(yardstick.flops_per_s, Some(flops / seconds));
            assert!(yardstick.frobenius_error.is_some());
        }
    }
}

fn what_the_gpu_did_is_read_while_it_works_and_known_only_where_there_is_an_nvml() {
    let bench = |settings: &str| {
        let arguments = "--kernel naive --sizes 24 --runs 5 --baseline cublas";
        let (results, table, log) = bench(settings, arguments);
        (results.sizes[0].gpu_state.clone(), table, log)
    };
    let (state, table, log) = bench("nvml=0 power_mw=0");
    let expected = GpuState {
        sm_clock_mhz: Some(1755),
        memory_clock_mhz: Some(3201),
        power_w: None,
        temperature_c: Some(62),
        throttle_reasons: Some(vec!["sw_power_cap".to_string()]),
    };
    assert_eq!(state, Some(expected));
    let head = "of f32; SMs at 1755 MHz, memory at 3201 MHz, 62 °C, held back by sw_power_cap\n";
    assert_contains(&table, &[head]);
    // After the last timed run of a kernel, and outside of any.
    let sampled = log.iter().position(|line| line.kind == "nvml").unwrap();
    let (before, after) = log.split_at(sampled);
    assert_eq!(spans(before).len(), spans(&log).len() - 5);
    let names = |log: &[Line]| -> Vec<String> {
        let launches = spans(log).into_iter().flatten();
        launches.map(Line::contender).collect()
    };
    let tf32 = "gemm_ex in mode 77";
    assert!(names(after).iter().all(|name| name == tf32));
    // The pause ends with a launch that is not timed.
    let untimed = after.iter().take_while(|line| line.kind != "record");
    let untimed = untimed.filter(|line| line.is_launch());
    assert_eq!(untimed.map(Line::contender).collect::<Vec<_>>(), [tf32]);
    // Without NVML, a run is otherwise the same.
    let (state, table, log) = bench("");
    assert_eq!(state, None);
    assert_contains(&table, &["of f32\n"]);
    assert!(log.iter().all(|line| line.kind != "nvml"));
    let (report, _) = report(&format!("{EXACT} nvml=0"), "");
    assert_eq!(report["gpu_state"]["power_w"], 689.5);
}

fn a_wrong_kernel_is_not_timed_and_not_passed() {
    // Wrong in the exact gate and, if it is right there, in the gate with the bound.
    for (first, gate) in [(1, "exact"), (2, "bound")] {
        let settings = format!("{EXACT} wrong_kernel_from={first}");
        let (why, log) = wrong(&settings, "");
        assert_contains(&why, &["C[0][0] is "]);
        assert_eq!(log.iter().filter(|line| line.is_launch()).count(), first);
        let ran = host(&settings, "bench --device cuda --kernel naive --sizes 24");
        assert_eq!(ran.ended.code, Some(1), "{gate}: {}", ran.ended.err);
        assert_contains(&ran.ended.out, &["FAILED"]);
    }
}

/// The report's reason why the only kernel is wrong and has no times; and the log.
fn wrong(settings: &str, more: &str) -> (String, Vec<Line>) {
    let ran = multiply(settings, &format!("{more} --format json"));
    assert_eq!(ran.ended.code, Some(1), "{settings}: {}", ran.ended.err);
    let report: Value = serde_json::from_str(&ran.ended.out).unwrap();
    let record = &report["results"][0];
    assert_eq!(record["passed"], false, "{settings}");
    for figure in ["time_median_s", "flops_per_s", "ratio_to_cublas"] {
        assert_eq!(record[figure], Value::Null, "{settings}");
    }
    let why = record["verification"].as_str().unwrap().to_string();
    (why, ran.log)
}

/// In a batch, the last product is the wrong one.
fn what_is_wrong_only_while_it_is_timed_has_no_times() {
    let timed = "The result was right, but that of a launch like the timed ones is not: ";
    let last = "Product 4 of the batch, counted from 0: ";
    let batch = format!("{BATCH} --kernel tiled-32");
    for (more, product, name) in [
        ("", "", "cublas-fp32"),
        ("--kernel tiled --dtype f64", "", "cublas-fp64"),
        (&batch, last, "cublas-fp32"),
    ] {
        let (why, _) = wrong(&format!("{EXACT} wrong_kernel_from=3"), more);
        assert_contains(&why, &[timed, &format!("{product}C[0][0] is ")]);
        // Nothing is compared with a wrong cuBLAS.
        let ran = multiply(&format!("{EXACT} wrong_cublas_from=2"), more);
        assert_eq!(ran.ended.code, Some(1));
        assert_contains(&ran.ended.err, &[name, product, "C[0][0] is "]);
    }
    let (why, _) = wrong(&format!("{EXACT} wrong_kernel_from=1"), &batch);
    assert!(why.contains(last) && !why.contains(timed), "{why}");
}

/// A and B are read back once for all contenders, so the error names each of them.
fn a_write_into_a_while_it_is_timed_is_an_error() {
    let ended = multiply(&format!("{EXACT} wrong_a_from=3"), "").ended;
    assert_eq!(ended.code, Some(1));
    assert_contains(
        &ended.err,
        &["Kernel `naive` or `cublas-fp32` or", "wrote into A, "],
    );
}

fn a_time_that_no_gpu_can_reach_is_refused() {
    for (shape, why) in [
        (SHAPE, "naive took 1.000e-9 s a launch, 87.78 TFLOP/s, but"),
        (
            "--m 330 --n 70 --k 1",
            "but its matrices cannot pass through memory in",
        ),
    ] {
        let ran = host(
            "kernel_ns=1",
            &format!("--device cuda --kernel naive {shape}"),
        );
        assert_eq!(ran.ended.code, Some(1), "{}", ran.ended.out);
        assert_contains(&ran.ended.err, &["error: The measurement is wrong: ", why]);
    }
}

/// B has more than 2^25 elements, so the host alone would only compare a sample.
const LARGE: &str = "--m 1 --n 524300 --k 64 --kernel naive --baseline none --runs 1 --warmup 0 \
                     --format json";

fn a_large_product_is_compared_with_one_that_the_gpu_computed_in_f64() {
    let ran = host(EXACT, &format!("--device cuda {LARGE}"));
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    assert_eq!(report["results"][0]["coverage"], "full");
    let launches = ran.log.iter().filter(|line| line.is_launch());
    let names: Vec<String> = launches.map(Line::contender).collect();
    let reference = "tiled_32_f64";
    assert_eq!(names[..4], ["naive", reference, reference, "naive"]);
}

fn a_large_product_of_two_devices_is_compared_and_none_with_a_wrong_reference() {
    // The first device computes the reference.
    let ran = host(EXACT, &format!("--device cuda:0+0 {LARGE}"));
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    assert_eq!(report["results"][0]["coverage"], "full");
    // Nothing is compared with a wrong reference.
    let ran = host(
        &format!("{EXACT} wrong_kernel_from=2"),
        &format!("--device cuda {LARGE}"),
    );
    assert_eq!(ran.ended.code, Some(1));
    let why = "row 0 of the reference that the GPU computed is wrong.";
    assert_contains(&ran.ended.out, &[why]);
    assert_eq!(ran.log.iter().filter(|line| line.is_launch()).count(), 3);
}

fn out_of_memory_at_any_allocation_reports_sizes() {
    // Allocations: two checks, each with A, B, C and a workspace between guard bands; then two
    // copies of A, B and C.
    for allocation in 1..=8 + 6 {
        let settings = format!("{EXACT} no_memory_at={allocation}");
        let ran = multiply(&settings, "--baseline cublas");
        let failed = ran.log.iter().find(|line| line.kind == "no-memory");
        let [bytes, free, total] = failed.unwrap().numbers(["bytes", "free", "total"]);
        let expected = format!(
            "The GPU is out of memory: there is no room for {bytes} bytes, since only {free} of {total} are free."
        );
        assert_eq!(ran.ended.code, Some(1));
        assert_contains(&ran.ended.err, &[&expected]);
    }
}

fn a_crash_a_refused_launch_and_a_failing_cublas_are_told_apart() {
    let crashed =
        "error: Kernel `naive` crashed on the GPU: 719 (LaunchFailed). It recorded no panic;";
    for launch in [1, 2] {
        let error = failure(&format!("crash_at={launch}"), "");
        assert!(error.starts_with(crashed), "{error}");
    }
    // Earlier checks remain in the report.
    let ran = multiply("crash_at=10", "");
    let lost =
        "error: The GPU's context was lost when an earlier kernel crashed: 719 (LaunchFailed).";
    assert_eq!(ran.ended.code, Some(1));
    assert_contains(&ran.ended.err, &[lost]);
    assert_contains(&ran.ended.out, &["naive: passed"]);
    let refused = failure("launch=701", "");
    let kernel = "error: Kernel `naive` cannot be launched with 256 threads a CTA on this GPU: CUDA error 701";
    assert!(refused.starts_with(kernel), "{refused}");
    let ran = multiply("cublas=13", "");
    assert_eq!(ran.ended.code, Some(1));
    let status = "error: cuBLAS failed in cublasGemmEx with status 13.\n";
    assert_contains(&ran.ended.err, &[status]);
}

fn files_are_multiplied_by_auto() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = [("a.npy", 1, 16), ("b.npy", 16, 32768)].map(|(name, rows, columns)| {
        let ones = Matrix::from_elements(rows, columns, |_, _| 1.0f32).unwrap();
        let path = folder.path().join(name);
        npy::write(&ones, &mut File::create(&path).unwrap()).unwrap();
        path.display().to_string()
    });
    let ran = host(
        EXACT,
        &format!("--a {a} --b {b} --baseline none --format json"),
    );
    let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
    let result = &report["results"][0];
    assert_eq!(
        (&result["kernel"], &result["passed"]),
        (&"auto".into(), &true.into())
    );
}

fn the_doctor_names_the_gpu_and_the_cublas_that_there_are() {
    let said = host(EXACT, "doctor").ended.succeeded();
    assert_contains(&said, &["Fake GPU", "/libcublas.so.12"]);
}

fn a_driver_that_is_of_no_use_says_why() {
    let isa = "The driver (CUDA 13.0) is too old for this build's PTX ISA ";
    let architecture = "The GPU has compute capability 9.0, but this build's PTX is for sm_90";
    for (settings, why) in [
        (
            "init=100",
            "The NVIDIA driver finds no GPU (CUDA error 100).",
        ),
        (
            "init=999",
            "The NVIDIA driver does not start: CUDA error 999 (",
        ),
        ("module=222", isa),
        ("module=209", architecture),
        (
            "module=218",
            "The driver refuses this build's PTX (CUDA error 218).",
        ),
    ] {
        let error = failure(settings, "");
        assert!(error.starts_with(&format!("error: {why}")), "{error}");
        assert_eq!(
            error.contains("the fake driver's log"),
            settings == "module=218"
        );
    }
    let gpu = "error: There is no GPU 1: the driver finds 1, counted from 0.";
    let error = host("", "--kernel naive --device cuda:1 --size 8")
        .ended
        .refused(1);
    assert!(error.starts_with(gpu), "{error}");
    // Without `--device`, the simulator takes over, and the report says why.
    let ran = host("init=100", "--kernel naive --size 8");
    assert_contains(
        &ran.ended.succeeded(),
        &["device  simulator", "finds no GPU"],
    );
}
