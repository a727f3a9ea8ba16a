//! `cust`, linked with the trampolines: with a broken driver, with a fake one, and with whatever
//! this machine has.
//!
//! A process has one driver for its lifetime, so each test starts this program again, to act as a
//! program that uses `cust`, with another library found under the name `libcuda.so.1`.

use std::{
    env,
    error::Error,
    ffi::c_void,
    fs,
    path::Path,
    process::{Command, ExitCode},
    ptr, thread,
};

use cust::{CudaFlags, error::CudaError, sys};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Set for a process that plays a program that uses `cust`, to the name of its part.
const PART: &str = "FIND_CUDA_HELPER_TEST_PART";

fn main() -> ExitCode {
    match env::var(PART) {
        Ok(part) => {
            play(&part);
            ExitCode::SUCCESS
        }
        Err(_) => run_tests(),
    }
}

type Test = fn() -> Result;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$((stringify!($name), $name as Test)),*]
    };
}

fn run_tests() -> ExitCode {
    let tests = tests![
        a_driver_that_cannot_be_loaded_is_an_error_that_says_so,
        arguments_in_registers_and_on_the_stack_reach_the_driver,
        a_function_that_the_driver_lacks_is_an_error_that_says_so,
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            libtest_mimic::Trial::test(name, move || {
                test().map_err(|error| error.to_string().into())
            })
        })
        .collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}

/// Acts as a program that uses `cust`, and writes what it sees.
fn play(part: &str) {
    match part {
        "init" => show_init(),
        "launch" => show_launch(),
        "from-many-threads" => thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(show_launch);
            }
        }),
        "missing-function" => match cust::memory::mem_get_info() {
            Ok(_) => println!("ok"),
            Err(error) => println!("{error:?}: {error}"),
        },
        other => println!("there is no part {other}"),
    }
}

fn show_init() {
    match cust::init(CudaFlags::empty()) {
        Ok(()) => println!("ok"),
        Err(error) => println!("{error:?}: {error}"),
    }
    println!("{}", CudaError::InvalidValue);
}

/// Calls a function with as many arguments as any has: six in registers, five on the stack; and
/// one with a floating-point argument.
fn show_launch() {
    let pointer = |address: usize| ptr::without_provenance_mut::<c_void>(address);
    // SAFETY: the driver is the fake one, which only looks at the numbers.
    let (launch, bias) = unsafe {
        (
            sys::cuLaunchKernel(
                pointer(1).cast(),
                2,
                3,
                4,
                5,
                6,
                7,
                8,
                pointer(9).cast(),
                pointer(10).cast(),
                pointer(11).cast(),
            ),
            sys::cuTexRefSetMipmapLevelBias(pointer(12).cast(), 0.5),
        )
    };
    println!("{launch:?} {bias:?}");
}

/// Runs this program in a part, with `folder` in front of where libraries are looked for.
fn play_with_driver_in(folder: &Path, part: &str) -> Result<String> {
    let output = Command::new(env::current_exe()?)
        .env(PART, part)
        .env("LD_LIBRARY_PATH", folder)
        .output()?;
    if !output.status.success() {
        return Err(format!("{}: {output:?}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A driver that takes the numbers of `show_launch` and nothing else, and lacks most functions.
const MADE_UP_DRIVER: &str = r#"
int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuLaunchKernel(long f, int gx, int gy, int gz, int bx, int by, int bz, int shared, long stream, long args,
                   long extra) {
    return f == 1 && gx == 2 && gy == 3 && gz == 4 && bx == 5 && by == 6 && bz == 7 && shared == 8 && stream == 9 &&
           args == 10 && extra == 11 ? 0 : 1;
}
int cuTexRefSetMipmapLevelBias(long texture, float bias) { return texture == 12 && bias == 0.5f ? 0 : 1; }
"#;

fn made_up_driver(folder: &Path) -> Result {
    let source = folder.join("driver.c");
    fs::write(&source, MADE_UP_DRIVER)?;
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&folder.join("libcuda.so.1"), &source])
        .status()?;
    assert!(status.success(), "the C compiler failed: {status}");
    Ok(())
}

fn a_driver_that_cannot_be_loaded_is_an_error_that_says_so() -> Result {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("libcuda.so.1"), "this is no library")?;
    let seen = play_with_driver_in(folder.path(), "init")?;
    let mut lines = seen.lines();
    assert_eq!(
        lines.next(),
        Some(
            "SharedObjectInitFailed: \"the NVIDIA driver is not installed, or its library libcuda.so.1 cannot be \
             loaded\""
        )
    );
    assert_eq!(
        lines.next(),
        Some("\"an error of the NVIDIA driver, which is not there to put it into words\"")
    );
    Ok(())
}

fn arguments_in_registers_and_on_the_stack_reach_the_driver() -> Result {
    let folder = tempfile::tempdir()?;
    made_up_driver(folder.path())?;
    assert!(play_with_driver_in(folder.path(), "init")?.starts_with("ok\n"));
    let good = "CUDA_SUCCESS CUDA_SUCCESS\n";
    assert_eq!(play_with_driver_in(folder.path(), "launch")?, good);
    let seen = play_with_driver_in(folder.path(), "from-many-threads")?;
    assert_eq!(seen, good.repeat(16));
    Ok(())
}

fn a_function_that_the_driver_lacks_is_an_error_that_says_so() -> Result {
    let folder = tempfile::tempdir()?;
    made_up_driver(folder.path())?;
    let seen = play_with_driver_in(folder.path(), "missing-function")?;
    assert_eq!(
        seen,
        "SharedObjectSymbolNotFound: \"the NVIDIA driver is too old: its library libcuda.so.1 lacks a function that \
         is needed\"\n"
    );
    Ok(())
}
