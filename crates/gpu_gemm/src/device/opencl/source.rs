//! The kernels in OpenCL C.

use gpu_kernels::spec::{Block, Variant};

use crate::device::compiled;
use crate::error::DeviceError;

/// Why there is no OpenCL C of a kernel.
#[derive(Debug)]
pub enum Absent {
    /// The build made no device code, or has no such kernel.
    NotBuilt,
    /// The kernel cannot be expressed in OpenCL C, for this reason.
    Refused(&'static str),
    /// It does not compile.
    Failed(DeviceError),
}

/// The program with only this kernel.
///
/// # Errors
///
/// There is none.
pub fn of(entry: &str) -> Result<&'static str, Absent> {
    match compiled::opencl(entry).map_err(Absent::Failed)? {
        Some(text) => text.map_err(Absent::Refused),
        None => Err(Absent::NotBuilt),
    }
}

/// The number of kernels that have a program, if it is known before they are compiled.
pub fn count() -> Option<usize> {
    compiled::opencl_count()
}

/// The compiler options of a program, from the second line of its text.
pub fn options(source: &str) -> &str {
    let lines = source.lines().take(2);
    let mut options = lines.filter_map(|line| line.strip_prefix("// options: "));
    options.next().unwrap_or_default()
}

/// The program of a rung with the fixed size of its work-groups. Without it NVIDIA's compiler
/// allocates registers for work-groups of 256 work-items, and refuses larger ones.
pub fn with_work_group(source: &str, entry: &str) -> String {
    let mut variants = gpu_kernels::variants();
    let is_its = |variant: &&Variant| variant.entry.name == entry;
    let Some(variant) = variants.find(is_its) else {
        return source.to_owned();
    };
    let Block { x, y } = variant.block;
    let attribute = format!("__attribute__((reqd_work_group_size({x}, {y}, 1)))");
    let head = format!("__kernel void {entry}(");
    source.replacen(&head, &format!("__kernel {attribute}\nvoid {entry}("), 1)
}

/// Whether a program uses f64.
pub fn needs_doubles(source: &str) -> bool {
    source.contains("#pragma OPENCL EXTENSION cl_khr_fp64")
}

/// The program without fusing of products and sums, which is optional.
pub fn without_contraction(source: &str) -> String {
    let allowed = "#pragma OPENCL FP_CONTRACT ON\n";
    source.replacen(allowed, "#pragma OPENCL FP_CONTRACT OFF\n", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_says_how_large_its_work_groups_are() {
        let source = "// The kernel\n__kernel void tiled_32(\n    ulong m";
        let expected = "// The kernel\n__kernel __attribute__((reqd_work_group_size(32, 32, 1)))\n\
                        void tiled_32(\n    ulong m";
        assert_eq!(with_work_group(source, "tiled_32"), expected);
        assert_eq!(with_work_group(source, "transpose"), source);
    }

    #[test]
    fn options_are_those_of_the_head() {
        let text =
            "// The kernel k. OpenCL C 1.2.\n// options: -cl-std=CL1.2 -x\n\n// options: no\n";
        assert_eq!(options(text), "-cl-std=CL1.2 -x");
        assert_eq!(options("__kernel void k() {}\n"), "");
    }

    #[test]
    fn each_program_has_its_kernel_and_options() {
        let kernels = gpu_kernels::variants().map(|variant| variant.entry);
        let shown = kernels.take(if count().is_none() { 1 } else { usize::MAX });
        for name in shown.map(|entry| entry.name) {
            match of(name) {
                Ok(text) => {
                    assert!(text.contains(&format!("__kernel void {name}(")), "{name}");
                    assert!(options(text).starts_with("-cl-std=CL"), "{name}");
                    assert!(text.contains("FP_CONTRACT ON\n"), "{name}");
                    let without = without_contraction(text);
                    assert!(without.contains("FP_CONTRACT OFF\n"), "{name}");
                    assert!(!without.contains("FP_CONTRACT ON"), "{name}");
                }
                Err(Absent::Refused(reason)) => assert!(!reason.is_empty(), "{name}"),
                Err(Absent::NotBuilt) => assert_eq!(count(), Some(0), "{name}"),
                Err(Absent::Failed(error)) => panic!("{error}"),
            }
        }
    }
}
