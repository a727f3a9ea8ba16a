//! Several devices that multiply one product: what each computes is the split's to say
//! ([`Split`](crate::Split)), and each part of it is a product of a
//! [`Context`](crate::Context) like any other.
//!
//! ```text
//!     device 0   copies     |  b1 ->  |  b2 ->  |
//!                launches   |  a0 b0  |  a0 b1  |  a0 b2  |      time ---->
//!     device 1   copies     |  b2 ->  |  b0 ->  |
//!                launches   |  a1 b1  |  a1 b2  |  a1 b0  |
//! ```
//!
//! Every device has two streams. On one, panels arrive from other devices, straight from the memory
//! that has them; on the other, those that have arrived are multiplied. An event between the two is
//! the only synchronization: a panel that is read is never written while the product runs.
//!
//! | file | what it is about |
//! | --- | --- |
//! | `part.rs` | one of the devices: its streams, and what waits for what |
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
    /// How panels travel between GPUs; of all pairs, the slowest way.
    link: Option<Link>,
    staging: Staging,
}

/// Where a matrix is before the product, and C also after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On every device the panel of A or B, or the block of C, that the split gives it.
    Spread,
    /// All of it on the first device.
    First,
}

/// What a product did.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// From before the first launch until every device has finished.
    pub time: Duration,
    /// The bytes that each device received from others, and the first one also those of C that
    /// came back to it.
    pub received: Vec<usize>,
}

impl Devices {
    /// Connects devices that are open.
    ///
    /// # Errors
    ///
    /// There is none, they are not of one kind, or the driver fails.
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

    /// The same, with copies between GPUs and memory of the host staged in this way.
    pub fn with_staging(mut self, staging: Staging) -> Devices {
        self.parts
            .iter_mut()
            .for_each(|part| part.copies.stage_as(staging));
        Devices { staging, ..self }
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// How many different GPUs they are; 0 if they are simulators.
    pub fn gpus(&self) -> usize {
        let gpus = self.parts.iter().filter_map(Part::gpu);
        let ordinals: BTreeSet<u32> = gpus.map(|gpu| gpu.properties().ordinal).collect();
        ordinals.len()
    }

    /// The GPU of a number; `None` if they are simulators.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn gpu(&self, index: usize) -> Option<&CudaDevice> {
        self.parts[index].gpu()
    }

    /// The device of a number.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn device(&self, index: usize) -> &Device {
        &self.parts[index].device
    }

    /// All of them, and how panels travel between them.
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

    /// How panels travel, and why so.
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

    /// Adds which device failed.
    fn named(&self, index: usize) -> impl Fn(DeviceError) -> DeviceError {
        let name = self.parts[index].name();
        move |error| DeviceError::of_device(index, name.clone(), error)
    }
}
