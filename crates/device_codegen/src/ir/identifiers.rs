//! Names and numbers by which the parts of a module refer to one another.

use std::sync::Arc;

/// A global symbol: a function or a variable.
pub(crate) type Symbol = Arc<str>;

/// Metadata of an instruction: kinds and node numbers.
pub(crate) type Attachments = Vec<(String, u32)>;

/// A value inside one function: an index into [`Function::locals`](super::Function::locals).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LocalId(pub(crate) u32);

/// A block inside one function: an index into [`Function::blocks`](super::Function::blocks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BlockId(pub(crate) u32);
