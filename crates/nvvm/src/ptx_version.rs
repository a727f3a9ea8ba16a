//! Lowers the `.version` of PTX to what the text needs, so that older drivers accept it.
//!
//! libNVVM writes the newest version that it knows, whatever the text uses. CUDA 12.9's libNVVM
//! writes 8.8, which only drivers from 575 on accept; most kernels need no more than 7.x. The
//! tables below list what is known to be old, with the version that brought it, from the chapter
//! "Release Notes" ("PTX Release History", "Changes in PTX ISA Version ...") of NVIDIA's
//! "Parallel Thread Execution ISA". A text with anything else in it keeps its version.
//!
//! `crates/nvvm/tests/ptx_version.rs` checks every entry of the tables with `ptxas`. Where ptxas accepts
//! something earlier than NVIDIA documents it, the documented version stands: an older driver has
//! an older ptxas.

use std::collections::HashSet;

use crate::Version;

/// Lowers the `.version` of PTX that libNVVM wrote to what [`needed`] says; never raises it.
///
/// PTX that needs less than 8.3 also loses the hints `.pragma "used_bytes_mask"`, which need 8.3.
/// The meaning of a program does not depend on pragmas.
pub fn lower(ptx: String) -> String {
    let Ok(text) = read(&ptx) else { return ptx };
    if text.needed >= text.version {
        return ptx;
    }
    let drops_hints = text.has_hints && text.needed < USED_BYTES_MASK;
    let mut lowered = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let statement = line.trim_start();
        if statement.starts_with(".version") {
            lowered.push_str(&format!(".version {}\n", text.needed));
        } else if !(drops_hints && statement.starts_with(HINT)) {
            lowered.push_str(line);
        }
    }
    lowered
}

/// The lowest version of the PTX ISA that accepts this text, ignoring `.pragma
/// "used_bytes_mask"`.
///
/// # Errors
///
/// The first line or statement of the text with something that is not in the tables.
pub fn needed(ptx: &str) -> Result<Version, &str> {
    Ok(read(ptx)?.needed)
}

/// The version that brought Turing, the oldest architecture of [`NvvmArch`](crate::NvvmArch).
/// What is older is listed under it.
pub const OLDEST: Version = version(6, 3);

const USED_BYTES_MASK: Version = version(8, 3);
const HINT: &str = ".pragma \"used_bytes_mask ";

/// A `.loc` that names the function it is inlined in; ptxas takes it from 7.0 on.
const INLINED_LOC: Version = version(7, 2);
/// A label in a section of debug information; ptxas takes it from 7.0 on.
const SECTION_LABEL: Version = version(7, 2);

/// The parameters of a kernel have up to 4352 bytes before this version.
const LARGE_PARAMETERS: Version = version(8, 1);
const SMALL_PARAMETER_BYTES: usize = 4352;

/// Modifiers that are old individually and new in combination: 256 bits at once came with 8.8,
/// the others later.
const NEW_TOGETHER: [[&str; 2]; 6] = [
    ["v4", "b64"],
    ["v4", "u64"],
    ["v4", "s64"],
    ["v4", "f64"],
    ["volatile", "local"],
    ["sat", "u32"],
];

/// Architectures that a text is for, and the versions that brought them.
pub const TARGETS: [(&str, Version); 13] = [
    ("sm_75", version(6, 3)),
    ("sm_80", version(7, 0)),
    ("sm_86", version(7, 1)),
    ("sm_87", version(7, 4)),
    ("sm_89", version(7, 8)),
    ("sm_90", version(7, 8)),
    ("sm_90a", version(8, 0)),
    ("sm_100", version(8, 6)),
    ("sm_100a", version(8, 6)),
    ("sm_103", version(8, 8)),
    ("sm_103a", version(8, 8)),
    ("sm_120", version(8, 7)),
    ("sm_120a", version(8, 7)),
];

