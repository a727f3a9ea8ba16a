//! Helpers for the tests of several modules.

use gpu_kernels::spec::{ElementType, Variant};
use gpu_kernels::variants;

use crate::call::{Call, Shape, Transpose};
use crate::gpu::{Capability, DeviceFacts, Gpu, Properties, Speeds};

/// A variant by its name.
pub(crate) fn variant(name: &str) -> &'static Variant {
    variants().find(|variant| variant.name == name).unwrap()
}

/// The lines of a table, without its comments.
pub(crate) fn lines(table: &str) -> impl Iterator<Item = &str> {
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
    table.lines().filter(is_case)
}

/// The call of m, n and k, and of `nt` if B alone is transposed.
pub(crate) fn call(sizes: [&str; 3], layout: &str, element: ElementType) -> Call {
    let [m, n, k] = sizes.map(|size| size.parse().unwrap());
    let [a, b] = [0, 1].map(|at| Transpose::ALL[usize::from(&layout[at..=at] == "t")]);
    Call::compact(Shape { m, n, k }, a, b, element)
}

/// An H200.
pub(crate) fn h200() -> DeviceFacts {
    DeviceFacts {
        capability: 90,
        sms: 132,
        ctas_per_sm: 32,
        sm: Capability::of((9, 0)),
        speeds: Speeds::H200,
    }
}

/// The resources of a T4, at the speed of an H200.
pub(crate) fn t4() -> DeviceFacts {
    DeviceFacts {
        capability: 75,
        sms: 40,
        sm: Capability::of((7, 5)),
        ..h200()
    }
}

/// A GPU by its data sheet: SMs, their clock, and bytes a second from memory.
pub(crate) fn gpu((capability, sms, clock_mhz): ((i32, i32), u32, u32), bandwidth: f64) -> Gpu {
    Gpu {
        name: String::new(),
        capability: Capability::of(capability).unwrap(),
        sms,
        clock_mhz,
        bandwidth_bytes_per_s: bandwidth,
    }
}

/// An H200 with an older driver.
pub(crate) fn h200_properties() -> Properties {
    Properties {
        ordinal: 0,
        name: "NVIDIA H200".into(),
        capability: (9, 0),
        sms: 132,
        memory_bytes: 139 << 30,
        l2_bytes: 60 << 20,
        clock_mhz: 1980,
        bandwidth_bytes_per_s: 4.8e12,
        driver: "12.4".into(),
    }
}
