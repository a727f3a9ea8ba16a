//! The PTX that is embedded in this build, and what it requires of a driver and of a GPU.

/// The kernels as modules for several architectures, the oldest first; empty if the build script
/// had no libNVVM.
pub static EMBEDDED: &[&str] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// Machine code of all kernels for the GPUs of the machine that this was built on: for each
/// architecture (ten times its compute capability) the index of the module of [`EMBEDDED`] that it
/// was assembled from, and an ELF file.
static MACHINE_CODE: &[(i32, usize, &[u8])] =
    include!(concat!(env!("OUT_DIR"), "/machine_code.rs"));

/// The machine code of this module for this very architecture, if the build had a reason to make
/// it.
pub fn machine_code(ptx: &str, architecture: i32) -> Option<&'static [u8]> {
    let of_module = |module: usize| {
        EMBEDDED
            .get(module)
            .is_some_and(|embedded| std::ptr::eq(*embedded, ptx))
    };
    MACHINE_CODE
        .iter()
        .find(|(of, module, _)| *of == architecture && of_module(*module))
        .map(|(_, _, code)| *code)
}

/// The architectures that this build has machine code for.
pub fn assembled() -> impl Iterator<Item = i32> {
    MACHINE_CODE
        .iter()
        .map(|(architecture, _, _)| *architecture)
}

/// Why there is no PTX in this build, and what to do about it; `None` if there is.
pub fn why_absent() -> Option<&'static str> {
    match option_env!("CUDA_BUILDER_NO_PTX") {
        Some(reason) => Some(reason),
        None if EMBEDDED.is_empty() => Some("The build script left none, and does not say why."),
        None => None,
    }
}

/// From modules in ascending order, the newest for a GPU of this architecture (ten times its
/// compute capability) and a driver that supports this version of CUDA (any, if not given). If
/// there is none, it returns the oldest, so that the driver says why it rejects it. The result is
/// empty if there are no modules.
pub fn newest_for<'a>(modules: &[&'a str], architecture: i32, driver: Option<Version>) -> &'a str {
    let suits = |ptx: &str| {
        let header = header(ptx);
        let is_taken = |driver| driver_and_cuda(header.isa).is_none_or(|(_, cuda)| driver >= cuda);
        header.runs_on(architecture) && driver.is_none_or(is_taken)
    };
    let newest = modules.iter().rfind(|ptx| suits(ptx));
    newest.or(modules.first()).copied().unwrap_or_default()
}

/// The Rust files that the PTX was compiled from, with names as in its line tables, and their
/// texts; empty without PTX.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The kernels of a module.
pub fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().filter_map(entry_name)
}

/// The name in `.visible .entry name(`.
pub fn entry_name(line: &str) -> Option<&str> {
    // What a panic says, at the end, may be anything.
    let (_, name) = line
        .split_once(".entry ")
        .filter(|_| !line.starts_with("//"))?;
    name.split('(').next().map(str::trim)
}

/// A module up to its first kernel: version, target, and the declarations that all kernels share.
pub fn head(ptx: &str) -> String {
    let lines = ptx.lines().take_while(|line| entry_name(line).is_none());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The module with only this kernel, as `ptxas` and drivers accept it. `None` if the module has
/// no such kernel.
pub fn with_one_kernel(ptx: &str, entry: &str) -> Option<String> {
    let mut text = String::with_capacity(ptx.len() / 4);
    let mut found = false;
    let mut skipped = None;
    for line in ptx.lines() {
        if let Some(name) = entry_name(line) {
            found |= name == entry;
            skipped = (name != entry).then(Braces::default);
        }
        // libNVVM's statements about symbols of all kernels.
        let is_comment = line.trim_start().starts_with("//");
        if skipped.is_none() && !is_comment {
            text.push_str(line);
            text.push('\n');
        }
        if skipped.as_mut().is_some_and(|braces| braces.close(line)) {
            skipped = None;
        }
    }
    found.then_some(text)
}

/// The lines of a kernel, from `.entry` to its last brace; none if the module has no such kernel.
pub fn lines_of<'a>(ptx: &'a str, entry: &str) -> impl Iterator<Item = &'a str> {
    let from_entry = ptx
        .lines()
        .skip_while(move |line| entry_name(line) != Some(entry));
    let (mut braces, mut ended) = (Braces::default(), false);
    from_entry.take_while(move |line| {
        let is_inside = !ended;
        ended |= braces.close(line);
        is_inside
    })
}

/// The braces of a kernel that are open: the text of an `asm!` may have some of its own, at the
/// beginning of a line, too.
#[derive(Default)]
struct Braces {
    open: usize,
}

