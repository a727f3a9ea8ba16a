//! What is known about a GPU: its compute capability, how many CTAs a streaming multiprocessor
//! (SM) holds, and how fast it is.

mod capability;
pub mod facts;
mod model;
pub mod occupancy;
mod properties;

pub use capability::Capability;
pub use facts::{DeviceFacts, Speeds};
pub use model::Gpu;
pub use occupancy::Occupancy;
pub use properties::Properties;
