//! One GPU as several devices: panels, and copies through page-locked buffers, are sent on
//! separate streams, in every order that events allow.

use gpu_gemm::device::cuda::{Side, Stage, Staging, Transfer};
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{Choice, CudaDevice, Devices, Scalar, Shape, Split, Transpose, Way};
use serde_json::Value;
use verification::data::{Problem, Storage};
use verification::verify::{self, Coverage};

use crate::common::assert_contains;
use crate::fake::{Line, again, host, is_loaded};
use crate::fake_gpu::{EXACT, SHAPE};

/// Streams run at once; or as late as possible, streams of kernels before those of copies or after
/// them; or kernels early and copies late.
const ORDERS: [&str; 4] = ["deferred=0", "deferred=1", "deferred=2", "deferred=3"];

pub fn panels_are_multiplied_only_when_they_have_arrived_wherever_matrices_start() {
    let split = Split::of(Shape::new(33, 70, 19), 2);
    let formula: Value = (0..2).map(|device| 4 * split.received(device)).collect();
    for order in ORDERS {
        for more in [
            "",
            "--beta 2 --transpose-a",
            "--beta 1 --transpose-b --padding 3 --start first",
            "--beta 1 --start host",
        ] {
            let arguments =
                format!("--device cuda:0+0 {SHAPE} --kernel naive --runs 2 --format json {more}");
            let ran = host(&format!("{EXACT} waits=0 {order}"), &arguments);
            let report: Value = serde_json::from_str(&ran.ended.succeeded()).unwrap();
            let record = &report["results"][0];
            assert_eq!(record["passed"], true, "{order} {more}: {record}");
            let several = &record["several"];
            assert_eq!(several["link"], "panels are copied within the GPU");
            assert_eq!([&several["devices"], &several["gpus"]], [2, 1]);
            assert_eq!(several["grid"], serde_json::json!([1, 2]));
            if !more.contains("first") {
                assert_eq!(several["received_bytes"], formula);
            }
            // Both devices receive panels in each product: in two checks, one that loads code, and
            // two timed runs.
            let copies = ran.log.iter().filter(|line| line.kind == "copy");
            assert!(copies.count() >= 2 * 5);
        }
    }
}

pub fn what_is_for_one_gpu_says_so() {
    let product = format!("--device cuda:0+0 {SHAPE} --kernel naive");
    let refused = host("", &format!("{product} --baseline cublas")).ended;
    let why = "cuBLAS, which `--baseline` names, multiplies on one GPU";
    assert_contains(&refused.refused(2), &[why]);
    let tune = host("", "tune --device cuda:0+0 --sizes 8").ended;
    assert_contains(&tune.err, &["measures one GPU at a time"]);
}

/// Copies of a few rows, or of less than a row, by several threads, and products of a few lines.
const FINELY: Staging = Staging {
    threads: 3,
    buffer_bytes: 1000,
    least_bytes: 1,
    least_lines: 8,
};

