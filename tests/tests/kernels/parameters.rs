//! A kernel receives the values that a launch passes, on a GPU and in the simulator.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use cuda_std::simulator;
use cust::context::Context;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use device_kernels::parameters::{
    Meters, Shape, Table, Values, WORDS, grid_constants_have_addresses, values_arrive,
};
use device_kernels::probe::UNWRITTEN;
use gpu_gemm::device::{driver, ptx};
use libtest_mimic::{Failed, Trial};
use tests::{built, on_gpu, on_simulator};

/// A kernel of 64 threads, and its expected output.
struct Case {
    entry: &'static str,
    expected: fn(&Values) -> Vec<u32>,
    /// Calls it as a thread of the simulator.
    call: unsafe fn(&Values, *mut u32),
    /// The addresses of its parameters.
    parameters: fn(&Values, &DevicePointer<u32>) -> Vec<*mut c_void>,
}

const THREADS: u32 = 64;

static CASES: [Case; 2] = [
    Case {
        entry: "values_arrive",
        expected: |values| (0..64).flat_map(|i| words(values, i)).collect(),
        call: call_values_arrive,
        parameters: |values, output| {
            vec![
                address(&ODD),
                address(&values.shape),
                address(&values.lengths),
                address(&values.length),
                address(&values.letter),
                address(&values.flag),
                address(&values.wide),
                address(&values.negative),
                address(&values.pair),
                address(&values.optional),
                address(&values.table),
                address(output),
            ]
        },
    },
    Case {
        entry: "grid_constants_have_addresses",
        expected: |Values { shape, table, .. }| {
            let ends = u32::from(shape.rows) | u32::from(shape.cols) << 16;
            let mirrored = table.0.iter().rev();
            mirrored.map(|word| word ^ ends ^ u32::from(ODD)).collect()
        },
        call: |values, output| {
            // SAFETY: one block of 64 threads, and 64 words.
            unsafe { grid_constants_have_addresses(ODD, &values.table, &values.shape, output) }
        },
        parameters: |values, output| {
            vec![
                address(&ODD),
                address(&values.table),
                address(&values.shape),
                address(output),
            ]
        },
    },
];

static ODD: u8 = 5;

fn values() -> Values {
    Values {
        shape: Shape {
            rows: 200,
            cols: 60_000,
            scale: -2.5e100,
        },
        lengths: [1, 2, 0xFFFF],
        length: Meters(0.1),
        letter: '\u{1F980}',
        flag: true,
        wide: u128::MAX / 3,
        negative: -1 << 100,
        pair: (7, 0x8000_0000),
        optional: None,
        table: Table(std::array::from_fn(|i| 0x0101_0101 * i as u32)),
    }
}

/// The output of `values_arrive` in thread `i`.
fn words(values: &Values, i: u16) -> [u32; WORDS] {
    let lengths: [u32; 3] = std::array::from_fn(|place| {
        let added = if usize::from(i) % 3 == place { i } else { 0 };
        values.lengths[place].wrapping_add(added).into()
    });
    let [wide, negative] = [values.wide, values.negative.cast_unsigned()].map(u128::to_le_bytes);
    let word = |bytes: [u8; 16], place: usize| {
        let bytes = &bytes[4 * place..4 * place + 4];
        bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
    };
    [
        ODD.into(),
        values.shape.rows.into(),
        values.shape.cols.into(),
        (values.shape.scale.to_bits() >> 32) as u32,
        lengths[0],
        lengths[1],
        lengths[2],
        values.length.0.to_bits(),
        values.letter.into(),
        values.flag.into(),
        word(wide, 3),
        word(wide, 0),
        word(negative, 2),
        u32::from(values.pair.0) ^ values.pair.1,
        values.optional.map_or(0, |number| number.get()),
        values.table.0[usize::from(i)],
    ]
}

unsafe fn call_values_arrive(values: &Values, output: *mut u32) {
    let Values {
        shape,
        lengths,
        length,
        letter,
        flag,
        wide,
        negative,
        pair,
        optional,
        table,
    } = *values;
    // SAFETY: one block of 64 threads, and room for the words of each.
    unsafe {
        values_arrive(
            ODD,
            shape,
            lengths,
            length,
            letter,
            flag,
            wide,
            negative,
            pair,
            optional,
            (),
            table,
            output,
        );
    }
}

fn address<T>(value: &T) -> *mut c_void {
    ptr::from_ref(value).cast_mut().cast()
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for case in &CASES {
        trials.push(on_simulator(format!("parameters::{}", case.entry), || {
            case.check(case.simulate())
        }));
        trials.push(on_gpu(format!("parameters::{}", case.entry), || {
            let found = driver::probe().map_err(|error| error.to_string())?;
            let gpu = found.first().ok_or("no GPU")?;
            let version = ptx::version(&gpu.driver);
            case.check(case.on_gpu(built::newest_probes(gpu.architecture(), version)))
        }));
        // Newer GPUs run the oldest code, too.
        let oldest = || case.check(case.on_gpu(built::probes().swap_remove(0)));
        let name = format!("parameters::oldest::{}", case.entry);
        trials.push(on_gpu(name, oldest));
    }
    trials
}

impl Case {
    fn check(&self, output: Result<Vec<u32>, String>) -> Result<(), Failed> {
        assert_eq!(output?, (self.expected)(&values()));
        Ok(())
    }

    fn simulate(&self) -> Result<Vec<u32>, String> {
        let values = values();
        let mut output = vec![UNWRITTEN; (self.expected)(&values).len()];
        let words = AtomicPtr::new(output.as_mut_ptr());
        simulator::Launch::new(1, THREADS)
            // SAFETY: the launch and the length of the output are as the case requires.
            .run(|| unsafe { (self.call)(&values, words.load(Relaxed)) })
            .map_err(|fault| fault.to_string())?;
        Ok(output)
    }

    /// Runs the kernel of this module.
    fn on_gpu(&self, module: &str) -> Result<Vec<u32>, String> {
        let launched = self.launch(module);
        launched.map_err(|error| format!("{} fails: {error}", self.entry))
    }

    fn launch(&self, module: &str) -> cust::error::CudaResult<Vec<u32>> {
        cust::init(cust::CudaFlags::empty())?;
        let _context = Context::new(cust::device::Device::get_device(0)?)?;
        let module = Module::from_ptx(module, &[])?;
        let function = module.get_function(self.entry)?;
        let stream = Stream::new(StreamFlags::DEFAULT, None)?;
        let values = values();
        let mut words = vec![UNWRITTEN; (self.expected)(&values).len()];
        let output = DeviceBuffer::from_slice(&words)?;
        let pointer = output.as_device_ptr();
        let parameters = (self.parameters)(&values, &pointer);
        // SAFETY: these are the kernel's parameters; the driver copies them, and the buffer
        // outlives the launch, since this waits for it.
        unsafe { stream.launch(&function, 1, THREADS, 0, &parameters)? };
        stream.synchronize()?;
        output.copy_to(&mut words)?;
        Ok(words)
    }
}
