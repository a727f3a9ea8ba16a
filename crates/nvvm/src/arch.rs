//! The virtual architectures that libNVVM compiles for.

use std::{fmt, str::FromStr};

use crate::Version;

/// Architectures, oldest first, each with the version of the PTX ISA that brought it.
macro_rules! architectures {
    ($($(#[$gpus:meta])* $name:ident: $major:literal, $minor:literal;)*) => {
        /// A virtual architecture, as in `-arch=compute_90a`; in the order of compute capability.
        ///
        /// PTX for `compute_80` runs on every GPU of compute capability 8.0 or newer. A name that
        /// ends in `a` has the instructions specific to that GPU too (`wgmma` for 9.0), and its
        /// PTX runs on no other. One that ends in `f` has those of a family, and its PTX runs on
        /// the family's GPUs from that one on: for `compute_100f` 10.0 and 10.3, for
        /// `compute_120f` 12.0 and 12.1. The list has all that libNVVM 12.9 accepts, from Turing
        /// on; another version of libNVVM may accept fewer, and says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum NvvmArch {
            $($(#[$gpus])* $name,)*
        }

        impl NvvmArch {
            /// Every architecture, oldest first.
            pub const ALL: [NvvmArch; [$(stringify!($name)),*].len()] = [$(NvvmArch::$name),*];

            /// The version of the PTX ISA that brought it.
            pub fn since(self) -> Version {
                match self {
                    $(NvvmArch::$name => Version { major: $major, minor: $minor },)*
                }
            }
        }
    };
}

architectures! {
    /// Turing: T4, RTX 20.
    Compute75: 6, 3;
    /// Ampere: A100.
    Compute80: 7, 0;
    /// Ampere: A10, RTX 30.
    Compute86: 7, 1;
    /// Ampere: Jetson Orin.
    Compute87: 7, 4;
    /// Ada Lovelace: L4, L40, RTX 40.
    Compute89: 7, 8;
    /// Hopper: H100, H200.
    Compute90: 7, 8;
    /// Hopper and nothing else, with `wgmma` and `setmaxnreg`.
    Compute90a: 8, 0;
    /// Blackwell: B200.
    Compute100: 8, 6;
    /// Blackwell: B200 and B300, with most of `tcgen05`.
    Compute100f: 8, 8;
    /// Blackwell: B200 and nothing else, with `tcgen05`.
    Compute100a: 8, 6;
    /// Blackwell: Jetson Thor.
    Compute101: 8, 6;
    /// Blackwell: Jetson Thor, with the instructions of its family.
    Compute101f: 8, 8;
    /// Blackwell: Jetson Thor and nothing else.
    Compute101a: 8, 6;
    /// Blackwell: B300.
    Compute103: 8, 8;
    /// Blackwell: B300, with the instructions of its family.
    Compute103f: 8, 8;
    /// Blackwell: B300 and nothing else.
    Compute103a: 8, 8;
    /// Blackwell: RTX 50.
    Compute120: 8, 7;
    /// Blackwell: RTX 50 and DGX Spark.
    Compute120f: 8, 8;
    /// Blackwell: RTX 50 and nothing else.
    Compute120a: 8, 7;
    /// Blackwell: DGX Spark.
    Compute121: 8, 8;
    /// Blackwell: DGX Spark, with the instructions of its family.
    Compute121f: 8, 8;
    /// Blackwell: DGX Spark and nothing else.
    Compute121a: 8, 8;
}

impl NvvmArch {
    /// Whether libNVVM reads modern IR with opaque pointers for this architecture: from
    /// `compute_100` on. Below it reads the IR of LLVM 7, with typed pointers.
    pub fn has_opaque_pointers(self) -> bool {
        self >= NvvmArch::Compute100
    }

    /// The real architecture of the same number, as `ptxas` expects it: `sm_90a`.
    pub fn sm(self) -> String {
        format!("sm_{}", self.number())
    }

    /// What follows `compute_` and `sm_`, and `Compute` in the name of the variant.
    fn number(self) -> String {
        format!("{self:?}").replace("Compute", "")
    }
}

impl fmt::Display for NvvmArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_{}", self.number())
    }
}

/// A name that is not an [`NvvmArch`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not an architecture known here; choose one of {}.",
    names()
)]
pub struct UnknownArch {
    name: String,
}

fn names() -> String {
    NvvmArch::ALL.map(|arch| arch.to_string()).join(", ")
}

impl FromStr for NvvmArch {
    type Err = UnknownArch;

    /// Reads `compute_90a`.
    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        NvvmArch::ALL
            .into_iter()
            .find(|arch| arch.to_string() == name)
            .ok_or_else(|| UnknownArch {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = "compute_61".parse::<NvvmArch>().unwrap_err().to_string();
        assert!(
            error.starts_with("`compute_61` is not an architecture"),
            "{error}"
        );
        assert!(
            error.ends_with("compute_121, compute_121f, compute_121a."),
            "{error}"
        );
    }
}
