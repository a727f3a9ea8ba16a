//! A rung of the CPU's ladder: the block of C is in the host's memory.

use verification::cpu::Team;
use verification::cpu::view::{View, ViewMut};

use super::{LocalError, LocalProduct};
use crate::clock::{Clock, Phase};
use crate::{Element, MultiplyNatively};

/// A rung, and the threads that it multiplies on.
pub(super) struct Native<'p, T: Element> {
    pub multiply: MultiplyNatively<T>,
    pub team: &'p Team,
}

/// The rows of C that a rung multiplies about as well as many.
const STRIP: usize = 512;

impl<T: Element> LocalProduct<T> for Native<'_, T> {
    fn add(
        &self,
        clock: &Clock,
        _: Phase,
        (a, b): (View<'_, T>, View<'_, T>),
        mut c: ViewMut<'_, T::Sum>,
        mut progress: Option<&mut dyn FnMut()>,
    ) -> Result<(), LocalError> {
        let rows = c.rows();
        let strip = match progress {
            Some(_) => STRIP,
            None => rows.max(1),
        };
        for start in (0..rows).step_by(strip) {
            let of_strip = start..rows.min(start + strip);
            let (this, below) = c.split_rows(of_strip.len());
            c = below;
            if this.columns() > 0 && a.columns() > 0 {
                let a = a.part(of_strip, 0..a.columns());
                clock.time(Phase::Compute, || (self.multiply)(a, b, this, self.team));
            }
            if let Some(progress) = &mut progress {
                clock.time(Phase::Wait, progress);
            }
        }
        Ok(())
    }
}
