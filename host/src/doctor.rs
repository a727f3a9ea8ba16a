//! `doctor`: what is present of everything that kernels on a GPU need, and what to do about what
//! is missing.

use std::io::{self, Write};

use nvvm::{Compiler, Toolkit, nvdisasm};

use gpu_gemm::DeviceError;
use gpu_gemm::Simulator;
use gpu_gemm::choose::{Found, Key, Tuned};
use gpu_gemm::device::{compiled, driver, opencl, ptx};
use gpu_gemm::gpu::Properties;
use gpu_gemm::text::plural;

use crate::measure::cublas;

/// One check: what was found, or what to do.
struct Finding {
    name: &'static str,
    result: Result<String, String>,
}

/// Runs every check and writes what it finds.
pub fn examine(out: &mut dyn Write) -> io::Result<()> {
    let mut findings = vec![];
    let gpus = driver::probe();
    match &gpus {
        Ok(found) => {
            let versions = found.first().map_or("?", |gpu| gpu.driver.as_str());
            findings.push(found_is("driver", format!("supports CUDA {versions}")));
            findings.extend(found.iter().map(|gpu| found_is("GPU", gpu.to_string())));
            findings.extend(found.iter().map(tuned));
        }
        Err(error) => findings.push(missing("GPU", error.to_string())),
    }
    findings.extend(ptx_of_build());
    findings.extend(toolkit());
    findings.push(match cublas::find() {
        Some(path) => found_is("cuBLAS", path.display().to_string()),
        None => missing(
            "cuBLAS",
            format!(
                "{} It is needed only to compare times with.",
                cublas::CublasError::NotFound
            ),
        ),
    });
    findings.extend(opencl());
    findings.push(found_is("simulator", Simulator::default().description()));
    for Finding { name, result } in &findings {
        match result {
            Ok(found) => writeln!(out, "[ok]      {name:<10} {found}")?,
            Err(advice) => writeln!(out, "[missing] {name:<10} {advice}")?,
        }
    }
    let where_to = match gpus.is_ok() && compiled::why_absent().is_none() {
        true => "on the GPU",
        false => "on the simulator",
    };
    writeln!(out, "\nWithout `--device`, kernels run {where_to}.")
}

fn found_is(name: &'static str, what: String) -> Finding {
    Finding {
        name,
        result: Ok(what),
    }
}

fn missing(name: &'static str, advice: String) -> Finding {
    Finding {
        name,
        result: Err(advice),
    }
}

/// Whether `--kernel auto` has measurements of a GPU to use.
fn tuned(gpu: &Properties) -> Finding {
    match Tuned::find(&Key::of(gpu)) {
        Found::Usable(tuned) => {
            let count = tuned.entries().len();
            found_is(
                "tuned",
                match count {
                    1 => format!("1 shape was measured on {}", gpu.name),
                    _ => format!("{count} shapes were measured on {}", gpu.name),
                },
            )
        }
        Found::Useless(why) => missing("tuned", why),
        Found::Nothing => missing(
            "tuned",
            format!(
                "Nothing was measured on {}, so `--kernel auto` relies on its model; `rust-gemm tune` measures.",
                gpu.name
            ),
        ),
    }
}

fn ptx_of_build() -> Vec<Finding> {
    let modules = compiled::modules();
    let of_module = |module: &compiled::Module| {
        let (isa, kernels) = (module.isa()?, module.count()?);
        let what = format!(
            "{} for {} and newer, PTX ISA {isa}: takes driver {} or newer",
            plural(kernels, "kernel"),
            module.target(),
            ptx::driver_needed(isa)
        );
        Some(found_is("PTX", what))
    };
    let mut findings: Vec<Finding> = modules.iter().filter_map(of_module).collect();
    if findings.is_empty() && !modules.is_empty() {
        let what = "a kernel is compiled when it is first launched or shown";
        return vec![found_is("PTX", what.to_string())];
    }
    if let (true, Some(reason)) = (modules.is_empty(), compiled::why_absent()) {
        return vec![missing("PTX", reason.to_string())];
    }
    findings.extend(compiled::assembled().map(|architecture| {
        let what =
            format!("the same kernels for sm_{architecture}, which the driver need not compile");
        found_is("code", what)
    }));
    findings
}

/// The devices of OpenCL, and the kernels for them.
fn opencl() -> Vec<Finding> {
    let devices = match opencl::probe() {
        Ok(devices) => devices,
        Err(error) => {
            let advice = DeviceError::without_simulator(&error.to_string());
            return vec![missing(
                "OpenCL",
                format!("{advice} Only `--device opencl` needs it."),
            )];
        }
    };
    let numbered = devices.iter().enumerate();
    let mut findings: Vec<Finding> = numbered
        .map(|(number, device)| found_is("OpenCL", format!("opencl:{number}: {device}")))
        .collect();
    findings.push(match opencl::source::count() {
        Some(0) => missing(
            "OpenCL C",
            "This build holds no kernels in OpenCL C.".to_string(),
        ),
        Some(count) => found_is("OpenCL C", plural(count, "kernel")),
        None => found_is(
            "OpenCL C",
            "a kernel is made when it is first launched or shown".to_string(),
        ),
    });
    findings
}

fn toolkit() -> Vec<Finding> {
    let Some(toolkit) = Toolkit::find() else {
        let advice = "There is no libNVVM. The build fetches it where it may and can; else install a CUDA toolkit or \
                      the Python package nvidia-cuda-nvcc-cu12, or set LIBNVVM_PATH, and build again.";
        return vec![missing("libNVVM", advice.to_string())];
    };
    // SAFETY: it has libNVVM's name, in a folder of a CUDA toolkit or one that the user has named.
    let libnvvm = match unsafe { Compiler::load(&toolkit) } {
        Ok(compiler) => found_is(
            "libNVVM",
            format!("{} from {}", compiler.version(), toolkit.libnvvm.display()),
        ),
        Err(error) => missing("libNVVM", error.to_string()),
    };
    let ptxas = match &toolkit.ptxas {
        Some(path) => found_is("ptxas", path.display().to_string()),
        None => missing(
            "ptxas",
            "It is not beside libNVVM. Only `rust-gemm explain`, `rust-gemm ptx --sass` and tests need it: install a CUDA toolkit for it."
                .to_string(),
        ),
    };
    let nvdisasm = match nvdisasm::find() {
        Some(path) => found_is("nvdisasm", path.display().to_string()),
        None => missing(
            "nvdisasm",
            "Only `rust-gemm ptx --sass` needs it: install a CUDA toolkit or the Python package nvidia-cuda-nvdisasm."
                .to_string(),
        ),
    };
    vec![libnvvm, ptxas, nvdisasm]
}