impl Braces {
    /// Reads a line; whether it closes the last brace.
    fn close(&mut self, line: &str) -> bool {
        let code = line.split("//").next().unwrap_or_default();
        let count = |brace| code.matches(brace).count();
        self.open += count('{');
        let closed = count('}');
        self.open = self.open.saturating_sub(closed);
        closed > 0 && self.open == 0
    }
}

/// The number of an architecture, ten times its compute capability: 90 for `sm_90` and `sm_90a`.
pub fn architecture(name: &str) -> Option<i32> {
    let number = name.strip_prefix("sm_")?;
    number.trim_end_matches(char::is_alphabetic).parse().ok()
}

/// What the header of a PTX module says.
#[derive(Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The version of the instruction set, such as `8.8`.
    pub isa: &'a str,
    /// The oldest architecture that the module runs on, such as `sm_75`.
    pub target: &'a str,
    /// The number of kernels.
    pub entries: usize,
}

impl Header<'_> {
    /// Whether a GPU of this architecture runs it: PTX for `sm_90a` runs only on 90, PTX for
    /// `sm_100f` on 100 and 103, which are of one family, and PTX for `sm_80` on every
    /// architecture from 80 on.
    pub fn runs_on(&self, gpu: i32) -> bool {
        architecture(self.target).is_some_and(|target| {
            let is_allowed = match self.target.chars().last() {
                Some('a') => gpu == target,
                Some('f') => gpu / 10 == target / 10,
                _ => true,
            };
            is_allowed && gpu >= target
        })
    }
}

/// Reads the header of a PTX module; anything missing reads as `unknown`.
pub fn header(ptx: &str) -> Header<'_> {
    let directive = |name: &str| {
        ptx.lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .and_then(|words| words.split([' ', ',']).find(|word| !word.is_empty()))
            .unwrap_or("unknown")
    };
    Header {
        isa: directive(".version "),
        target: directive(".target "),
        entries: entries(ptx).count(),
    }
}

/// A major and a minor number.
type Version = (u32, u32);

/// Versions of the instruction set, in ascending order, each with the first driver that accepts it
/// and the version of CUDA that this driver supports. From the release notes of PTX ("PTX ISA
/// release history") and of the CUDA toolkit ("Toolkit driver version").
const RELEASES: [(Version, u32, Version); 23] = [
    ((6, 3), 410, (10, 0)),
    ((6, 4), 418, (10, 1)),
    ((6, 5), 440, (10, 2)),
    ((7, 0), 450, (11, 0)),
    ((7, 1), 455, (11, 1)),
    ((7, 2), 460, (11, 2)),
    ((7, 3), 465, (11, 3)),
    ((7, 4), 470, (11, 4)),
    ((7, 5), 495, (11, 5)),
    ((7, 6), 510, (11, 6)),
    ((7, 7), 515, (11, 7)),
    ((7, 8), 520, (11, 8)),
    ((8, 0), 525, (12, 0)),
    ((8, 1), 530, (12, 1)),
    ((8, 2), 535, (12, 2)),
    ((8, 3), 545, (12, 3)),
    ((8, 4), 550, (12, 4)),
    ((8, 5), 555, (12, 5)),
    ((8, 6), 565, (12, 7)),
    ((8, 7), 570, (12, 8)),
    ((8, 8), 575, (12, 9)),
    ((9, 0), 580, (13, 0)),
    ((9, 1), 590, (13, 1)),
];

/// The first driver that accepts a version of the instruction set, and its version of CUDA, if
/// they are known.
fn driver_and_cuda(isa: &str) -> Option<(u32, Version)> {
    let isa = version(isa)?;
    let release = RELEASES.iter().find(|release| isa <= release.0)?;
    Some((release.1, release.2))
}

