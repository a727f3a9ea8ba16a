//! NCCL is loaded, checked and called as its documentation says: on a fake one (`library.rs`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use distributed::nccl::{Nccl, NcclError, UniqueId};
use libloading::Library;
use tempfile::TempDir;

/// A fake NCCL, in a file that no other test has loaded.
struct Fake {
    file: PathBuf,
    library: Library,
    _folder: TempDir,
}

impl Fake {
    fn with(settings: &str) -> Fake {
        Fake::compiled(settings, &[])
    }

    fn compiled(settings: &str, options: &[&str]) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnccl.so.2");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nccl/library.rs");
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .arg(source)
            .args(["--crate-name=fake_nccl", "--crate-type=cdylib"])
            .args([
                "--edition=2024",
                "--check-cfg=cfg(without_send)",
                "-Dwarnings",
            ])
            .args(options)
            .arg("-o")
            .arg(&file);
        assert!(rustc.status().expect("rustc starts").success());
        // SAFETY: it is the library that has just been compiled.
        let library = unsafe { Library::new(&file) }.unwrap();
        // SAFETY: this is the function's type, and the text lives.
        unsafe {
            let set = library.get::<unsafe extern "C" fn(*const u8, usize)>(b"fake_set\0");
            set.unwrap()(settings.as_ptr(), settings.len());
        }
        Fake {
            file,
            library,
            _folder: folder,
        }
    }

    fn load(&self) -> Result<Nccl, NcclError> {
        Nccl::load_from(self.file.as_os_str())
    }

    fn log(&self) -> Vec<String> {
        let mut bytes = vec![0; 10_000];
        // SAFETY: this is the function's type, and there is so much room.
        let length = unsafe {
            let log = self
                .library
                .get::<unsafe extern "C" fn(*mut u8, usize) -> usize>(b"fake_log\0");
            log.unwrap()(bytes.as_mut_ptr(), bytes.len())
        };
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        text.lines().map(String::from).collect()
    }
}

fn refused(fake: &Fake) -> String {
    match fake.load() {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages_are_sent_in_the_order_and_with_the_numbers_that_nccl_documents() {
    let fake = Fake::with("");
    let nccl = fake.load().unwrap();
    assert_eq!(nccl.version().to_string(), "2.21.5");
    let id = nccl.unique_id().unwrap();
    let id = UniqueId::from_bytes(*id.bytes()); // as another rank gets it
    let ranks = nccl.join(id, 1, 3).unwrap();
    let at = |address| ptr::without_provenance_mut::<f32>(address);
    let stream = ptr::without_provenance_mut(9);
    nccl.group(|| {
        // SAFETY: the fake library reads and writes no memory.
        unsafe {
            ranks.send(at(100), 10, 0, stream)?;
            ranks.receive(at(200).cast::<f64>(), 20, 2, stream)
        }
    })
    .unwrap();
    // SAFETY: as above.
    unsafe { ranks.broadcast(at(300).cast::<i32>(), at(400).cast(), 30, 2, stream) }.unwrap();
    drop(ranks);
    assert_eq!(
        fake.log(),
        [
            "ncclGetUniqueId",
            "ncclCommInitRank rank 1 of 3",
            "ncclGroupStart",
            "ncclSend 100 10 of type 7 to 0 comm 42 stream 9",
            "ncclRecv 200 20 of type 8 from 2 comm 42 stream 9",
            "ncclGroupEnd",
            "ncclBroadcast 300->400 30 of type 2 root 2 comm 42 stream 9",
            "ncclCommDestroy 42",
        ]
    );
}

#[test]
fn a_library_that_is_missing_damaged_or_of_another_version_has_a_sentence_each() {
    let missing = Nccl::load_from("/nowhere/libnccl.so.2".as_ref());
    let Err(missing) = missing else {
        panic!("there is something at /nowhere");
    };
    let start = "There is no NCCL on this machine (/nowhere/libnccl.so.2): ";
    assert!(missing.to_string().starts_with(start), "{missing}");
    assert_eq!(
        refused(&Fake::with("version=2604")),
        "This is NCCL 2.6.4, but messages take NCCL 2 from 2.7.0 on."
    );
    assert_eq!(
        refused(&Fake::with("version=30000")),
        "This is NCCL 3.0.0, but messages take NCCL 2 from 2.7.0 on."
    );
    assert!(Fake::with("version=2708").load().is_ok());
    assert_eq!(
        refused(&Fake::compiled("", &["--cfg=without_send"])),
        "This NCCL has no function ncclSend: it is not NCCL 2, or it is damaged."
    );
    assert_eq!(
        refused(&Fake::with("ncclGetVersion=3")),
        "NCCL failed in ncclGetVersion: an error without a name (status 3)."
    );
}

#[test]
fn each_function_that_fails_is_named_in_nccls_words() {
    let stream = ptr::null_mut();
    let message = |function: &str, status: u32| {
        let fake = Fake::with(&format!("{function}={status}"));
        let nccl = fake.load().unwrap();
        let all = || {
            let ranks = nccl.join(nccl.unique_id()?, 0, 2)?;
            let at = ptr::null_mut::<f32>();
            // SAFETY: the fake library reads and writes no memory.
            nccl.group(|| unsafe {
                ranks.send(at, 1, 1, stream)?;
                ranks.receive(at, 1, 1, stream)
            })?;
            // SAFETY: as above.
            unsafe { ranks.broadcast(at, at, 1, 0, stream) }
        };
        let error = all().expect_err(function).to_string();
        (error, fake.log())
    };
    for function in [
        "ncclGetUniqueId",
        "ncclCommInitRank",
        "ncclGroupStart",
        "ncclSend",
        "ncclRecv",
        "ncclGroupEnd",
        "ncclBroadcast",
    ] {
        let (error, log) = message(function, 1);
        let expected = format!("NCCL failed in {function}: unhandled cuda error (status 1).");
        assert_eq!(error, expected);
        // A group that was begun is ended, and a communicator that was made is destroyed.
        let count = |name: &str| log.iter().filter(|line| line.starts_with(name)).count();
        let begun = count("ncclGroupStart") - usize::from(function == "ncclGroupStart");
        assert_eq!(count("ncclGroupEnd"), begun, "{log:?}");
        let made = count("ncclCommInitRank") - usize::from(function == "ncclCommInitRank");
        assert_eq!(count("ncclCommDestroy"), made, "{log:?}");
    }
    let (error, _) = message("ncclSend", 5);
    assert_eq!(error, "NCCL failed in ncclSend: invalid usage (status 5).");
}

#[test]
fn a_rank_that_cannot_be_does_not_join() {
    let fake = Fake::with("");
    let nccl = fake.load().unwrap();
    let id = nccl.unique_id().unwrap();
    for (rank, ranks) in [(2, 2), (0, 0), (0, usize::MAX)] {
        let error = nccl.join(id, rank, ranks).err();
        assert_eq!(error, Some(NcclError::NoSuchRank { rank, ranks }));
    }
    assert_eq!(fake.log(), ["ncclGetUniqueId"]);
}
