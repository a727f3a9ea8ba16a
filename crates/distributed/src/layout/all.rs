//! The list of layouts.

use super::Multiply;
use super::overlapped::Overlapped;
use super::point_to_point::PointToPoint;
use super::scatter_blocks::ScatterBlocks;
use super::scatter_rows::ScatterRows;
use super::summa::Summa;
use crate::Element;

/// Every layout, in teaching order.
pub fn layouts<T: Element>() -> [&'static dyn Multiply<T>; 5] {
    [
        &PointToPoint,
        &ScatterRows,
        &ScatterBlocks,
        &Overlapped,
        &Summa,
    ]
}
