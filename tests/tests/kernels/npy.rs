//! NumPy and the program read each other's files, and multiply alike. Python is `GEMM_PYTHON`,
//! or else `python3`; where it is missing or has no NumPy, the tests are reported as ignored.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use gpu_gemm::{DataType, ElementType};
use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

pub fn trials() -> Vec<Trial> {
    let why_not = python("import numpy").err();
    if let Some(reason) = &why_not {
        println!(
            "tests named numpy:: are ignored here, as there is no Python with NumPy: {reason}"
        );
    }
    let mut trials = Vec::new();
    let mut add = |name: String, test: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
        trials
            .push(Trial::test(format!("numpy::{name}"), test).with_ignored_flag(why_not.is_some()));
    };
    // NumPy has no arithmetic for bf16 and e4m3.
    for data_type in DataType::ALL
        .into_iter()
        .filter(|one| !matches!(one.inputs, ElementType::Bf16 | ElementType::E4m3))
    {
        for (orders, version) in [("CC", 1), ("CF", 2), ("FC", 3), ("FF", 1)] {
            let name = format!("{data_type}::{orders}_version_{version}_gives_its_own_product");
            let test = move || products_agree(data_type, orders, version);
            add(name, Box::new(test));
        }
    }
    trials
}

/// Runs a script, and returns its error if it fails.
fn python(script: &str) -> Result<(), String> {
    python_in(Path::new("."), script)
}

fn python_in(folder: &Path, script: &str) -> Result<(), String> {
    let python = std::env::var_os("GEMM_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let output = Command::new(&python)
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", python.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        // The last line of a traceback is the error.
        false => Err(said.lines().last().unwrap_or("no reason given").to_string()),
    }
}

/// Runs the program in this process on files of `folder`. It must check its product.
fn checks(folder: &TempDir, files: &[(&str, &str)], more: &[&str]) {
    let mut arguments: Vec<OsString> = ["rust-gemm", "--device", "sim"].map(OsString::from).into();
    for (option, file) in files {
        arguments.push(option.into());
        arguments.push(folder.path().join(file).into());
    }
    arguments.extend(more.iter().map(OsString::from));
    let (mut report, mut notes) = (Vec::new(), Vec::new());
    let code = host::cli::run(arguments, &mut report, &mut notes);
    report.append(&mut notes);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&report));
}

/// NumPy's name for an element type.
fn dtype(element: ElementType) -> String {
    let name = element.name();
    let (kind, bits) = name.split_at(1);
    let bytes = bits.parse::<u32>().expect("a name such as f32") / 8;
    format!("<{kind}{bytes}")
}

const ALL: [(&str, &str); 4] = [
    ("--a", "a.npy"),
    ("--b", "b.npy"),
    ("--c", "c.npy"),
    ("--out", "d.npy"),
];

/// NumPy writes A, B and C, the program D = 3 A B - 2 C, and NumPy compares it with its own D:
/// within a rounding bound that it computes itself, and exactly if nothing rounds.
fn products_agree(data_type: DataType, orders: &str, version: u8) -> Result<(), Failed> {
    let folder = TempDir::new()?;
    let (a_order, b_order) = orders.split_at(1);
    let [inputs, of_c] = [data_type.inputs, data_type.c].map(dtype);
    let prelude = format!(
        "import numpy as np\nm, n, k, inputs, dtype = 67, 45, 130, '{inputs}', np.dtype('{of_c}')\n"
    );
    for data in ["integers(-4, 5, size)", "normal(size=size)"] {
        // All integers of the type: their products wrap.
        let draw = match (data_type, data) {
            (DataType::I32, "normal(size=size)") => "integers(-2**31, 2**31, size)",
            (DataType::I8, "normal(size=size)") => "integers(-2**7, 2**7, size)",
            _ => data,
        };
        python_in(
            folder.path(),
            &format!(
                "{prelude}
random = np.random.default_rng(7)
for name, size, order, of in (
    ('a', (m, k), '{a_order}', inputs), ('b', (k, n), '{b_order}', inputs), ('c', (m, n), 'C', dtype)
):
    array = np.asarray(random.{draw}.astype(of), order=order)
    with open(name + '.npy', 'wb') as file:
        np.lib.format.write_array(file, array, version=({version}, 0))
"
            ),
        )?;
        checks(&folder, &ALL, &["--alpha", "3", "--beta", "-2"]);
        python_in(
            folder.path(),
            &format!(
                "{prelude}
a, b, c, d = (np.load(name + '.npy') for name in 'abcd')
assert a.flags['{a_order}_CONTIGUOUS'] and b.flags['{b_order}_CONTIGUOUS']
assert d.dtype == dtype and d.shape == (m, n) and d.flags.c_contiguous, (d.dtype, d.shape)
if dtype.kind == 'i':
    assert (d == dtype.type(3) * (a.astype(dtype) @ b.astype(dtype)) - dtype.type(2) * c).all(), 'integers differ'
else:
    wide = np.longdouble
    a, b, c = (matrix.astype(wide) for matrix in (a, b, c))
    error = np.abs(d.astype(wide) - (3 * (a @ b) - 2 * c))
    bound = (k + 3) * np.finfo(dtype).eps * (3 * (np.abs(a) @ np.abs(b)) + 2 * np.abs(c))
    exact = (a == np.round(a)).all()
    assert (error <= (0 if exact else bound)).all(), ('off by', error.max())
"
            ),
        )?;
    }
    Ok(())
}
