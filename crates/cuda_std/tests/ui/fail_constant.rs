//! Constant memory that safe code could write.

use core::cell::Cell;
use core::sync::atomic::AtomicU32;

use cuda_std::address_space;

#[address_space(constant)]
static COUNT: AtomicU32 = AtomicU32::new(0);

#[address_space(constant)]
static COUNTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

struct Shared(Cell<u32>);

unsafe impl Sync for Shared {}

#[address_space(constant)]
static CELL: Shared = Shared(Cell::new(1));

fn main() {}
