//! A kernel as OpenCL C, which version it needs, and whether it may fuse operations.

/// A kernel as OpenCL C, for any device that has OpenCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenClKernel {
    /// The name of the kernel.
    pub name: String,
    /// The text of a program that has this kernel alone. Its second line is `// options: ` and
    /// what `clBuildProgram` is to be given. Lines `// panic 3: src/lib.rs:5:9: ...` at its end
    /// say what its panics say, as [`NvvmModule::panics`](crate::NvvmModule::panics) does.
    pub source: String,
    /// The oldest version of OpenCL C that has all that it uses.
    pub version: OpenClVersion,
    /// Whether the parameter behind those of the Rust function is local memory, `dynamic_local`,
    /// whose size the launch gives.
    pub has_dynamic_local: bool,
    /// Whether its last parameter is 64 bytes of global memory, `panic_record`, that the host sets
    /// to zero before a launch. The first work-item that panics writes to it as
    /// [`NvvmModule::panics`](crate::NvvmModule::panics) says, and ends; the results of the launch
    /// then mean nothing.
    pub has_panic_record: bool,
}

/// A version of the language OpenCL C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenClVersion {
    /// What every device of today has.
    V1_2,
    /// With fences between work-groups. In OpenCL 3.0 they are an option of the device.
    V2_0,
}

impl OpenClVersion {
    /// Such as `1.2`.
    pub fn number(self) -> &'static str {
        match self {
            OpenClVersion::V1_2 => "1.2",
            OpenClVersion::V2_0 => "2.0",
        }
    }
}

/// Whether a product and the sum that it goes into may be rounded once, as one operation. libNVVM
/// has an option of its own for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contraction {
    /// `a * b + c` is fused where the device is faster that way.
    Allowed,
    /// Every operation rounds its own result.
    Forbidden,
}
