//! Copies through page-locked buffers, in every order of what is on a stream.

use cust::memory::CopyDestination;
use gpu_gemm::device::cuda::{Direction, Stage, Staging, Transfer};
use gpu_gemm::{Device, DeviceChoice};

use crate::fake::{Line, again, is_loaded};
use crate::several::{FINELY, ORDERS};

/// Bytes of a row and rows, and the bytes from a row to the next on the host and on the GPU:
/// several rows in a buffer, several buffers for a row, and one row.
const SIZES: [(usize, usize, usize, usize); 4] = [
    (333, 50, 333, 340),
    (2501, 7, 2600, 2501),
    (5003, 1, 5003, 5003),
    (1, 4001, 3, 2),
];

pub fn each_row_arrives_and_nothing_between_rows_is_touched() {
    if !is_loaded() {
        let test = "staged::each_row_arrives_and_nothing_between_rows_is_touched";
        let bytes = SIZES.map(|(width, height, ..)| (width * height) as u64);
        for order in ORDERS {
            let log = again(&format!("waits=0 {order}"), test);
            for to in [0, 1] {
                let copies = log.iter().filter(|line| line.kind == "host");
                let copies = copies.filter(|line| line.number("to") == to);
                let (staged, direct): (Vec<&Line>, Vec<&Line>) =
                    copies.partition(|line| line.number("locked") == 1);
                let total = |lines: &[&Line]| -> u64 {
                    lines.iter().map(|line| line.number("bytes")).sum()
                };
                let largest = staged.iter().map(|line| line.number("bytes")).max();
                assert!(largest <= Some(FINELY.buffer_bytes as u64));
                // Each size twice: by several threads, and by the driver.
                let all: u64 = bytes.iter().sum();
                assert_eq!([total(&staged), total(&direct)], [all; 2], "{order}");
            }
        }
        return;
    }
    let Device::Cuda(gpu) = Device::open(DeviceChoice::Cuda(0)).unwrap().device else {
        panic!("it is a GPU");
    };
    let stream = gpu.stream();
    let driver_alone = Staging {
        least_bytes: usize::MAX,
        ..FINELY
    };
    for staging in [FINELY, driver_alone] {
        let mut stage = Stage::new(staging);
        for (width, height, host_pitch, pitch) in SIZES {
            let source: Vec<u8> = (0..host_pitch * height)
                .map(|at| (at % 251) as u8)
                .collect();
            let on_gpu = gpu.allocate::<u8>(pitch * height).unwrap();
            let mut target = vec![255; host_pitch * height];
            let transfer = |direction, host| Transfer {
                direction,
                host: (host, host_pitch),
                device: (on_gpu.as_device_ptr().as_raw(), pitch),
                width,
                height,
            };
            let send = transfer(Direction::ToDevice, source.as_ptr().cast_mut());
            let receive = transfer(Direction::ToHost, target.as_mut_ptr());
            // SAFETY: both sides have these rows until the second copy is done, which is on the
            // same stream.
            unsafe {
                stage.copy((&gpu, stream), send).unwrap();
                stage.copy((&gpu, stream), receive).unwrap();
            }
            let rows = source.chunks(host_pitch).zip(target.chunks(host_pitch));
            for (row, (sent, received)) in rows.enumerate() {
                assert_eq!(sent[..width], received[..width], "row {row} of {width}");
                assert!(received[width..].iter().all(|between| *between == 255));
            }
        }
    }
}

pub fn buffers_outlive_what_is_copied_from_them() {
    if !is_loaded() {
        // The fake ends the process if a copy reads memory that is page-locked no longer.
        let test = "staged::buffers_outlive_what_is_copied_from_them";
        for order in ORDERS {
            again(&format!("waits=0 {order}"), test);
        }
        return;
    }
    let Device::Cuda(gpu) = Device::open(DeviceChoice::Cuda(0)).unwrap().device else {
        panic!("it is a GPU");
    };
    let source: Vec<u8> = (0..5003).map(|at| (at % 251) as u8).collect();
    let on_gpu = gpu.allocate::<u8>(source.len()).unwrap();
    let mut stage = Stage::new(FINELY);
    let transfer = Transfer {
        direction: Direction::ToDevice,
        host: (source.as_ptr().cast_mut(), source.len()),
        device: (on_gpu.as_device_ptr().as_raw(), source.len()),
        width: source.len(),
        height: 1,
    };
    // SAFETY: both sides live until the copy is done, and nothing else uses them.
    unsafe { stage.copy((&gpu, gpu.stream()), transfer).unwrap() };
    drop(stage);
    gpu.stream().synchronize().unwrap();
    let mut arrived = vec![0; source.len()];
    on_gpu.copy_to(&mut arrived[..]).unwrap();
    assert_eq!(arrived, source);
}