/// Directives, and the types and state spaces of variables.
pub const DIRECTIVES: [(Version, &str); 2] = [
    (
        OLDEST,
        "version target address_size visible extern weak common entry func param reg shared global const local \
         align ptr b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 pred v2 v4 maxntid minnctapersm reqntid \
         maxnreg pragma branchtargets callprototype",
    ),
    (version(6, 4), "noreturn"),
];

/// Registers that are not a kernel's own: special ones, and those that libNVVM keeps the stack in.
pub const REGISTERS: [(Version, &str); 2] = [
    (
        OLDEST,
        "tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid gridid lanemask_eq lanemask_le lanemask_lt \
         lanemask_ge lanemask_gt clock clock_hi clock64 globaltimer dynamic_smem_size total_smem_size SP SPL temp",
    ),
    (
        version(7, 8),
        "clusterid nclusterid cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank is_explicit_cluster",
    ),
];

/// Instructions: each is a name, up to the first dot, with the modifiers that it may have in any
/// combination, or a complete instruction. `m64n*` stands for all modifiers that begin so.
pub const INSTRUCTIONS: [(Version, &[&str]); 6] = [
    (
        OLDEST,
        &[
            "abs s16 s32 s64 f32 f64 ftz",
            "activemask b32",
            "add s16 u16 s32 u32 s64 u64 f32 f64 rn rz rm rp ftz sat cc",
            "addc cc s32 u32 s64 u64",
            "and pred b16 b32 b64",
            "atom relaxed acquire release acq_rel cta gpu sys global shared",
            "atom and or xor cas exch add inc dec min max b32 b64 u32 u64 s32 s64 f32 f64",
            "bar sync arrive red warp popc and or u32 pred",
            "barrier sync arrive red aligned popc and or u32 pred",
            "bfe u32 s32 u64 s64",
            "bfi b32 b64",
            "bfind shiftamt u32 s32 u64 s64",
            "bra uni",
            "brev b32 b64",
            "brx idx uni",
            "call uni",
            "clz b32 b64",
            "copysign f32 f64",
            "cos approx ftz f32",
            "cvt u8 s8 u16 s16 u32 s32 u64 s64 f16 f32 f64 rni rzi rmi rpi rn rz rm rp ftz sat",
            "cvta to global shared local const u64",
            "div u16 s16 u32 s32 u64 s64 f32 f64 approx full rn rz rm rp ftz",
            "ex2 approx ftz f32",
            "exit",
            "fence sc acq_rel cta gpu sys",
            "fma f32 f64 rn rz rm rp ftz sat",
            "isspacep global shared local const",
            "ld volatile weak relaxed acquire cta gpu sys global shared local param const nc",
            "ld ca cg cs lu cv v2 v4 b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
            "lg2 approx ftz f32",
            "lop3 b32",
            "mad lo hi wide u16 s16 u32 s32 u64 s64 sat cc f32 f64 rn rz rm rp ftz",
            "madc lo hi cc u32 s32 u64 s64",
            "match any all sync b32 b64",
            "max u16 s16 u32 s32 u64 s64 f32 f64 ftz",
            "membar cta gl sys",
            "min u16 s16 u32 s32 u64 s64 f32 f64 ftz",
            "mov pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
            "mul lo hi wide u16 s16 u32 s32 u64 s64 f32 f64 rn rz rm rp ftz sat",
            "nanosleep u32",
            "neg s16 s32 s64 f32 f64 ftz",
            "not pred b16 b32 b64",
            "or pred b16 b32 b64",
            "popc b32 b64",
            "prefetch global local L1 L2",
            "prmt b32",
            "rcp f32 f64 approx rn rz rm rp ftz",
            "red relaxed release cta gpu sys global shared",
            "red and or xor add inc dec min max b32 b64 u32 u64 s32 s64 f32 f64",
            "rem u16 s16 u32 s32 u64 s64",
            "ret uni",
            "rsqrt approx ftz f32 f64",
            "sad u16 s16 u32 s32 u64 s64",
            "selp b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
            "setp eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz",
            "setp b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
            "shf l r wrap clamp b32",
            "shfl sync up down bfly idx b32",
            "shl b16 b32 b64",
            "shr b16 b32 b64 u16 u32 u64 s16 s32 s64",
            "sin approx ftz f32",
            "sqrt f32 f64 approx rn rz rm rp ftz",
            "st volatile weak relaxed release cta gpu sys global shared local param",
            "st wb cg cs wt v2 v4 b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
            "sub s16 u16 s32 u32 s64 u64 f32 f64 rn rz rm rp ftz sat cc",
            "subc cc s32 u32 s64 u64",
            "trap",
            "vote sync all any uni ballot pred b32",
            "xor pred b16 b32 b64",
        ],
    ),
    (
        version(6, 5),
        &[
            "ldmatrix sync aligned m8n8 x1 x2 x4 trans shared b16",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        ],
    ),
    (
        version(7, 0),
        &[
            "cp.async.ca.shared.global",
            "cp.async.cg.shared.global",
            "cp.async.commit_group",
            "cp.async.wait_all",
            "cp.async.wait_group",
            "cvt.rn.bf16.f32",
            "cvt.rna.tf32.f32",
            "mbarrier.arrive.shared.b64",
            "mbarrier.init.shared.b64",
            "mbarrier.inval.shared.b64",
            "mbarrier.test_wait.shared.b64",
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            "redux sync add min max and or xor u32 s32 b32",
            "tanh.approx.f32",
        ],
    ),
    (version(7, 1), &["mbarrier.test_wait.parity.shared.b64"]),
    (
        version(7, 8),
        &[
            "griddepcontrol wait launch_dependents",
            "mbarrier.try_wait.parity.shared.b64",
            "mbarrier.try_wait.shared.b64",
        ],
    ),
    (
        version(8, 0),
        &[
            "elect sync",
            "fence.proxy.async",
            "mbarrier.arrive.expect_tx.shared.b64",
            "setmaxnreg inc dec sync aligned u32",
            "wgmma fence commit_group wait_group mma_async sync aligned m64n* f32 f16 bf16 tf32",
        ],
    ),
];

