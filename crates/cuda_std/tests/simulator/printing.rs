//! `print!` and `println!`, as a kernel calls them: a child process prints, its parent reads.

use cuda_std::simulator::Launch;
use cuda_std::{print, thread};

/// Prints what `std` prints in the same way, by a macro that takes a format and its values.
macro_rules! print_as_std {
    ($print:ident) => {
        let (small, large) = (-5_i8, u64::MAX);
        $print!(
            "{} {:4}|{:<4}|{:04} {{}} 100%\n",
            small,
            small,
            small,
            small
        );
        $print!("{1} {0} {large:x} {named:X}\n", large, true, named = small);
        $print!(
            "{:.3} {:8.2} {:>6} {:6}|\n",
            1.0 / 3.0,
            2.5_f32,
            true,
            false
        );
        $print!("{:x} {:08x}\n", i64::MIN, 48879_u16);
        $print!("{} {:?} {:6}|{:>6}|\n", "text", "a\n\"b\"", "c", "d");
        $print!(
            "{} {:x} {:X} {:?}\n",
            u128::MAX,
            i128::MIN,
            large as u128,
            small
        );
    };
}

/// Prints from a kernel.
fn print_from_a_kernel() {
    let result = Launch::new(1, 2).run(|| {
        let thread = thread::thread_idx_x();
        print!("thread {thread}: ");
        print_as_std!(print);
        // As C's %g does.
        print!("{} {} {} {:9}|\n", 0.1_f32, 1e-7, 123456.7, 2e6);
        print!("{} {:05} {:?}\n", -f64::NAN, f32::INFINITY, -0.0);
    });
    result.unwrap();
}

#[test]
fn the_simulator_prints_what_std_and_c_print() {
    if std::env::var_os("PRINT_IN_A_CHILD").is_some() {
        return print_from_a_kernel();
    }
    let this = "printing::the_simulator_prints_what_std_and_c_print";
    let child = crate::in_a_child(this, "PRINT_IN_A_CHILD", "1");
    assert!(child.status.success());
    let printed = String::from_utf8(child.stdout).unwrap();
    for thread in 0..2 {
        let mut expected = format!("thread {thread}: ");
        macro_rules! expect {
            ($($format:tt)*) => { expected += &format!($($format)*) };
        }
        print_as_std!(expect);
        expected += "0.1 1e-07 123457     2e+06|\nnan   inf -0\n";
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
