//! Golden files: the output of a writer, kept so that a change is noticed.

use std::path::Path;

/// Compares with a file of this package; `BLESS=1 cargo test -p host` rewrites such files.
#[track_caller]
pub(crate) fn compare(path: &str, written: &[u8]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("the folder can be made");
        }
        std::fs::write(&file, written).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&file).expect("there is a golden file");
    assert_eq!(
        String::from_utf8_lossy(written),
        golden,
        "`BLESS=1 cargo test -p host` accepts the change of {path}"
    );
}