const fn version(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

/// What a text says, and what it needs.
struct Text<'a> {
    version: Version,
    needed: Version,
    /// Whether it has a `.pragma "used_bytes_mask"`.
    has_hints: bool,
    /// Instructions that were looked up before.
    looked_up: HashSet<&'a str>,
    place: Place,
    /// The bytes of the parameters of the kernel whose head is being read, at most.
    parameter_bytes: usize,
}

#[derive(PartialEq)]
enum Place {
    /// Where a statement begins.
    Statement,
    /// In a call that goes on in the next line.
    Operands,
    /// Between `.entry` and the body.
    KernelHead,
    /// Between `.section` and its end.
    Section,
}

/// Reads a complete text; the error is what is not in the tables.
fn read(ptx: &str) -> Result<Text<'_>, &str> {
    let mut text = Text {
        version: OLDEST,
        needed: OLDEST,
        has_hints: false,
        looked_up: HashSet::new(),
        place: Place::Statement,
        parameter_bytes: 0,
    };
    for line in ptx.lines() {
        text.line(line.trim())?;
    }
    Ok(text)
}

impl<'a> Text<'a> {
    fn needs(&mut self, version: Version) {
        self.needed = self.needed.max(version);
    }

    fn line(&mut self, line: &'a str) -> Result<(), &'a str> {
        if line.starts_with("//") {
            return Ok(());
        }
        let is_line = line.starts_with(".loc\t");
        if is_line || line.starts_with(".file\t") {
            if is_line && line.contains(',') {
                self.needs(INLINED_LOC);
            }
            return known(!line.contains(';')).ok_or(line);
        }
        if self.place == Place::Section {
            return self.section(line);
        }
        if let Some(mask) = line.strip_prefix(HINT) {
            self.has_hints = true;
            let digits = mask.strip_suffix("\";").unwrap_or_default();
            return known(is_number(digits)).ok_or(line);
        }
        // Line comments are removed; a text with comments of the other kind is not changed.
        let (mut statements, comment) = line.split_once('/').unwrap_or((line, "/"));
        known(comment.starts_with('/')).ok_or(line)?;
        while let Some((statement, others)) = statements.split_once(';') {
            self.statement(statement, true)?;
            statements = others;
        }
        self.statement(statements, false)
    }

    /// A statement without its semicolon, or what a line has of it.
    fn statement(&mut self, statement: &'a str, ends: bool) -> Result<(), &'a str> {
        let mut statement = statement.trim();
        if self.place == Place::Operands {
            if ends {
                self.place = Place::Statement;
            }
            return self.operands(statement);
        }
        // Braces, labels and the predicate, of which none needs more than another.
        loop {
            if let Some(others) = statement.strip_prefix(['{', '}', '(', ')']) {
                if statement.starts_with('{') {
                    self.place = Place::Statement;
                }
                statement = others.trim_start();
            } else if let Some(others) = statement.strip_prefix('@') {
                let (_, others) = others.split_once(char::is_whitespace).ok_or(statement)?;
                statement = others.trim_start();
            } else if let Some((label, others)) = statement.split_once(':')
                && label.trim_end().bytes().all(is_of_identifier)
            {
                statement = others.trim_start();
            } else {
                break;
            }
        }
        if statement.is_empty() {
            return Ok(());
        }
        if statement.starts_with('.') {
            return match statement.split_once('{') {
                Some((head, body)) if !head.contains('=') => {
                    self.directive(head)?;
                    known(self.place != Place::Section).ok_or(statement)?;
                    self.place = Place::Statement;
                    self.statement(body, ends)
                }
                _ => self.directive(statement),
            };
        }
        let (instruction, operands) = statement
            .split_once(char::is_whitespace)
            .unwrap_or((statement, ""));
        if self.looked_up.insert(instruction) {
            self.needs(since(instruction).ok_or(instruction)?);
        }
        if !ends {
            // No instruction but a call goes on in the next line.
            known(instruction.starts_with("call")).ok_or(statement)?;
            self.place = Place::Operands;
        }
        known(has_old_operands(instruction, operands)).ok_or(statement)?;
        self.operands(operands)
    }

    /// The registers among operands, and the `_` that stands for none.
    fn operands(&mut self, operands: &'a str) -> Result<(), &'a str> {
        if operands.contains('_') {
            known(words(operands).all(|word| word != "_")).ok_or(operands)?;
        }
        for register in operands.split('%').skip(1) {
            let name = register
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default();
            if !is_numbered(name) {
                self.needs(version_in(&REGISTERS, name).ok_or(operands)?);
            }
        }
        Ok(())
    }

    fn directive(&mut self, directive: &'a str) -> Result<(), &'a str> {
        let mut names = words(directive).filter(|word| !word.is_empty());
        match names.next() {
            Some(".version") => {
                self.version = names.next().and_then(parsed).ok_or(directive)?;
                return Ok(());
            }
            Some(".target") => {
                let target = names.next();
                let row = TARGETS.iter().find(|(name, _)| Some(*name) == target);
                self.needs(row.ok_or(directive)?.1);
                return known(names.all(|option| option == "debug")).ok_or(directive);
            }
            Some(".section") => {
                self.place = Place::Section;
                return known(names.eq([".debug_str"])).ok_or(directive);
            }
            Some(".pragma") => return known(directive == ".pragma \"nounroll\"").ok_or(directive),
            _ => {}
        }
        for name in words(directive).filter_map(|word| word.strip_prefix('.')) {
            self.needs(version_in(&DIRECTIVES, name).ok_or(directive)?);
            if name == "entry" {
                self.place = Place::KernelHead;
                self.parameter_bytes = 0;
            }
        }
        if self.place == Place::KernelHead {
            for parameter in directive.split(".param").skip(1) {
                let bytes = bytes_of(parameter).ok_or(directive)?;
                self.parameter_bytes = self.parameter_bytes.saturating_add(bytes);
            }
            if self.parameter_bytes > SMALL_PARAMETER_BYTES {
                self.needs(LARGE_PARAMETERS);
            }
        }
        // Of the operators in an initial value, `generic()` is old and `mask()` is not.
        let (_, value) = directive.split_once('=').unwrap_or_default();
        let mut before_parentheses = value.split('(').rev().skip(1);
        known(before_parentheses.all(|before| before.ends_with("generic"))).ok_or(directive)
    }

    /// A line in a section of debug information: that of strings has labels and bytes.
    fn section(&mut self, line: &'a str) -> Result<(), &'a str> {
        if line == "}" {
            self.place = Place::Statement;
        } else if line.ends_with(':') {
            self.needs(SECTION_LABEL);
        } else if let Some(bytes) = line.strip_prefix(".b8 ") {
            return known(bytes.split(',').all(is_number)).ok_or(line);
        } else if !line.is_empty() && line != "{" {
            return Err(line);
        }
        Ok(())
    }
}

fn known(is_known: bool) -> Option<()> {
    is_known.then_some(())
}

/// The version that an instruction with its modifiers needs, without regard to its operands.
fn since(instruction: &str) -> Option<Version> {
    let rows = || {
        let of_version = |(since, rows): (Version, &'static [&'static str])| {
            rows.iter().map(move |row| (since, row.split(' ')))
        };
        INSTRUCTIONS.into_iter().flat_map(of_version)
    };
    let mut whole = rows().filter_map(|(since, mut row)| Some((since, row.next()?)));
    if let Some((since, _)) = whole.find(|(_, name)| *name == instruction) {
        return Some(since);
    }
    let (name, modifiers) = instruction.split_once('.')?;
    let has = |wanted: &str| modifiers.split('.').any(|modifier| modifier == wanted);
    if NEW_TOGETHER
        .iter()
        .any(|pair| pair.iter().all(|modifier| has(modifier)))
    {
        return None;
    }
    modifiers.split('.').try_fold(OLDEST, |newest, modifier| {
        let mut rows = rows();
        let (since, _) = rows.find(|(_, row)| {
            let mut row = row.clone();
            row.next() == Some(name) && row.any(|known| is_of(modifier, known))
        })?;
        Some(newest.max(since))
    })
}

/// Whether a modifier is the one of the tables.
fn is_of(modifier: &str, known: &str) -> bool {
    match known.strip_suffix('*') {
        Some(begin) => modifier.starts_with(begin),
        None => modifier == known,
    }
}

/// Whether an instruction of the tables has the operands that it had at first.
fn has_old_operands(instruction: &str, operands: &str) -> bool {
    let count = || operands.split(',').count();
    match instruction.split('.').next() {
        Some("min" | "max") => count() == 3,
        // A predicate as the fourth came later.
        Some("cp") => operands.split(',').nth(3).is_none_or(|size| {
            let size = size.trim();
            count() == 4 && is_number(size.strip_prefix("%r").unwrap_or(size))
        }),
        Some("mbarrier") if instruction == "mbarrier.arrive.shared.b64" => count() == 2,
        _ => true,
    }
}

/// The bytes of a parameter at most, of which the text is what follows `.param`.
fn bytes_of(parameter: &str) -> Option<usize> {
    let mut bytes = None;
    let mut alignment = 8;
    let mut names = words(parameter);
    while let Some(name) = names.next() {
        match name {
            ".b8" | ".u8" | ".s8" => bytes = Some(1),
            ".b16" | ".u16" | ".s16" => bytes = Some(2),
            ".b32" | ".u32" | ".s32" | ".f32" => bytes = Some(4),
            ".b64" | ".u64" | ".s64" | ".f64" => bytes = Some(8),
            ".align" => alignment = names.next()?.parse().ok()?,
            _ => {}
        }
    }
    let elements = match parameter.split_once('[') {
        Some((_, length)) => length.split(']').next()?.parse().ok()?,
        None => 1,
    };
    let bytes: usize = bytes?;
    bytes
        .checked_mul(elements)?
        .checked_next_multiple_of(alignment)
}

/// The version that a table gives to a name.
fn version_in(table: &[(Version, &str)], name: &str) -> Option<Version> {
    let has_name = |names: &str| names.split(' ').any(|known| known == name);
    let row = table.iter().find(|(_, names)| has_name(names))?;
    Some(row.0)
}

/// Reads `8.8`.
fn parsed(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some(version(major.parse().ok()?, minor.parse().ok()?))
}

/// Names, registers, directives and numbers, with nothing between two separators.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c != '.' && c != '%' && (!c.is_ascii() || !is_of_identifier(c as u8)))
}

fn is_of_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a register is one of a kernel's own, such as `rd12`: one letter or two before a number.
fn is_numbered(register: &str) -> bool {
    let number = |letters: usize| register.get(letters..).is_some_and(is_number);
    let is_letter = |index: usize| {
        register
            .as_bytes()
            .get(index)
            .is_some_and(u8::is_ascii_lowercase)
    };
    is_letter(0) && (number(1) || is_letter(1) && number(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with these lines, as libNVVM writes it.
    fn kernel(lines: &str) -> String {
        format!(
            "//\n// Based on NVVM 7.0.1\n//\n\n.version 8.8\n.target sm_75\n.address_size 64\n\n\
             \t// .globl\tkernel\n.visible .entry kernel(\n\t.param .u64 p\n)\n.maxntid 128, 1, 1\n{{\n\
             \t.reg .b32 \t%r<9>;\n{lines}\n\tret;\n\n}}\n"
        )
    }

    #[test]
    fn only_the_version_of_an_old_text_changes() {
        let ptx = kernel("\tadd.s32 \t%r1, %r1, %r2;");
        let lowered = ptx.replace(".version 8.8", ".version 6.3");
        assert_eq!(lower(ptx), lowered);
        let ptx = kernel("\t// begin inline asm\n\tcp.async.commit_group;\n\t// end inline asm");
        let lowered = ptx.replace(".version 8.8", ".version 7.0");
        assert_eq!(lower(ptx), lowered);
    }

    #[test]
    fn a_version_is_never_raised() {
        let ptx = kernel("\tgriddepcontrol.wait;").replace("8.8", "7.4");
        assert_eq!(lower(ptx.clone()), ptx);
    }

    #[test]
    fn the_newest_of_what_a_text_has_decides() {
        for (lines, expected) in [
            ("", (6, 3)),
            ("\t.loc\t1 2 3", (6, 3)),
            ("\t.loc\t1 2 3, function_name $L, inlined_at 1 4 5", (7, 2)),
            (
                "cp.async.wait_all; griddepcontrol.wait; cp.async.wait_all;",
                (7, 8),
            ),
            ("mov.u32 %r1, %tid.x; mov.u32 %r2, %clusterid.x;", (7, 8)),
        ] {
            let expected = version(expected.0, expected.1);
            assert_eq!(needed(&kernel(lines)), Ok(expected), "{lines}");
        }
        for (target, since) in TARGETS {
            let ptx = kernel("\tcp.async.commit_group;").replace("sm_75", target);
            assert_eq!(needed(&ptx), Ok(since.max(version(7, 0))), "{target}");
        }
    }

    #[test]
    fn an_instruction_is_found_wherever_it_stands() {
        for lines in [
            "@%p1 griddepcontrol.wait;",
            "@!%p1\tgriddepcontrol.wait;",
            "$L__BB0_1: griddepcontrol.wait;",
            "{ griddepcontrol.wait; }",
            "{ {griddepcontrol.wait;} }",
            "ret; griddepcontrol.wait;",
            "{ .reg .pred p; @p griddepcontrol.wait; }",
            "call.uni (out),\nother,\n(\n%r1\n);\n} // callseq 0\ngriddepcontrol.wait;",
            "griddepcontrol.wait; // griddepcontrol.hurry",
            "}\n.entry second() { griddepcontrol.wait;",
            "}\n.entry second() {griddepcontrol.wait;",
        ] {
            assert_eq!(needed(&kernel(lines)), Ok(version(7, 8)), "{lines}");
        }
    }

    #[test]
    fn what_the_tables_do_not_have_keeps_the_version() {
        for lines in [
            "no.such.instruction;",
            ".loc\t1 2 3; no.such.instruction;",
            ".local .b128 x;",
            "add.f16 %h1, %h1, %h1;",
            "cp.async.bulk.commit_group;",
            "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, %p1;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, p;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, %r1, %rd2;",
            "mbarrier.arrive.shared.b64 %rd1, [%rd2], %r1;",
            "min.f32 %f1, %f1, %f2, %f3;",
            "ld.global.v4.f64 {%fd1, %fd2, %fd3, %fd4}, [%rd1];",
            "ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1];",
            "ld.global.L1::no_allocate.f32 %f1, [%rd1];",
            "mov.b64 {_, %r1}, %rd1;",
            "mov.u32 %r1, %aggr_smem_size;",
            "mov.u32 %r1, %mine;",
            "bra\n$L;",
            "min.f32 %f1, %f1,\n%f2, %f3;",
            "call called,\n(%mine);",
            ".pragma \"frequency 4\";",
            ".pragma \"used_bytes_mask 15\"; ret;",
            ".reg .b128 %rq<2>;",
            "/* griddepcontrol.wait; */",
            "}\n.global .attribute(.managed) .u32 x;\n{",
            "}\n.global .u8 x[2] = {0xff(y), 0xff00(y)};\n{",
            "}\n.global .u8 x = mask(y);\n{",
            "}\n.target sm_75, texmode_independent\n{",
            "}\n.target sm_999\n{",
            "}\n.section .debug_info\n{",
            "}\n.section .debug_str {\nL:\n",
            "}\n.section .debug_str\n{\nL:\n.b8 -1\n",
            "}\n.section .debug_str\n{\nL:\n.b32 L\n",
            "}\n.entry second(.param .b128 x) {",
            "}\n.entry second(.param .align 8 .b8 x[N]) {",
        ] {
            let ptx = kernel(lines);
            assert!(needed(&ptx).is_err(), "{lines}: {:?}", needed(&ptx));
            assert_eq!(lower(ptx.clone()), ptx, "{lines}");
        }
    }

    #[test]
    fn parameters_of_more_than_4352_bytes_need_8_1() {
        let entry = |bytes: usize| {
            format!(
                ".version 8.8\n.target sm_75\n.visible .entry kernel(\n\t.param .u64 p,\n\
                 \t.param .align 4 .b8 x[{bytes}]\n)\n{{\n\tret;\n}}\n"
            )
        };
        assert_eq!(needed(&entry(4344)), Ok(OLDEST));
        assert_eq!(needed(&entry(4345)), Ok(LARGE_PARAMETERS));
        assert_eq!(needed(&entry(usize::MAX - 3)), Ok(LARGE_PARAMETERS));
        assert!(needed(&entry(usize::MAX)).is_err());
        // Of each kernel alone.
        let two = entry(4000) + &entry(4000).replace("kernel", "second");
        assert_eq!(needed(&two), Ok(OLDEST));
    }

    #[test]
    fn hints_go_only_where_they_would_keep_the_version_up() {
        let hint = "\t.pragma \"used_bytes_mask 4095\";\n";
        let load = "\tld.shared.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd1];";
        let with_hint = kernel(&format!("{hint}{load}"));
        let expected = kernel(load).replace("8.8", "6.3");
        assert_eq!(lower(with_hint.clone()), expected);

        let newer = with_hint.replace("sm_75", "sm_100");
        let expected = newer.replace("8.8", "8.6");
        assert_eq!(lower(newer), expected);
        let unknown = with_hint + "no.such.instruction;\n";
        assert_eq!(lower(unknown.clone()), unknown);
    }
}
