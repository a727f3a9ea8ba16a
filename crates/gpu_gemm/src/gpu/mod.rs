//! Properties of a GPU: its compute capability, the number of CTAs on a streaming multiprocessor
//! (SM), and its speed.

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
