//! `doctor`: whether everything that kernels on a GPU need is present, and how to get what is
//! missing.

use std::io::{self, Write};
use std::path::PathBuf;

use nvvm::{Compiler, Toolkit, nvdisasm};

use gpu_gemm::DeviceError;
use gpu_gemm::Simulator;
use gpu_gemm::choose::{Found, Key, Tuned};
use gpu_gemm::device::{compiled, driver, opencl, ptx};
use gpu_gemm::gpu::Properties;
use gpu_gemm::text::plural;

use crate::measure::cublas;
use crate::report::folded;

/// A check's name, and what it found or what to do.
type Finding = (&'static str, Result<String, String>);

/// Runs every check and writes what it finds.
pub fn examine(out: &mut dyn Write) -> io::Result<()> {
    let mut findings: Vec<Finding> = vec![];
    let gpus = driver::probe();
    match &gpus {
        Ok(found) => {
            let versions = found.first().map_or("?", |gpu| gpu.driver.as_str());
            findings.push(("driver", Ok(format!("supports CUDA {versions}"))));
            findings.extend(found.iter().map(|gpu| ("GPU", Ok(gpu.to_string()))));
            findings.extend(found.iter().map(|gpu| ("tuned", tuned(gpu))));
        }
        Err(error) => findings.push(("GPU", Err(error.to_string()))),
    }
    findings.extend(ptx_of_build());
    findings.extend(toolkit());
    let no_cublas = cublas::CublasError::NotFound;
    let cublas = cublas::find().map(|path| path.display().to_string());
    let advice = || format!("{no_cublas} It is needed only to compare times.");
    findings.push(("cuBLAS", cublas.ok_or_else(advice)));
    findings.extend(opencl());
    findings.push(("simulator", Ok(Simulator::default().description())));
    for (name, result) in &findings {
        let (mark, text) = match result {
            Ok(found) => ("[ok]", found),
            Err(advice) => ("[missing]", advice),
        };
        let line = format!("{mark:<9} {name:<10} {text}");
        writeln!(out, "{}", folded(&line))?;
    }
    let where_to = match gpus.is_ok() && compiled::why_absent().is_none() {
        true => "on the GPU",
        false => "on the simulator",
    };
    writeln!(out, "\nWithout `--device`, kernels run {where_to}.")
}

/// Whether there are measurements of this GPU for `--kernel auto`.
fn tuned(gpu: &Properties) -> Result<String, String> {
    let name = &gpu.name;
    match Tuned::find(&Key::of(gpu)) {
        Found::Usable(tuned) => Ok(match tuned.entries().len() {
            1 => format!("1 shape was measured on {name}"),
            count => format!("{count} shapes were measured on {name}"),
        }),
        Found::Useless(why) => Err(why),
        Found::Nothing => Err(format!(
            "Nothing was measured on {name}, so `--kernel auto` relies on its model; `rust-gemm tune` measures."
        )),
    }
}

fn ptx_of_build() -> Vec<Finding> {
    let modules = compiled::modules();
    let of_module = |module: &compiled::Module| {
        let (isa, kernels) = (module.isa()?, module.count()?);
        let what = format!(
            "{} for {} and newer, PTX ISA {isa}: needs driver {} or newer",
            plural(kernels, "kernel"),
            module.target(),
            ptx::driver_needed(isa)
        );
        Some(("PTX", Ok(what)))
    };
    let mut findings: Vec<Finding> = modules.iter().filter_map(of_module).collect();
    if findings.is_empty() && !modules.is_empty() {
        let what = "a kernel is compiled when it is first launched or shown";
        return vec![("PTX", Ok(what.to_string()))];
    }
    if let (true, Some(reason)) = (modules.is_empty(), compiled::why_absent()) {
        return vec![("PTX", Err(reason.to_string()))];
    }
    findings.extend(compiled::assembled().map(|architecture| {
        let what =
            format!("the same kernels for sm_{architecture}, which the driver need not compile");
        ("code", Ok(what))
    }));
    findings
}

/// The OpenCL devices, and the kernels for them.
fn opencl() -> Vec<Finding> {
    let devices = match opencl::probe() {
        Ok(devices) => devices,
        Err(error) => {
            let advice = DeviceError::without_simulator(&error.to_string());
            let advice = format!("{advice} Only `--device opencl` needs it.");
            return vec![("OpenCL", Err(advice))];
        }
    };
    let numbered = devices.iter().enumerate();
    let found = numbered.map(|(number, device)| format!("opencl:{number}: {device}"));
    let mut findings: Vec<Finding> = found.map(|device| ("OpenCL", Ok(device))).collect();
    let kernels = match opencl::source::count() {
        Some(0) => Err("This build holds no kernels in OpenCL C.".to_string()),
        Some(count) => Ok(plural(count, "kernel")),
        None => Ok("a kernel is made when it is first launched or shown".to_string()),
    };
    findings.push(("OpenCL C", kernels));
    findings
}

fn toolkit() -> Vec<Finding> {
    let Some(toolkit) = Toolkit::find() else {
        let advice = "There is no libNVVM. The build downloads it if it may and can; otherwise install a CUDA toolkit or \
                      the Python package nvidia-cuda-nvcc-cu12, or set LIBNVVM_PATH, and build again.";
        return vec![("libNVVM", Err(advice.to_string()))];
    };
    // SAFETY: it has libNVVM's name, in the folder of a CUDA toolkit or one that the user named.
    let libnvvm = match unsafe { Compiler::load(&toolkit) } {
        Ok(compiler) => Ok(format!(
            "{} from {}",
            compiler.version(),
            toolkit.libnvvm.display()
        )),
        Err(error) => Err(error.to_string()),
    };
    let found = |path: Option<PathBuf>, advice: &str| match path {
        Some(path) => Ok(path.display().to_string()),
        None => Err(advice.to_string()),
    };
    let no_ptxas = "It is not beside libNVVM. Only `rust-gemm explain`, `rust-gemm ptx --sass` and tests need it: install a CUDA toolkit for it.";
    let no_nvdisasm = "Only `rust-gemm ptx --sass` needs it: install a CUDA toolkit or the Python package nvidia-cuda-nvdisasm.";
    vec![
        ("libNVVM", libnvvm),
        ("ptxas", found(toolkit.ptxas, no_ptxas)),
        ("nvdisasm", found(nvdisasm::find(), no_nvdisasm)),
    ]
}
