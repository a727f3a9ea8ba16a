//! Address spaces that there are not.

use cuda_std::address_space;

#[address_space(texture)]
static A: u32 = 0;

#[address_space]
static B: u32 = 0;

#[address_space(shared)]
fn not_a_static() {}

fn main() {}
