//! What facilities such as asynchronous copies keep for a thread or a block, which knows none of
//! them.

use std::any::Any;
use std::cell::{OnceCell, RefCell, RefMut};
use std::iter::successors;

/// What a facility keeps for each thread, or for each block.
pub(super) trait Keep: Default + 'static {
    /// Forgets everything, as another block begins.
    fn begin_block(&mut self);

    /// The thread returns from the kernel.
    fn end_thread(&mut self) {}
}

/// What all facilities keep for one thread or block: a list of as many as the kernel uses.
#[derive(Default)]
pub(super) struct Kept(OnceCell<Box<Node>>);

struct Node {
    content: Box<dyn Content>,
    next: Kept,
}

/// A [`Keep`] of any type.
trait Content: Any {
    fn begin_block(&self);
    fn end_thread(&self);
}

impl<T: Keep> Content for RefCell<T> {
    fn begin_block(&self) {
        self.borrow_mut().begin_block();
    }

    fn end_thread(&self) {
        self.borrow_mut().end_thread();
    }
}

impl Kept {
    /// What the facility keeps that has this type: the default, if it has kept nothing yet.
    #[inline]
    pub fn get<T: Keep>(&self) -> RefMut<'_, T> {
        let node = self.0.get_or_init(|| {
            Box::new(Node {
                content: Box::new(RefCell::new(T::default())),
                next: Self::default(),
            })
        });
        let content: &dyn Any = &*node.content;
        match content.downcast_ref::<RefCell<T>>() {
            Some(content) => content.borrow_mut(),
            None => node.next.get(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Content> {
        let nodes = successors(self.0.get(), |node| node.next.0.get());
        nodes.map(|node| &*node.content)
    }

    pub fn begin_block(&self) {
        self.all().for_each(Content::begin_block);
    }

    pub fn end_thread(&self) {
        self.all().for_each(Content::end_thread);
    }
}
