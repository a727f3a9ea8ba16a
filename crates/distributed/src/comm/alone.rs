//! One rank, without an MPI library: whatever needs another one cannot happen.

use host::cpu::view::{View, ViewMut};

use super::pending::{Broadcasting, Incoming, Outgoing, OutgoingCopy, Panel};
use crate::volume::Volume;

/// What MPI could send.
pub trait Equivalence {}

impl<T> Equivalence for T {}

/// Why this process is the only rank.
pub fn alone_because() -> Option<&'static str> {
    Some("built without the feature `mpi`, the program is one rank, with `mpirun` or without it.")
}

/// The job of this process.
pub struct Job;

/// Always there.
pub fn start() -> Option<Job> {
    Some(Job)
}

impl Job {
    /// The one rank.
    pub fn ranks(&self) -> Ranks {
        Ranks
    }
}

/// What takes the place of a library.
pub fn library() -> String {
    "no MPI (built without the feature `mpi`)".to_string()
}

/// The name of this host.
pub fn host_name() -> String {
    "this host".to_string()
}

/// The first of one.
pub fn rank_of_all() -> (usize, usize) {
    (0, 1)
}

/// The same.
pub fn rank_on_host() -> (usize, usize) {
    (0, 1)
}

/// This one.
pub fn ranks_on_these_cores() -> usize {
    1
}

/// Ends the process.
pub fn abort() -> ! {
    std::process::exit(1)
}

/// A request of nothing.
pub(crate) struct Request;

impl Request {
    /// Complete from the start.
    pub fn test(&mut self) -> bool {
        true
    }

    pub fn wait(&mut self) {}
}

/// A group of one rank. It sends nothing, so it counts nothing.
pub struct Ranks;

/// What a message to or from another rank ends in.
fn nobody() -> ! {
    unreachable!("one rank has nobody to send to or to receive from")
}

impl Ranks {
    /// The first.
    pub fn rank(&self) -> usize {
        0
    }

    /// One.
    pub fn size(&self) -> usize {
        1
    }

    /// Nothing.
    pub fn take_sent(&self) -> Volume {
        Volume::default()
    }

    /// This group again, for any color.
    pub fn split(&self, color: Option<usize>) -> Option<Ranks> {
        color.map(|_| Ranks)
    }

    pub fn send<T: Equivalence>(&self, _: &[View<'_, T>], _: usize) {
        nobody()
    }

    pub fn receive<T: Equivalence>(&self, _: Vec<ViewMut<'_, T>>, _: usize) {
        nobody()
    }

    /// An exchange with nobody.
    pub fn exchange<T: Equivalence>(
        &self,
        outgoing: &[(usize, Vec<View<'_, T>>)],
        incoming: Vec<(usize, Vec<ViewMut<'_, T>>)>,
    ) {
        if !(outgoing.is_empty() && incoming.is_empty()) {
            nobody()
        }
    }

    pub(crate) fn start_send<'a, T: Equivalence>(
        &self,
        _: &[View<'a, T>],
        _: usize,
    ) -> Outgoing<'a, T> {
        nobody()
    }

    pub(crate) fn start_send_of_copy<T: Equivalence>(
        &self,
        _: View<'_, T>,
        _: Vec<T>,
        _: usize,
    ) -> OutgoingCopy<T> {
        nobody()
    }

    pub(crate) fn start_receive<T: Equivalence>(
        &self,
        _: Vec<T>,
        _: usize,
        _: usize,
        _: usize,
    ) -> Incoming<T> {
        nobody()
    }

    /// Its own panel is there already.
    pub(crate) fn start_broadcast<'a, T: Equivalence>(
        &self,
        _: usize,
        panel: Panel<'a, T>,
    ) -> Broadcasting<'a, T> {
        Broadcasting::new(Request, panel)
    }

    pub fn barrier(&self) {}

    pub fn rest_until_all_are_here(&self) {}

    /// Its own.
    pub fn all_gather<T: Equivalence + Clone + Default>(&self, value: &[T]) -> Vec<T> {
        value.to_vec()
    }

    pub fn tell_first<T: Equivalence>(&self, _: &[T]) {
        nobody()
    }

    pub fn hear<T: Equivalence>(&self, _: usize) -> Vec<T> {
        nobody()
    }

    /// Its own.
    pub fn from_first<T: Equivalence>(&self, _: &mut [T]) {}
}
