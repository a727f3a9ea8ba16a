//! Finding, fetching and keeping libNVVM, with fake toolkits, a fake wheel and a fake pip: no
//! network, no libNVVM.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use nvvm::{Error, Member, Origin, Search, Toolkit, Wheel};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const LIBNVVM: &str = "nvvm/lib64/libnvvm.so";
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";
const PTXAS: &str = "bin/ptxas";

/// What is kept of the wheel: the path there, where it is kept, the text, whether it is a program.
const FILES: [(&str, &str, &str, bool); 3] = [
    ("pkg/lib/libnvvm.so", LIBNVVM, "made-up libNVVM", false),
    ("pkg/libdevice.bc", LIBDEVICE, "made-up libdevice", false),
    ("pkg/ptxas", PTXAS, "made-up ptxas", true),
];

fn sha256(bytes: &[u8]) -> &'static str {
    let hash = Sha256::digest(bytes);
    let digits = hash.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().leak()
}

/// A wheel as pip fetches it.
static WHEEL_FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let not_kept = ("pkg/header.h", "", "not kept", false);
    for (path, _, text, _) in FILES.into_iter().chain([not_kept]) {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(path, options).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
});

static MEMBERS: LazyLock<[Member; 3]> = LazyLock::new(|| {
    FILES.map(|(path, kept_as, text, executable)| Member {
        path,
        kept_as,
        sha256: sha256(text.as_bytes()),
        executable,
    })
});

/// A folder with a made-up pip, a cache, and whatever a test adds.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(place.path("made-up.whl"), &*WHEEL_FILE).unwrap();
        // `pip download .. --dest FOLDER REQUIREMENT`: counts its calls, and leaves the wheel.
        place.script(
            "pip",
            r#"echo "$@" >> "$HERE/calls"
            while [ "$1" != --dest ]; do shift; done
            cp "$HERE/made-up.whl" "$2/made_up-1.0-py3-none-any.whl""#,
        );
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A program; `$HERE` in its text is this folder.
    ///
    /// Another process writes it. If it were open for writing in this process, a test that starts
    /// a process at that moment would pass the open file on, and the program would be 'busy' when
    /// it is run.
    fn script(&self, name: &str, text: &str) -> OsString {
        let here = self.folder.path().display();
        let path = self.path(name);
        let written = Command::new("sh")
            .args(["-c", r#"printf '%s' "$1" > "$0" && chmod +x "$0""#])
            .arg(&path)
            .arg(format!("#!/bin/sh\nHERE='{here}'\n{text}\n"))
            .status();
        assert!(written.unwrap().success());
        path.into()
    }

    /// A search that finds nothing and can fetch.
    fn search(&self) -> Search {
        Search {
            libnvvm_path: None,
            sdk_variables: vec![],
            sdk_folders: vec![],
            library_folders: vec![],
            pythons: vec![],
            cache: Some(self.path("cache")),
            wanted: true,
            may_fetch: true,
            pips: vec![vec![self.path("pip").into()]],
            wheel: Wheel {
                requirement: "made-up==1.0",
                platform: "any",
                megabytes: 7,
                sha256: sha256(&WHEEL_FILE),
                folder: "made-up-1.0",
                members: &*MEMBERS,
            },
            terminal: None,
        }
    }

    /// An SDK with everything below `root`.
    fn sdk(&self, root: &str) -> PathBuf {
        for file in [LIBNVVM, LIBDEVICE, PTXAS] {
            self.write(&format!("{root}/{file}"), "x");
        }
        self.path(root)
    }

    fn pip_calls(&self) -> usize {
        fs::read_to_string(self.path("calls")).map_or(0, |calls| calls.lines().count())
    }

    fn in_cache(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = Vec::from_iter(names);
        names.sort();
        names
    }
}

/// The error of a search has these parts.
#[track_caller]
fn assert_fails(search: Search, parts: &[&str]) {
    let error = search.find_or_fetch().unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
}

fn assert_is_whole(toolkit: &Toolkit) {
    let files = [
        Some(&toolkit.libnvvm),
        toolkit.libdevice.as_ref(),
        toolkit.ptxas.as_ref(),
    ];
    for (file, (_, _, text, executable)) in files.into_iter().zip(FILES) {
        let file = file.unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), text);
        let bits = file.metadata().unwrap().permissions().mode() & 0o111;
        assert_eq!(bits, if executable { 0o111 } else { 0 });
    }
}