/// Reads `12.9`.
pub fn version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first driver that accepts a version of the instruction set, with its CUDA version.
pub fn driver_needed(isa: &str) -> String {
    match driver_and_cuda(isa) {
        Some((driver, (major, minor))) => format!("{driver} (CUDA {major}.{minor})"),
        None => "the newest that there is".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_past_the_comments() {
        let ptx = "//\n// Generated by NVIDIA NVVM Compiler\n//\n\n.version 8.8\n.target sm_75, debug\n\
                   .address_size 64\n\n.visible .entry naive(\n.param .u64 x\n)\n{\nret;\n}\n\
                   .visible .entry tiled_16()\n";
        let expected = Header {
            isa: "8.8",
            target: "sm_75",
            entries: 2,
        };
        assert_eq!(header(ptx), expected);
    }

    #[test]
    fn ptx_runs_on_later_gpus_unless_it_is_for_one_or_for_a_family() {
        let gpus = [75, 90, 100, 103, 120, 121];
        for (target, runs) in [
            ("sm_80", &[90, 100, 103, 120, 121][..]),
            ("sm_90a", &[90]),
            ("sm_100f", &[100, 103]),
            ("sm_103f", &[103]),
            ("sm_120f", &[120, 121]),
            ("unknown", &[]),
        ] {
            let ptx = format!(".version 8.8\n.target {target}\n");
            let on: Vec<i32> = gpus
                .into_iter()
                .filter(|gpu| header(&ptx).runs_on(*gpu))
                .collect();
            assert_eq!(on, runs, "{target}");
        }
    }

    #[test]
    fn a_gpu_gets_the_newest_module_that_it_and_its_driver_take() {
        const MODULES: [&str; 4] = [
            ".version 8.6\n.target sm_75\n",
            ".version 8.6\n.target sm_80\n",
            ".version 8.8\n.target sm_90a\n",
            ".version 9.0\n.target sm_100\n",
        ];
        for (architecture, driver, expected) in [
            (75, None, 0),
            (80, None, 1),
            (89, Some((13, 0)), 1),
            (90, Some((12, 9)), 2),
            (90, Some((12, 8)), 1),  // it does not read 8.8
            (100, Some((12, 9)), 1), // nor 9.0, and sm_90a is for 90 alone
            (100, Some((13, 1)), 3),
            (70, None, 0),          // too old for all
            (90, Some((11, 8)), 0), // the driver is
        ] {
            let chosen = newest_for(&MODULES, architecture, driver);
            assert_eq!(chosen, MODULES[expected], "{architecture}, {driver:?}");
        }
        assert_eq!(newest_for(&[], 90, None), "");
    }

    #[test]
    fn ptx_8_8_needs_the_driver_of_cuda_12_9() {
        assert_eq!(driver_needed("8.8"), "575 (CUDA 12.9)");
        assert_eq!(driver_needed("7.2"), "460 (CUDA 11.2)");
        assert_eq!(driver_needed("6.3"), "410 (CUDA 10.0)");
        assert_eq!(driver_needed("unknown"), "the newest that there is");
    }

    #[test]
    fn a_module_of_one_kernel_has_no_other_and_keeps_its_tables() {
        const MODULE: &str = "// of symbols\n.version 8.8\n.target sm_75\n\n.extern .shared .b8 s[];\n\
                              .visible .entry first(\n)\n{\n\tmov.u32 a, b;\n{\n.reg .pred p;\n}\n\texit;\n}\n\
                              .visible .entry second()\n{\n\ttrap;\n{\nadd {a, b}; // {\n}\nret;\n}\n\
                              .file\t3 \"x.rs\"\n.section .debug_str\n{\n.b8 95,0\n}\n";
        assert_eq!(entries(MODULE).collect::<Vec<_>>(), ["first", "second"]);
        let module = with_one_kernel(MODULE, "second").unwrap();
        assert!(module.starts_with(".version 8.8\n"), "{module}");
        assert!(module.contains(".entry second()") && module.contains("trap;"));
        assert!(!module.contains("first") && !module.contains("mov.u32"));
        assert!(!module.contains("exit") && module.contains("ret;\n}"));
        assert!(module.contains(".file\t3") && module.contains(".b8 95,0"));
        assert_eq!(with_one_kernel(MODULE, "third"), None);
        let head = ".version 8.8\n.target sm_75\n";
        assert!(super::head(MODULE).contains(head) && !super::head(MODULE).contains("trap"));
    }

    #[test]
    fn machine_code_is_that_of_an_embedded_module_and_its_architecture() {
        for &(architecture, module, code) in MACHINE_CODE {
            let ptx = EMBEDDED[module];
            assert!(code.starts_with(b"\x7fELF"));
            assert!(header(ptx).runs_on(architecture));
            assert_eq!(machine_code(ptx, architecture), Some(code));
            let copy = ptx.to_string();
            assert_eq!(machine_code(&copy, architecture), None);
            assert_eq!(machine_code(ptx, architecture + 1), None);
        }
    }

    #[test]
    fn this_build_has_ptx_or_a_reason() {
        match why_absent() {
            Some(reason) => assert!(!reason.is_empty()),
            None => {
                let headers: Vec<Header> = EMBEDDED.iter().map(|ptx| header(ptx)).collect();
                assert!(headers.iter().all(|header| header.entries > 0));
                assert!(headers.is_sorted_by_key(|header| architecture(header.target).unwrap()));
            }
        }
    }
}
