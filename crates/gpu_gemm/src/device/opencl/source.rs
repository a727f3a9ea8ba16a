//! The kernels in OpenCL C that are embedded in this build.

use gpu_kernels::spec::{Block, Variant};

/// A kernel's entry point, and its program or why it has none.
type Embedded = (&'static str, Result<&'static str, &'static str>);

/// In the order of their names; empty if the build made none.
static KERNELS: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/opencl.rs"));

/// Why there is no OpenCL C of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The build made no device code.
    NotBuilt,
    /// The kernel has no meaning in OpenCL C, for this reason.
    Refused(&'static str),
}

/// The program that has this kernel alone.
///
/// # Errors
///
/// There is none.
pub fn of(entry: &str) -> Result<&'static str, Absent> {
    match KERNELS.binary_search_by(|(name, _)| (*name).cmp(entry)) {
        Ok(found) => KERNELS[found].1.map_err(Absent::Refused),
        Err(_) => Err(Absent::NotBuilt),
    }
}

/// The number of kernels that have a program.
pub fn count() -> usize {
    KERNELS.iter().filter(|(_, text)| text.is_ok()).count()
}

/// What the compiler of a program is to be given: the second line of its text.
pub fn options(source: &str) -> &str {
    let lines = source.lines().take(2);
    let mut options = lines.filter_map(|line| line.strip_prefix("// options: "));
    options.next().unwrap_or_default()
}

/// The program of a rung with the size of its work-groups, which its launches always have. Without
/// it NVIDIA's compiler allots registers as if a work-group had 256 work-items, and refuses larger
/// ones.
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

/// A program whose products are not fused with sums. It may fuse them, and need not.
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
    fn kernels_are_in_the_order_of_their_names() {
        assert!(KERNELS.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn options_are_those_of_the_head() {
        let text =
            "// The kernel k. OpenCL C 1.2.\n// options: -cl-std=CL1.2 -x\n\n// options: no\n";
        assert_eq!(options(text), "-cl-std=CL1.2 -x");
        assert_eq!(options("__kernel void k() {}\n"), "");
    }

    #[test]
    fn each_embedded_program_has_its_kernel_and_options() {
        for (name, text) in KERNELS {
            match text {
                Ok(text) => {
                    assert!(text.contains(&format!("__kernel void {name}(")), "{name}");
                    assert!(options(text).starts_with("-cl-std=CL"), "{name}");
                    assert!(text.contains("FP_CONTRACT ON\n"), "{name}");
                    let without = without_contraction(text);
                    assert!(without.contains("FP_CONTRACT OFF\n"), "{name}");
                    assert!(!without.contains("FP_CONTRACT ON"), "{name}");
                }
                Err(reason) => assert!(!reason.is_empty(), "{name}"),
            }
        }
    }
}
