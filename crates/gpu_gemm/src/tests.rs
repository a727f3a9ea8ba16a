//! Helpers for the tests of several modules.

use gpu_kernels::spec::{Variant, variants};

use crate::gpu::{Capability, DeviceFacts, Speeds};

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