pub fn matrices_in_host_memory_are_multiplied_while_they_arrive() {
    if !is_loaded() {
        let test = "several::matrices_in_host_memory_are_multiplied_while_they_arrive";
        for order in ORDERS {
            let log = again(&format!("{EXACT} waits=0 {order}"), test);
            // In both directions, and with more launches than blocks.
            for to in [0, 1] {
                let staged = |line: &&Line| line.kind == "host" && line.number("to") == to;
                let staged: Vec<&Line> = log.iter().filter(staged).collect();
                assert!(staged.iter().all(|line| line.number("bytes") <= 1000));
                assert!(staged.len() > 100, "{}", staged.len());
            }
        }
        return;
    }
    let choice = Choice::even(&naive::KERNEL.variants[0]);
    let shape = Shape::new(67, 70, 290);
    for count in [2, 4] {
        let members = (0..count).map(|_| CudaDevice::open(0).unwrap().into());
        let devices = Devices::of(members.collect()).unwrap();
        let devices = devices.with_staging(FINELY);
        for (index, beta) in [0.0, -1.0].into_iter().enumerate() {
            let transposes = [Transpose::ALL[index], Transpose::ALL[1 - index]];
            let scalars = (Scalar::F32(2.0), Scalar::F32(beta));
            let count = devices.count();
            let product = devices.streamed((shape, transposes), count, scalars, Some(choice));
            let mut product = product.unwrap();
            // Other matrices each time: data left on a device is wrong for the next product.
            for seed in [1, 2] {
                let storage = Storage {
                    transposes,
                    ..Storage::padded([1, 2, 3], [3, 2, 1])
                };
                let data = verify::small_integers::<f32>(shape.k).unwrap();
                let problem = Problem::random(shape, storage, data, seed, 2.0, beta).unwrap();
                let factors = problem.factors_as::<f32>().unwrap();
                let [a, b] = factors
                    .each_ref()
                    .map(|one| (one.elements(), one.leading()));
                let (mut c, leading) = (problem.c.clone(), problem.c.leading());
                product.multiply(a, b, (c.elements_mut(), leading)).unwrap();
                let case = format!("{count} devices, beta {beta}, seed {seed}");
                let exact = verify::exact(&problem, &c, choice.variant.tile, Coverage::Full);
                exact.unwrap_or_else(|failure| panic!("{case}: {failure}"));
                let padding = c.first_padding_difference(problem.c.buffer());
                assert_eq!(padding, None, "{case}");
            }
        }
    }
}

/// Bytes of a row, rows, and the row strides in bytes on the host and on the GPU: several rows in
/// a buffer, several buffers for a row, and one row.
const SIZES: [(usize, usize, usize, usize); 4] = [
    (333, 50, 333, 340),
    (2501, 7, 2600, 2501),
    (5003, 1, 5003, 5003),
    (1, 4001, 3, 2),
];

/// The fake ends the process if a copy reads page-locked memory that has been freed.
pub fn each_row_arrives_though_the_buffers_owner_is_gone_and_nothing_between_rows_is_touched() {
    if !is_loaded() {
        let test = "several::each_row_arrives_though_the_buffers_owner_is_gone_and_nothing_between_rows_is_touched";
        for order in ORDERS {
            again(&format!("waits=0 {order}"), test);
        }
        return;
    }
    let gpu = CudaDevice::open(0).unwrap();
    let _entered = gpu.enter().unwrap();
    let stream = gpu.stream();
    let driver_alone = Staging {
        least_bytes: usize::MAX,
        ..FINELY
    };
    for staging in [FINELY, driver_alone] {
        for (width, height, host_pitch, pitch) in SIZES {
            let source: Vec<u8> = (0..host_pitch * height)
                .map(|at| (at % 251) as u8)
                .collect();
            let on_gpu = gpu.allocate::<u8>(pitch * height).unwrap();
            let mut target = vec![255; host_pitch * height];
            let side = |start, pitch| Side { start, pitch };
            let transfer = |way, host| Transfer {
                way,
                host: side(host, host_pitch),
                device: side(on_gpu.as_device_ptr().as_mut_ptr(), pitch),
                width,
                height,
            };
            let send = transfer(Way::ToDevice, source.as_ptr().cast_mut());
            let receive = transfer(Way::ToHost, target.as_mut_ptr());
            let mut sender = Stage::new(staging);
            // SAFETY: both sides have these rows until the second copy is done, which is on the
            // same stream.
            unsafe {
                sender.copy((&gpu, stream), send).unwrap();
                drop(sender);
                Stage::new(staging).copy((&gpu, stream), receive).unwrap();
            }
            let rows = source.chunks(host_pitch).zip(target.chunks(host_pitch));
            for (row, (sent, received)) in rows.enumerate() {
                assert_eq!(sent[..width], received[..width], "row {row} of {width}");
                assert!(received[width..].iter().all(|between| *between == 255));
            }
        }
    }
}
