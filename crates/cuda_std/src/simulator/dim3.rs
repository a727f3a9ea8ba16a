//! Extents of a launch.

use std::fmt;

/// The number of blocks in a grid, or of threads in a block, along each axis; or the position of
/// one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl Dim3 {
    /// The number of positions.
    pub(super) fn count(self) -> u64 {
        // Saturating, because the extents of a launch have not been checked yet when this is
        // first called.
        u64::from(self.x)
            .saturating_mul(u64::from(self.y))
            .saturating_mul(u64::from(self.z))
    }

    /// The position with this linear `number`, counted along x, then y, then z.
    pub(super) fn place(self, number: u64) -> Self {
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        // Each is below the extent along its axis.
        Self {
            x: (number % x) as u32,
            y: (number / x % y) as u32,
            z: (number / x / y) as u32,
        }
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}
