//! The environment.

use std::env;
use std::fs::File;
use std::io::{Write, stderr};
use std::str::FromStr;
use std::sync::{LazyLock, Mutex};

/// How products of f32 are computed where a program does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    Ieee,
    Tf32,
    /// Each element split into two of f16: the error of f32 on tensor cores.
    Split,
}

/// Which calls are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Those that are faster here.
    Faster,
    /// All that are possible.
    All,
    Nothing,
}

pub struct Settings {
    pub math: Math,
    pub take: Take,
    /// After how many products one is checked; 0 for none.
    pub check: u64,
    pub log: Option<Mutex<Box<dyn Write + Send>>>,
    /// The workspace of each stream.
    pub workspace_bytes: usize,
    /// Whether products that use the workspace are captured, too.
    pub captures_all: bool,
    /// For tests: pointers are the host's.
    pub is_simulator: bool,
}

pub static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    let math = choice(
        "GEMM_BLAS_MATH",
        [
            ("ieee", Math::Ieee),
            ("tf32", Math::Tf32),
            ("split", Math::Split),
        ],
    );
    // Of two matrices of 8192 x 8192 in f32, copies for tensor cores have 512 MiB.
    let mib = if math == Math::Split { 640 } else { 320 };
    Settings {
        math,
        take: choice(
            "GEMM_BLAS_TAKE",
            [
                ("faster", Take::Faster),
                ("all", Take::All),
                ("none", Take::Nothing),
            ],
        ),
        check: number("GEMM_BLAS_CHECK", 0),
        log: log(),
        workspace_bytes: number::<usize>("GEMM_BLAS_WORKSPACE", mib).saturating_mul(1 << 20),
        captures_all: choice("GEMM_BLAS_CAPTURE", [("safe", false), ("all", true)]),
        is_simulator: choice("GEMM_BLAS_DEVICE", [("cuda", false), ("simulator", true)]),
    }
});

/// The value of a variable. A program must not end because of one that is wrong, so that is said.
fn value<T>(name: &str, default: T, read: impl Fn(&str) -> Option<T>, wanted: &str) -> T {
    let Ok(text) = env::var(name) else {
        return default;
    };
    read(&text).unwrap_or_else(|| {
        let _ = writeln!(
            stderr(),
            "gemm_blas: {name}={text} is ignored: it is not {wanted}"
        );
        default
    })
}

/// One of several words; the first is the default.
fn choice<T: Copy, const N: usize>(name: &str, words: [(&str, T); N]) -> T {
    let names = words.map(|(word, _)| word).join(", ");
    let read = |text: &str| Some(words.iter().find(|(word, _)| *word == text)?.1);
    value(name, words[0].1, read, &format!("one of {names}"))
}

fn number<T: FromStr + Copy>(name: &str, default: T) -> T {
    value(name, default, |text| text.parse().ok(), "a number")
}

/// `-` is the standard error. A file is appended to, since a program may start others.
fn log() -> Option<Mutex<Box<dyn Write + Send>>> {
    let open = |path: &str| -> Option<Box<dyn Write + Send>> {
        match path {
            "-" => Some(Box::new(stderr())),
            _ => Some(Box::new(
                File::options().append(true).create(true).open(path).ok()?,
            )),
        }
    };
    let opened = |path: &str| Some(Some(open(path)?));
    value("GEMM_BLAS_LOG", None, opened, "a file that can be written").map(Mutex::new)
}
