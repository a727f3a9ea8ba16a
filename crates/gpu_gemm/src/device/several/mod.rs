//! Several devices that compute one product: [`Split`](crate::Split) says what each computes, and
//! each part is an ordinary product of a [`Context`](crate::Context).
//!
//! ```text
//!     device 0   copies     |  b1 ->  |  b2 ->  |
//!                launches   |  a0 b0  |  a0 b1  |  a0 b2  |      time ---->
//!     device 1   copies     |  b2 ->  |  b0 ->  |
//!                launches   |  a1 b1  |  a1 b2  |  a1 b0  |
//! ```
//!
//! Every device has two streams. On one, panels arrive straight from other devices' memory; on the
//! other, panels that have arrived are multiplied. An event between the two is the only
//! synchronisation: a panel that is read is never written while the product runs.
//!
//! | file | content |
//! | --- | --- |
//! | `part.rs` | one of the devices: its streams, and their waits |
//! | `product.rs` | the place of each part, each device's launches, and the transfers between them
//! |
//! | `host.rs` | copies from and to the host's memory, beside a product or without |

mod host;
mod part;
mod product;

use std::collections::BTreeSet;
use std::time::Duration;

use super::cuda::{CudaDevice, Link, Staging};
use super::{Copies, Device};
use crate::error::DeviceError;

use part::Part;

pub use host::Streamed;
pub use product::Product;

/// Devices of one kind, GPUs or simulators, that multiply one product together. A GPU may be
/// several of them.
pub struct Devices {
    parts: Vec<Part>,
    /// How panels are copied between GPUs: the slowest way of all pairs.
    link: Option<Link>,
    staging: Staging,
}

/// Where a matrix is before the product, and C also after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Each device has the panel of A or B, or the block of C, that the split assigns to it.
    Spread,
    /// All of it on the first device.
    First,
}

/// The outcome of a product.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The time from before the first launch until every device has finished.
    pub time: Duration,
    /// The bytes that each device received from others; for the first one, with those of C that
    /// were sent back.
    pub received: Vec<usize>,
}

impl Devices {
    /// Connects open devices.
    ///
    /// # Errors
    ///
    /// There are no devices, they are not of one kind, or the driver fails.
    pub fn of(devices: Vec<Device>) -> Result<Devices, DeviceError> {
        let staging = Staging::of(devices.len());
        let mut parts = Vec::with_capacity(devices.len());
        for device in devices {
            if device.one_gpu().is_none() && !device.is_simulator() {
                return Err(DeviceError::NotJoined);
            }
            parts.push(Part {
                copies: Copies::of(&device, staging)?,
                device,
            });
        }
        let gpus: Vec<&CudaDevice> = parts.iter().filter_map(Part::gpu).collect();
        if parts.is_empty() || !(gpus.is_empty() || gpus.len() == parts.len()) {
            return Err(DeviceError::NotJoined);
        }
        let mut link = None;
        for (index, one) in gpus.iter().enumerate() {
            for other in &gpus[..index] {
                link = link.max(Some(Link::connect(one, other)?));
            }
        }
        Ok(Devices {
            parts,
            link,
            staging,
        })
    }

    /// The same devices, with copies between GPUs and host memory staged as `staging` says.
    pub fn with_staging(mut self, staging: Staging) -> Devices {
        self.parts
            .iter_mut()
            .for_each(|part| part.copies.stage_as(staging));
        Devices { staging, ..self }
    }

    /// The number of devices; at least one.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// The number of different GPUs; 0 for simulators.
    pub fn gpus(&self) -> usize {
        let gpus = self.parts.iter().filter_map(Part::gpu);
        let ordinals: BTreeSet<u32> = gpus.map(|gpu| gpu.properties().ordinal).collect();
        ordinals.len()
    }

    /// The GPU at this index; `None` for simulators.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn gpu(&self, index: usize) -> Option<&CudaDevice> {
        self.parts[index].gpu()
    }

    /// The device at this index.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn device(&self, index: usize) -> &Device {
        &self.parts[index].device
    }

    /// All devices, and how panels are copied between them.
    pub fn description(&self) -> String {
        let names = self.parts.iter().map(|part| part.device.description());
        let names: Vec<String> = names.collect();
        let count = self.count();
        let link = self.link_description();
        match names.iter().all(|name| *name == names[0]) {
            true if count == 1 => names[0].clone(),
            true => format!("{count} times {}; {link}", names[0]),
            false => format!("{count} devices: {}; {link}", names.join(", ")),
        }
    }

    /// How panels are copied, and why.
    pub fn link_description(&self) -> &'static str {
        match self.link {
            None => "panels are copied in host memory",
            Some(Link::Within) => "panels are copied within the GPU",
            Some(Link::PeerToPeer) => "panels travel peer to peer",
            Some(Link::ThroughHost) => {
                "panels travel through page-locked host memory, since not all of these GPUs have \
                 peer access to each other"
            }
        }
    }

    /// Adds to an error which device failed.
    fn named(&self, index: usize) -> impl Fn(DeviceError) -> DeviceError {
        let name = self.parts[index].name();
        move |error| DeviceError::of_device(index, name.clone(), error)
    }
}
