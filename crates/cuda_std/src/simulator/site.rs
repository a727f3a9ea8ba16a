//! Places in the source at which threads wait.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::ptr;

/// A place in the source that threads wait at: the call of a barrier, of a warp operation or of
/// [`wait_prior`](crate::pipeline::wait_prior).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BarrierSite {
    pub file: &'static str,
    pub line: u32,
    pub column: u32,
}

impl From<&'static Location<'static>> for BarrierSite {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: location.file(),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for BarrierSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A call of a function that waits: which function, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    pub function: &'static str,
    pub location: &'static Location<'static>,
}

impl CallSite {
    /// The caller's call of this function.
    #[inline]
    #[track_caller]
    pub fn here(function: &'static str) -> Self {
        let location = Location::caller();
        Self { function, location }
    }

    /// Whether both are calls of one function at one place.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        // One call site can have several `Location`s, one in each part of the program that it was
        // compiled into; most have one.
        (ptr::eq(self.location, other.location) || self.location == other.location)
            && (ptr::eq(self.function, other.function) || self.function == other.function)
    }
}

/// The barriers, or the other waits, of a launch: those that it leaves out, and how often each of
/// the others was passed, over all blocks.
#[derive(Debug)]
pub(super) struct Sites {
    left_out: Vec<BarrierSite>,
    passed: RefCell<Vec<(&'static Location<'static>, u64)>>,
}

impl Sites {
    pub fn new(left_out: &[BarrierSite]) -> Self {
        Self {
            left_out: left_out.to_vec(),
            passed: RefCell::default(),
        }
    }

    #[inline]
    pub fn is_left_out(&self, location: &'static Location<'static>) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&location.into())
    }

    pub fn note_passed(&self, location: &'static Location<'static>) {
        let mut passed = self.passed.borrow_mut();
        match passed.iter_mut().find(|(other, _)| *other == location) {
            Some((_, count)) => *count += 1,
            None => passed.push((location, 1)),
        }
    }

    /// How often each was passed.
    pub fn into_passed(self) -> impl Iterator<Item = (BarrierSite, u64)> {
        let passed = self.passed.into_inner().into_iter();
        passed.map(|(location, count)| (location.into(), count))
    }
}
