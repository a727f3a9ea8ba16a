//! The text of PTX, and what it requires of a driver and of a GPU.

/// The kernels of a module.
pub fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().filter_map(entry_name)
}

/// The name in `.visible .entry name(`.
pub fn entry_name(line: &str) -> Option<&str> {
    // The panic messages at the end may hold any text.
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
    Kernels::of(ptx).alone(entry)
}

/// The lines of a module with the kernel that each is part of, if it is part of one.
pub struct Kernels<'a>(Vec<(Option<&'a str>, &'a str)>);

impl<'a> Kernels<'a> {
    pub fn of(ptx: &'a str) -> Kernels<'a> {
        let mut inside = None;
        let mut lines = Vec::new();
        for line in ptx.lines() {
            if let Some(name) = entry_name(line) {
                inside = Some((name, Braces::default()));
            }
            // Comments are libNVVM's statements about symbols of all kernels.
            if !line.trim_start().starts_with("//") {
                lines.push((inside.as_ref().map(|(name, _)| *name), line));
            }
            if inside
                .as_mut()
                .is_some_and(|(_, braces)| braces.close(line))
            {
                inside = None;
            }
        }
        Kernels(lines)
    }

    /// [`with_one_kernel`].
    pub fn alone(&self, entry: &str) -> Option<String> {
        let mut found = false;
        let mut text = String::new();
        for (name, line) in &self.0 {
            if name.is_none_or(|name| name == entry) {
                found |= name.is_some();
                text.push_str(line);
                text.push('\n');
            }
        }
        found.then_some(text)
    }
}

/// A module without its line tables and comments.
pub fn without_lines(ptx: &str) -> String {
    // Files and sections are at the end.
    let is_table = |line: &str| {
        let line = line.trim_start();
        line.starts_with(".file") || line.starts_with(".section")
    };
    let is_executed = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with(".loc") && !line.starts_with("//")
    };
    let code = ptx.lines().take_while(|line| !is_table(line));
    let code = code.filter(is_executed);
    let mut text = String::with_capacity(ptx.len());
    let mut was_blank = true;
    for line in code {
        let is_blank = line.trim().is_empty();
        if !(is_blank && was_blank) {
            text.push_str(line);
            text.push('\n');
        }
        was_blank = is_blank;
    }
    format!("{}\n", text.trim())
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

/// The open braces of a kernel: the text of an `asm!` may also have braces, even at the beginning
/// of a line.
#[derive(Default)]
struct Braces {
    open: usize,
}

impl Braces {
    /// Reads a line. Returns whether it closes the last brace.
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

/// The header of a PTX module.
#[derive(Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The version of the instruction set, such as `8.8`.
    pub isa: &'a str,
    /// The oldest architecture on which the module runs, such as `sm_75`.
    pub target: &'a str,
    /// The number of kernels.
    pub entries: usize,
}

/// Whether a GPU of this architecture runs PTX for this target: PTX for `sm_90a` runs only on 90,
/// PTX for `sm_100f` on 100 and 103, which are one family, and PTX for `sm_80` on every
/// architecture from 80 on.
pub fn runs_on(target: &str, gpu: i32) -> bool {
    architecture(target).is_some_and(|number| {
        let is_allowed = match target.chars().last() {
            Some('a') => gpu == number,
            Some('f') => gpu / 10 == number / 10,
            _ => true,
        };
        is_allowed && gpu >= number
    })
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
pub type Version = (u32, u32);

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

/// Whether a driver that supports this version of CUDA (any, if not given) accepts a version of the
/// instruction set.
pub fn takes(driver: Option<Version>, isa: &str) -> bool {
    driver.is_none_or(|driver| driver_and_cuda(isa).is_none_or(|(_, cuda)| driver >= cuda))
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
            let on: Vec<i32> = gpus
                .into_iter()
                .filter(|gpu| runs_on(target, *gpu))
                .collect();
            assert_eq!(on, runs, "{target}");
        }
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
}
