//! Asynchronous operations of one thread, in groups that complete in order.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;

/// Operations, such as copies, that a thread has issued and not yet waited for.
///
/// ```text
///   items    a b c | d e | f g      oldest first
///   groups       3     2            f and g are in no group before the next commit
/// ```
#[derive(Debug)]
pub(super) struct Groups<T> {
    items: VecDeque<T>,
    /// The number of items in each group, oldest first.
    groups: VecDeque<usize>,
    /// The number of items that are in a group.
    in_groups: usize,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            groups: VecDeque::new(),
            in_groups: 0,
        }
    }
}

impl<T> Groups<T> {
    pub fn issue(&mut self, item: T) {
        self.items.push_back(item);
    }

    /// Puts all items that are in no group into a new one.
    pub fn commit(&mut self) {
        self.groups.push_back(self.items.len() - self.in_groups);
        self.in_groups = self.items.len();
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.groups.clear();
        self.in_groups = 0;
    }

    /// All items, in groups or not.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// The items of all groups but the newest, of which `pending_groups` may stay pending.
    pub fn all_but_newest_mut(&mut self, pending_groups: usize) -> impl Iterator<Item = &mut T> {
        let groups = self.groups.len().saturating_sub(pending_groups);
        let items: usize = self.groups.iter().take(groups).sum();
        self.items.range_mut(..items)
    }

    /// Removes the same groups, and returns their items.
    pub fn take_all_but_newest(&mut self, pending_groups: usize) -> Drain<'_, T> {
        let groups = self.groups.len().saturating_sub(pending_groups);
        let items: usize = self.groups.drain(..groups).sum();
        self.in_groups -= items;
        self.items.drain(..items)
    }

    /// Removes all items, in groups or not.
    pub fn take_all(&mut self) -> Drain<'_, T> {
        self.groups.clear();
        self.in_groups = 0;
        self.items.drain(..)
    }
}
