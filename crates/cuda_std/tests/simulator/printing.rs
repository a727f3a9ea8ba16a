//! `print!` and `println!`, as a kernel calls them: a child process prints, its parent reads.

use cuda_std::simulator::Launch;
use cuda_std::{print, println, thread};

/// Prints from a kernel.
fn print_from_a_kernel() {
    let result = Launch::new(1, 2).run(|| {
        let thread = thread::thread_idx_x();
        let (small, large) = (-5_i8, u64::MAX);
        print!("thread {thread}: ");
        println!("{} {:4}|{:<4}|{:04} {{}} 100%", small, small, small, small);
        println!("{1} {0} {large:x} {named:X}", large, true, named = small);
        println!("{:.3} {:8.2} {:>6} {:6}|", 1.0 / 3.0, 2.5_f32, true, false);
        println!("{:x} {:08x}", i64::MIN, 48879_u16);
        println!("{} {:?} {:6}|{:>6}|", "text", "a\n\"b\"", "c", "d");
        println!(
            "{} {:x} {:X} {:?}",
            u128::MAX,
            i128::MIN,
            large as u128,
            small
        );
        println!();
    });
    result.unwrap();
}

#[test]
fn the_simulator_prints_what_std_prints() {
    if std::env::var_os("PRINT_IN_A_CHILD").is_some() {
        return print_from_a_kernel();
    }
    let this = "printing::the_simulator_prints_what_std_prints";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture", "--quiet"])
        .env("PRINT_IN_A_CHILD", "1")
        .output()
        .unwrap();
    assert!(child.status.success());
    let printed = String::from_utf8(child.stdout).unwrap();

    let (small, large) = (-5_i8, u64::MAX);
    for thread in 0..2 {
        let mut expected = format!("thread {thread}: ");
        expected += &format!(
            "{} {:4}|{:<4}|{:04} {{}} 100%\n",
            small, small, small, small
        );
        expected += &format!("{1} {0} {large:x} {named:X}\n", large, true, named = small);
        expected += &format!(
            "{:.3} {:8.2} {:>6} {:6}|\n",
            1.0 / 3.0,
            2.5_f32,
            true,
            false
        );
        expected += &format!("{:x} {:08x}\n", i64::MIN, 48879_u16);
        expected += &format!("{} {:?} {:6}|{:>6}|\n", "text", "a\n\"b\"", "c", "d");
        expected += &format!(
            "{} {:x} {:X} {:?}\n\n",
            u128::MAX,
            i128::MIN,
            large as u128,
            small
        );
        assert!(printed.contains(&expected), "{printed}\nlacks\n{expected}");
    }
}

#[test]
fn each_argument_is_evaluated_once() {
    let mut calls = 0;
    let mut count = || {
        calls += 1;
        calls
    };
    print!("{0} {0:x} {1}\n", count(), count());
    assert_eq!(calls, 2);
}
