//! Helpers for the tests of several modules.

use gpu_kernels::spec::Variant;
use gpu_kernels::variants;

use crate::gpu::{Capability, DeviceFacts, Properties, Speeds};

/// A variant by its name.
pub(crate) fn variant(name: &str) -> &'static Variant {
    variants().find(|variant| variant.name == name).unwrap()
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