#[test]
fn places_are_searched_in_the_documented_order() {
    let place = Place::new();
    let python = place.script("python", r#"printf '\n/nowhere\n%s/packages\n' "$HERE""#);
    place.sdk("packages/nvidia/cuda_nvcc");
    let library = place.write("lib/libnvvm.so.4", "x");
    let mut search = Search {
        libnvvm_path: Some(place.sdk("explicit")),
        sdk_variables: vec![
            ("CUDA_HOME", place.path("nothing-here")),
            ("CUDA_PATH", place.sdk("variable")),
        ],
        sdk_folders: vec![place.path("nor-here"), place.sdk("usual")],
        library_folders: vec![place.path("lib")],
        pythons: vec![place.path("no-python").into(), python],
        ..place.search()
    };
    place.search().find_or_fetch().unwrap();

    let found = |search: &Search| search.find().unwrap().unwrap();
    assert_eq!(found(&search).origin, Origin::Variable("LIBNVVM_PATH"));
    search.libnvvm_path = None;
    assert_eq!(found(&search).origin, Origin::Variable("CUDA_PATH"));
    search.sdk_variables.clear();
    let usual = found(&search);
    assert_eq!(usual.origin, Origin::Folder(place.path("usual")));
    assert_eq!(usual.ptxas, Some(place.path("usual/bin/ptxas")));
    search.sdk_folders.clear();
    let from_library_folder = found(&search);
    assert_eq!(from_library_folder.libnvvm, library);
    assert_eq!(from_library_folder.ptxas, None);
    search.library_folders.clear();
    let words = |path: &str| place.path(path).display().to_string();
    assert_eq!(
        found(&search).origin.to_string(),
        format!(
            "the wheel made-up 1.0, fetched into {}",
            words("cache/made-up-1.0")
        )
    );
    search.cache = None;
    assert_eq!(
        found(&search).origin.to_string(),
        format!("the wheel made-up, installed in {}", words("packages"))
    );
    search.pythons.clear();
    assert_eq!(search.find().unwrap(), None);
}

#[test]
fn libnvvm_path_is_a_file_its_folder_or_the_root_of_an_sdk() {
    let place = Place::new();
    let root = place.sdk("sdk");
    for path in ["", "nvvm/lib64", LIBNVVM] {
        let search = Search {
            libnvvm_path: Some(root.join(path)),
            ..place.search()
        };
        let toolkit = search.find().unwrap().unwrap();
        assert_eq!(toolkit.libnvvm, root.join(LIBNVVM));
        assert_eq!(toolkit.ptxas, Some(root.join(PTXAS)));
        assert!(toolkit.libdevice.is_some());
    }
}

#[test]
fn a_wrong_libnvvm_path_is_an_error_and_no_reason_to_look_elsewhere() {
    let place = Place::new();
    let search = Search {
        libnvvm_path: Some("/no/such/file".into()),
        sdk_folders: vec![place.sdk("sdk")],
        ..place.search()
    };
    let error = "LIBNVVM_PATH is set to /no/such/file, but there is no libnvvm.so;";
    assert_fails(search, &[error]);
    assert_eq!(place.pip_calls(), 0);
}

#[test]
fn environment_variables_mean_what_the_documentation_says() {
    let search = |variables: &[(&str, &str)]| {
        Search::from_variables(|name| {
            assert!(
                nvvm::SEARCH_VARIABLES.contains(&name),
                "{name} is read and not listed"
            );
            let value = variables.iter().find(|(known, _)| *known == name)?.1;
            Some(value.into())
        })
    };
    let none = search(&[]);
    assert_eq!((none.libnvvm_path, none.cache), (None, None));
    assert!(none.may_fetch && none.sdk_variables.is_empty());

    let cache = |variables: &[(&str, &str)]| search(variables).cache.unwrap();
    let mut variables = vec![("HOME", "/home/u")];
    assert_eq!(cache(&variables), Path::new("/home/u/.cache/rust-gemm"));
    variables.push(("XDG_CACHE_HOME", "/xdg"));
    assert_eq!(cache(&variables), Path::new("/xdg/rust-gemm"));
    variables.push(("GEMM_CACHE_DIR", "/mine"));
    assert_eq!(cache(&variables), Path::new("/mine"));

    assert!(!search(&[("GEMM_NO_FETCH", "1")]).may_fetch);
    assert!(search(&[("GEMM_NO_FETCH", "0")]).may_fetch);
    assert!(search(&[("GEMM_NO_FETCH", "")]).may_fetch);
    assert!(search(&[]).wanted && search(&[("GEMM_PTX", "all")]).wanted);
    assert!(!search(&[("GEMM_PTX", "none")]).wanted);
    let both = search(&[
        ("CUDA_PATH", "/p"),
        ("CUDA_HOME", "/h"),
        ("LD_LIBRARY_PATH", "/a:/b"),
    ]);
    let expected = [
        ("CUDA_HOME", PathBuf::from("/h")),
        ("CUDA_PATH", PathBuf::from("/p")),
    ];
    assert_eq!(both.sdk_variables, expected);
    assert_eq!(both.library_folders, [Path::new("/a"), Path::new("/b")]);
}

#[test]
fn a_fetched_wheel_is_kept_and_not_fetched_again() {
    let place = Place::new();
    assert_eq!(place.search().find().unwrap(), None, "find fetches nothing");
    assert_eq!(place.pip_calls(), 0);
    assert_is_whole(&place.search().find_or_fetch().unwrap());
    assert_is_whole(&place.search().find_or_fetch().unwrap());
    assert_is_whole(&place.search().find().unwrap().unwrap());
    assert_eq!(place.pip_calls(), 1);
    assert_eq!(place.in_cache(), ["made-up-1.0", "made-up-1.0.lock"]);
    let calls = fs::read_to_string(place.path("calls")).unwrap();
    assert!(
        calls.contains("--no-deps --only-binary=:all: --platform any"),
        "{calls}"
    );
    assert!(calls.ends_with(" made-up==1.0\n"), "{calls}");
}

#[test]
fn a_harmed_cache_is_noticed_and_fetched_again() {
    let place = Place::new();
    place.search().find_or_fetch().unwrap();
    let harms: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes.truncate(3),
        |bytes| bytes[5] ^= 0x10,
        |bytes| bytes.clear(),
    ];
    let mut fetched = 1;
    let entry = place.path("cache/made-up-1.0");
    for (_, file, _, _) in FILES {
        let path = entry.join(file);
        for harm in harms.map(Some).into_iter().chain([None]) {
            // Files that have long been there and were found whole.
            let long_ago = SystemTime::now() - Duration::from_secs(3600);
            for (_, file, _, _) in FILES {
                let file = File::options().append(true).open(entry.join(file));
                file.unwrap().set_modified(long_ago).unwrap();
            }
            assert!(place.search().find().unwrap().is_some());
            assert!(entry.join("checked").exists());
            match harm {
                Some(harm) => {
                    let mut bytes = fs::read(&path).unwrap();
                    harm(&mut bytes);
                    fs::write(&path, bytes).unwrap();
                }
                None => fs::remove_file(&path).unwrap(),
            }
            assert_eq!(place.search().find().unwrap(), None, "{file} was taken");
            assert_is_whole(&place.search().find_or_fetch().unwrap());
            fetched += 1;
            assert_eq!(place.pip_calls(), fetched);
        }
    }
}

