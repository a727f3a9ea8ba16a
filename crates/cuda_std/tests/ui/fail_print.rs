//! What cannot be printed from a kernel.

use cuda_std::println;

fn main() {
    let (x, pair) = (1.5_f32, (1, 2));
    println!("{:#?}", x);
    println!("{:e}", x);
    println!("{:#x}", 5);
    println!("{} {}", x);
    println!("{}", x, 5);
    println!("{missing}");
    println!("{");
    println!(x);
    println!("{}", pair);
    println!("{:?}", Some(1));
    println!("{:x}", x);
}
