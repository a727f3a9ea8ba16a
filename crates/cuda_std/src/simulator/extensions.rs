//! State of a thread or a block that belongs to a facility such as asynchronous copies. The
//! scheduler stores it without knowing the facilities.

use std::any::Any;
use std::cell::{OnceCell, RefCell, RefMut};
use std::iter::successors;

/// The state of one facility for a thread or a block.
pub(super) trait Extension: Default + 'static {
    /// Resets it before another block begins.
    fn begin_block(&mut self);

    /// Is called when the thread returns from the kernel.
    fn end_thread(&mut self) {}
}

/// The states of all facilities that a thread or block has used, as a list.
#[derive(Default)]
pub(super) struct Extensions(OnceCell<Box<Node>>);

struct Node {
    content: Box<dyn Content>,
    next: Extensions,
}

/// An [`Extension`] of any type.
trait Content: Any {
    fn begin_block(&self);
    fn end_thread(&self);
}

impl<T: Extension> Content for RefCell<T> {
    fn begin_block(&self) {
        self.borrow_mut().begin_block();
    }

    fn end_thread(&self) {
        self.borrow_mut().end_thread();
    }
}

impl Extensions {
    /// The state of this type; the first call makes a default one.
    #[inline]
    pub fn get<T: Extension>(&self) -> RefMut<'_, T> {
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