/// Set for this program when it acts as one process of many: the folder of its [`Place`].
const PLAYS_PROCESS_IN: &str = "NVVM_TEST_PLACE";

/// This test program again, to run nothing but the part `plays_a_process` in the folder of
/// `place`.
fn process(place: &Place) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "plays_a_process", "--ignored"])
        .env(PLAYS_PROCESS_IN, place.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

#[test]
#[ignore = "no test by itself, but what the processes do that other tests start"]
fn plays_a_process() {
    let folder = std::env::var_os(PLAYS_PROCESS_IN).expect("set by those tests");
    let mut search = Place::new().search();
    search.cache = Some(Path::new(&folder).join("cache"));
    search.pips = vec![vec![Path::new(&folder).join("pip").into()]];
    assert_is_whole(&search.find_or_fetch().unwrap());
}

#[test]
fn sixteen_processes_at_once_fetch_once() {
    let place = Place::new();
    let running: Vec<_> = (0..16).map(|_| process(&place).spawn().unwrap()).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(place.pip_calls(), 1);
    assert_is_whole(&place.search().find().unwrap().unwrap());
    assert_eq!(place.in_cache(), ["made-up-1.0", "made-up-1.0.lock"]);
}

#[test]
fn a_process_killed_half_way_leaves_nothing_that_is_taken_for_whole() {
    let place = Place::new();
    // This pip leaves half of the wheel, and kills its caller.
    let pip = place.path("pip");
    let good_pip = place.path("good-pip");
    fs::rename(&pip, &good_pip).unwrap();
    place.script(
        "pip",
        r#"while [ "$1" != --dest ]; do shift; done
        head -c 100 "$HERE/made-up.whl" > "$2/made_up-1.0-py3-none-any.whl"
        kill -9 $PPID"#,
    );
    assert!(!process(&place).status().unwrap().success());
    // A lock file and a partial folder.
    assert_eq!(place.in_cache().len(), 2);
    assert_eq!(place.search().find().unwrap(), None);

    fs::rename(&good_pip, &pip).unwrap();
    assert_is_whole(&place.search().find_or_fetch().unwrap());
    assert_eq!(place.in_cache(), ["made-up-1.0", "made-up-1.0.lock"]);
}

#[test]
fn a_wheel_that_is_not_the_expected_one_is_thrown_away() {
    let place = Place::new();
    let mut bytes = WHEEL_FILE.clone();
    bytes[40] ^= 1;
    fs::write(place.path("made-up.whl"), bytes).unwrap();
    match place.search().find_or_fetch() {
        Err(Error::WrongChecksum {
            expected, found, ..
        }) => {
            assert_eq!(expected, sha256(&WHEEL_FILE));
            assert_ne!(found, expected);
        }
        other => panic!("taken: {other:?}"),
    }
    assert_eq!(place.in_cache(), ["made-up-1.0.lock"]);
}

/// Else cargo would run the build script that fetched it again.
#[test]
fn what_was_fetched_is_older_than_the_build_that_fetched_it() {
    let place = Place::new();
    let start = fs::metadata(place.write("start", "")).unwrap();
    let fetched = place.search().find_or_fetch().unwrap().libnvvm;
    let fetched = fs::metadata(fetched).unwrap();
    assert!(fetched.modified().unwrap() < start.modified().unwrap());
}

#[test]
fn a_terminal_is_told_what_is_fetched_and_how_far_it_is() {
    let place = Place::new();
    let search = Search {
        pips: vec![vec![
            place.script("pip-that-talks", r#"echo "3/7 MB"; "$HERE/pip" "$@""#),
        ]],
        terminal: Some(place.write("terminal", "")),
        ..place.search()
    };
    search.find_or_fetch().unwrap();
    let told = fs::read_to_string(place.path("terminal")).unwrap();
    let (announced, progress) = told.trim_end().split_once('\n').expect(&told);
    assert!(announced.contains("Fetching made-up 1.0 (7 MB)"), "{told}");
    assert_eq!(progress, "3/7 MB");
    let calls = fs::read_to_string(place.path("calls")).unwrap();
    assert!(!calls.contains("--quiet"), "{calls}");
    // Nothing is fetched, so there is nothing to tell.
    search.find_or_fetch().unwrap();
    assert_eq!(fs::read_to_string(place.path("terminal")).unwrap(), told);
}

#[test]
fn a_pip_that_fails_is_followed_by_the_next() {
    let place = Place::new();
    let search = Search {
        pips: vec![
            vec![place.path("no-such-program").into()],
            vec![place.script("python", "echo 'python: No module named pip' >&2; exit 1")],
            vec![place.script("old-pip", "echo 'no such option' >&2; exit 2")],
            vec![place.path("pip").into()],
        ],
        ..place.search()
    };
    assert_is_whole(&search.find_or_fetch().unwrap());
}

#[test]
fn what_pip_says_is_in_the_error() {
    let place = Place::new();
    let pip = place.script("failing", "echo 'ERROR: no network' >&2; exit 1");
    let search = Search {
        pips: vec![vec![pip, "-m".into()]],
        ..place.search()
    };
    let command = "/failing -m download made-up==1.0` did not fetch it";
    assert_fails(search, &[command, "\nERROR: no network"]);
    assert_eq!(place.in_cache(), ["made-up-1.0.lock"]);
}

#[test]
fn without_pip_the_error_says_what_to_install() {
    let search = Search {
        pips: vec![
            vec!["/no/python3".into(), "-m".into(), "pip".into()],
            vec!["/no/pip".into()],
        ],
        ..Place::new().search()
    };
    let tried = "no pip here (tried `/no/python3 -m pip`, `/no/pip`); install Python 3 with pip";
    assert_fails(search, &[tried]);
}

#[test]
fn fetching_that_is_switched_off_is_an_error_with_the_fix() {
    let place = Place::new();
    let search = Search {
        may_fetch: false,
        ..place.search()
    };
    let error = "libNVVM was not found, and GEMM_NO_FETCH forbids to fetch it; install";
    assert_fails(search, &[error]);
    assert_eq!(place.pip_calls(), 0);
}

#[test]
fn ptx_that_is_not_wanted_is_an_error_even_with_libnvvm_at_hand() {
    let place = Place::new();
    let search = Search {
        libnvvm_path: Some(place.sdk("sdk")),
        wanted: false,
        ..place.search()
    };
    assert_fails(search, &["GEMM_PTX is none"]);
    assert_eq!(place.pip_calls(), 0);
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error_with_the_fix() {
    let place = Place::new();
    let below_a_file = place.write("a-file", "").join("cache");
    let fix = "set GEMM_CACHE_DIR to another one.";
    for (cache, parts) in [
        (Some(below_a_file), ["creating it failed (", fix]),
        (
            None,
            ["libNVVM was not found", "set GEMM_CACHE_DIR to a folder."],
        ),
    ] {
        let search = place.search();
        assert_fails(Search { cache, ..search }, &parts);
    }
}

#[test]
fn a_file_that_is_no_libnvvm_is_an_error_when_loaded() {
    let place = Place::new();
    let toolkit = place.search().find_or_fetch().unwrap();
    // SAFETY: it cannot be loaded, and so runs nothing.
    let error = unsafe { nvvm::Compiler::load(&toolkit) };
    let error = error.err().unwrap().to_string();
    assert!(error.contains("cannot be loaded ("), "{error}");
    assert!(
        error.contains("(from the wheel made-up 1.0, fetched into "),
        "{error}"
    );
}
