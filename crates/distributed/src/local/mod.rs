//! The product that one rank computes of its operands: by a rung of the CPU's ladder, or by a
//! kernel on a GPU, in the simulator or by OpenCL.
//!
//! | file | where a rank's block of C is while products are added to it |
//! | --- | --- |
//! | `native.rs` | in the host's memory |
//! | `on_device.rs` | in the device's memory, from one product to the next; A and B in the host's |

mod chosen;
mod native;
mod on_device;

pub use chosen::local_product;

use gpu_gemm::{Device, DeviceError, GemmError};
use thiserror::Error;
use verification::cpu::Team;
use verification::cpu::view::{View, ViewMut};

use crate::Element;
use crate::clock::{Clock, Phase};
use crate::comm::Ranks;

/// Why a rank has no product.
#[derive(Debug, Error)]
pub enum LocalError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Gemm(#[from] GemmError),
    #[error("The kernel does not multiply this type.")]
    WrongType,
}

/// What multiplies on one rank: it adds products to one block of C after the other.
pub trait LocalProduct<T: Element> {
    /// Begins a block of C of zeros. One in the host's memory is what [`LocalProduct::add`] gets.
    fn begin(&self, _rows: usize, _columns: usize) -> Result<(), LocalError> {
        Ok(())
    }

    /// Adds `A * B` to the block, which is `c` if it is in the host's memory. A and B may change
    /// when it returns. With `progress`, a product on the host is done in strips of rows, and after
    /// each that lets MPI work on what travels. Copies to a device count as `phase`.
    ///
    /// # Panics
    ///
    /// If the three do not fit each other.
    fn add(
        &self,
        clock: &Clock,
        phase: Phase,
        factors: (View<'_, T>, View<'_, T>),
        c: ViewMut<'_, T::Sum>,
        progress: Option<&mut dyn FnMut()>,
    ) -> Result<(), LocalError>;

    /// Waits for all products of the block.
    fn wait(&self, _: &Clock) -> Result<(), LocalError> {
        Ok(())
    }

    /// Waits for all products, and copies the block to `c`, unless it is there. Without a product,
    /// the elements stay as they are.
    ///
    /// # Panics
    ///
    /// If it is not of the block's size.
    fn fetch(&self, _: &Clock, _c: ViewMut<'_, T::Sum>) -> Result<(), LocalError> {
        Ok(())
    }

    /// Whether it multiplies on a GPU, for which products must be large.
    fn is_on_gpu(&self) -> bool {
        false
    }
}

/// Whether all ranks multiply on GPUs, so that they agree on what is good for these. All ranks call
/// it.
pub fn are_all_on_gpus<T: Element>(ranks: &Ranks, own: &dyn LocalProduct<T>) -> bool {
    let all = ranks.all_gather(&[u8::from(own.is_on_gpu())]);
    all.into_iter().all(|is_on_gpu| is_on_gpu == 1)
}

/// Where products are computed.
pub struct Place {
    pub device: Device,
    pub team: Team,
    /// The ranks of this host that may run on the cores of this one, with it.
    pub ranks_on_these_cores: usize,
}
