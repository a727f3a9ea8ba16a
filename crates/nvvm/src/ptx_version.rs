//! Lowers the `.version` of PTX to what the text needs, so that older drivers accept it.
//!
//! libNVVM writes the newest version that it knows, whatever the text uses. CUDA 12.9's libNVVM
//! writes 8.8, which only drivers from 575 on accept; most kernels need no more than 7.x. The
//! tables below list what is known to be old, with the version that brought it, from the chapter
//! "Release Notes" ("PTX Release History", "Changes in PTX ISA Version ...") of NVIDIA's
//! "Parallel Thread Execution ISA". A text with anything else in it keeps its version.
//!
//! `crates/nvvm/tests/ptx_version.rs` gives every instruction of the tables to `ptxas`. Where ptxas
//! accepts something earlier than NVIDIA documents it, the documented version counts: an older
//! driver has an older ptxas.

use std::{collections::HashMap, sync::LazyLock};

use crate::{NvvmArch, Version};

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
        if line.trim_start().starts_with(".version") {
            lowered.push_str(&format!(".version {}\n", text.needed));
        } else if !(drops_hints && is_hint(line)) {
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
pub fn needed(ptx: &str) -> Result<Version, String> {
    Ok(read(ptx)?.needed)
}

const fn version(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

/// The version that brought Turing, the oldest architecture of [`NvvmArch`].
/// What is older is listed under it.
pub const OLDEST: Version = version(6, 3);

/// A `.loc` that names the function it is inlined in, and labels among the debug strings, which
/// are those names. ptxas accepts both from 7.0 on.
pub const INLINED_LOC: Version = version(7, 2);

const USED_BYTES_MASK: Version = version(8, 3);

/// Before [`LARGE_PARAMETERS`], a kernel has at most this many bytes of parameters.
const SMALL_PARAMETER_BYTES: usize = 4352;

pub const LARGE_PARAMETERS: Version = version(8, 1);

/// Directives, and the types and state spaces of variables.
pub const DIRECTIVES: [(Version, &str); 3] = [
    (
        OLDEST,
        ".address_size .visible .extern .weak .entry .func .param .reg .shared .global .const .local .align .ptr \
         .pred .b8 .b16 .b32 .b64 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f32 .f64 .maxntid .minnctapersm .reqntid \
         .maxnreg .branchtargets .callprototype",
    ),
    (version(6, 4), ".noreturn"),
    (version(7, 8), ".explicitcluster .reqnctapercluster"),
];

/// Instructions and special registers, each in an example: with exactly these modifiers and as
/// many operands, an instruction needs the version that its example is listed under.
///
/// `(a|b).x` means `a.x` and `b.x`, and a name of [`SETS`] for its modifiers. `T1` is a
/// register of the instruction's last type, `SUMS64` a list of 64 registers.
const INSTRUCTIONS: [(Version, &[&str]); 6] = [
    (
        OLDEST,
        &[
            // Arithmetic
            "(add|sub|mul.lo|mul.hi|div|rem|min|max).(INT) T1, T2, T3",
            "(add|sub|addc|subc)(.cc|).(WIDE) T1, T2, T3",
            "mul.wide.(u16|s16) %r1, %rs2, %rs3",
            "mul.wide.(u32|s32) %rd1, %r2, %r3",
            "(mad.lo|mad.hi|sad).(INT) T1, T2, T3, T4",
            "(mad|madc).(lo|hi)(.cc|).(WIDE) T1, T2, T3, T4",
            "mad.wide.(u16|s16) %r1, %rs2, %rs3, %r4",
            "mad.wide.(u32|s32) %rd1, %r2, %r3, %rd4",
            "(abs|neg).(s16|s32|s64|FLOAT) T1, T2",
            "(add|sub|mul)(|.rn|.rz|.rm|.rp).(FLOAT) T1, T2, T3",
            "(min|max|div.rn|div.rz|div.rm|div.rp).(FLOAT) T1, T2, T3",
            "div.(approx|full).(f32|ftz.f32) T1, T2, T3",
            "copysign.(f32|f64) T1, T2, T3",
            "fma.(ROUND).(FLOAT) T1, T2, T3, T4",
            "(add|sub|mul)(|.rn)(|.ftz).f16 T1, T2, T3",
            "fma.rn(|.ftz).f16 T1, T2, T3, T4",
            "(rcp|sqrt).(ROUND).(FLOAT) T1, T2",
            "(sin|cos|ex2|lg2|rcp|rsqrt|sqrt).approx.(f32|ftz.f32) T1, T2",
            "(rcp.approx.ftz|rsqrt.approx|rsqrt.approx.ftz).f64 T1, T2",
            // Bits, comparisons, moves
            "(and|or|xor).(pred|BITS) T1, T2, T3",
            "(not|mov).(pred|BITS) T1, T2",
            "mov.(INT|f32|f64) T1, T2",
            "mov.b64 {%r1, %temp}, %rd1",
            "brev.(b32|b64) T1, T2",
            "(clz|popc).(b32|b64) %r1, T2",
            "bfind(|.shiftamt).(WIDE) %r1, T2",
            "bfe.(WIDE) T1, T2, %r3, %r4",
            "bfi.(b32|b64) T1, T2, T3, %r4, %r5",
            "shl.(BITS) T1, T2, %r3",
            "shr.(BITS|INT) T1, T2, %r3",
            "shf.(l|r).(wrap|clamp).b32 T1, T2, T3, T4",
            "lop3.b32 T1, T2, T3, T4, 128",
            "prmt.b32 T1, T2, T3, 291",
            "selp.(VALUE) T1, T2, T3, %p1",
            "setp.(eq|ne).(BITS|INT) %p1, T2, T3",
            "setp.(lt|le|gt|ge).(INT) %p1, T2, T3",
            "setp.(lo|ls|hi|hs).(u16|u32|u64) %p1|%p2, T2, T3",
            "setp.(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan).(FLOAT|f16) %p1, T2, T3",
            // Conversions; a register of an integer may be wider than its type
            "cvt.(u8|s8|INT).(u8|s8|INT) %rd1, %rd2",
            "cvt.(ROUND).f32.(u8|s8|INT) %r1, %rd2",
            "cvt.(ROUND).f64.(u8|s8|INT) %rd1, %rd2",
            "cvt.(rni|rzi|rmi|rpi)(|.ftz).(u8|s8|INT).f32 %rd1, T2",
            "cvt.(rni|rzi|rmi|rpi).(u8|s8|INT).f64 %rd1, T2",
            "cvt(|.rni|.rzi|.rmi|.rpi)(|.ftz)(|.sat).f32.f32 T1, T2",
            "cvt.(rni|rzi|rmi|rpi).f64.f64 T1, T2",
            "cvt(|.ftz).f64.f32 %rd1, T2",
            "cvt.(ROUND)(|.ftz).f32.f64 %r1, T2",
            "cvt(|.ftz).f32.f16 %r1, T2",
            "cvt.f64.f16 %rd1, T2",
            "cvt.(rni|rzi|rmi|rpi).(INT).f16 %rd1, T2",
            "cvt.rn.f16.(INT) %rs1, %rd2",
            "cvt.(ROUND)(|.ftz).f16.f32 %rs1, T2",
            // Memory
            "cvta(|.to).(global|shared|local|const).u64 T1, T2",
            "isspacep.(global|shared|local|const) %p1, %rd1",
            "ld(|.volatile)(SPACE).(MEMORY) T1, [%rd1]",
            "ld.(local|const|param|global.nc).(MEMORY) T1, [%rd1]",
            "ld.global.(ca|cg|cs|lu|cv).(MEMORY) T1, [%rd1]",
            "ld.(relaxed|acquire).(cta|gpu|sys)(SPACE).(MEMORY) T1, [%rd1]",
            "ld(|.global|.global.nc|.shared|.local|.const|.param).v2.(MEMORY) {T1, T2}, [%rd1]",
            "ld(|.global|.global.nc|.shared|.local|.const|.param).v4.(NARROW) {T1, T2, T3, T4}, [%rd1]",
            "st(|.volatile)(SPACE).(MEMORY) [%rd1], T1",
            "st.(local|param).(MEMORY) [%rd1], T1",
            "st.global.(wb|cg|cs|wt).(MEMORY) [%rd1], T1",
            "st.(relaxed|release).(cta|gpu|sys)(SPACE).(MEMORY) [%rd1], T1",
            "st(|.global|.shared|.local|.param).v2.(MEMORY) [%rd1], {T1, T2}",
            "st(|.global|.shared|.local|.param).v4.(NARROW) [%rd1], {T1, T2, T3, T4}",
            "atom(ORDER)(SCOPE)(SPACE).(and|or|xor|exch).(b32|b64) T1, [%rd1], T2",
            "atom(ORDER)(SCOPE)(SPACE).(min|max).(WIDE) T1, [%rd1], T2",
            "atom(ORDER)(SCOPE)(SPACE).add.(u32|s32|u64|f32|f64) T1, [%rd1], T2",
            "atom(ORDER)(SCOPE)(SPACE).(inc|dec).u32 T1, [%rd1], T2",
            "atom(ORDER)(SCOPE)(SPACE).cas.(b32|b64) T1, [%rd1], T2, T3",
            "red(|.relaxed|.release)(SCOPE)(SPACE).(and|or|xor).(b32|b64) [%rd1], T2",
            "red(|.relaxed|.release)(SCOPE)(SPACE).(min|max).(WIDE) [%rd1], T2",
            "red(|.relaxed|.release)(SCOPE)(SPACE).add.(u32|s32|u64|f32|f64) [%rd1], T2",
            "membar.(cta|gl|sys)",
            "fence.(sc|acq_rel).(cta|gpu|sys)",
            "prefetch.(global|local).(L1|L2) [%rd1]",
            // Threads together
            "(bar|barrier).sync 0",
            "(bar|barrier).(sync|arrive) 0, 64",
            "(bar|barrier).red.popc.u32 %r1, 0, %p1",
            "(bar|barrier).red.(and|or).pred %p1, 0, %p2",
            "bar.warp.sync %r1",
            "shfl.sync.(up|down|bfly|idx).b32 %r1|%p1, %r2, 1, 31, %r3",
            "vote.sync.(all|any|uni).pred %p1, %p2, %r1",
            "vote.sync.ballot.b32 %r1, %p2, %r2",
            "match.any.sync.(b32|b64) %r1, T2, %r3",
            "match.all.sync.(b32|b64) %r1|%p1, T2, %r3",
            "activemask.b32 %r1",
            "nanosleep.u32 100",
            // Counters
            "pmevent 1",
            "pmevent.mask 8",
            // Control flow
            "bra(|.uni) END",
            "brx.idx(|.uni) %r1, TARGETS",
            "call(|.uni) sink, (%rd1)",
            "call(|.uni) (%r1), function, (%rd1)",
            "call (%r1), %rd1, (%rd2), PROTOTYPE",
            "@%p1 (ret|exit|trap)",
            // Special registers
            "mov.u32 %r1, %(tid|ntid|ctaid|nctaid).x",
            "mov.u32 %r1, %(laneid|warpid|nwarpid|smid|nsmid|clock|clock_hi)",
            "mov.u32 %r1, %(lanemask_eq|lanemask_le|lanemask_lt|lanemask_ge|lanemask_gt)",
            "mov.u32 %r1, %(dynamic_smem_size|total_smem_size)",
            "mov.u64 %rd1, %(gridid|clock64|globaltimer|SP|SPL)",
        ],
    ),
    (
        version(6, 5),
        &[
            "ldmatrix.sync.aligned.m8n8.x1(|.trans).shared.b16 {%r1}, [%rd1]",
            "ldmatrix.sync.aligned.m8n8.x2(|.trans).shared.b16 {%r1, %r2}, [%rd1]",
            "ldmatrix.sync.aligned.m8n8.x4(|.trans).shared.b16 {%r1, %r2, %r3, %r4}, [%rd1]",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4}",
        ],
    ),
    (
        version(7, 0),
        &[
            "cp.async.(ca|cg).shared.global [%r1], [%rd1], 16",
            "cp.async.(ca|cg).shared.global [%r1], [%rd1], 16, %r2",
            "cp.async.(commit_group|wait_all)",
            "cp.async.wait_group 2",
            "cvt.rna.tf32.f32 %r1, %r2",
            "cvt.rn.bf16.f32 %rs1, %r2",
            "cvt.rn.(bf16x2|f16x2).f32 %r1, %r2, %r3",
            "mma.sync.aligned.m16n8k16.row.col.f32.(f16.f16|bf16.bf16).f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r1, %r2}, {%r1, %r2, %r3, %r4}",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r1, %r2}, {%r1, %r2, %r3, %r4}",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 \
             {%rd1, %rd2}, {%rd3}, {%rd4}, {%rd1, %rd2}",
            "redux.sync.(add|min|max).(u32|s32) %r1, %r2, %r3",
            "redux.sync.(and|or|xor).b32 %r1, %r2, %r3",
            "tanh.approx.f32 %r1, %r2",
        ],
    ),
    (version(7, 7), &["cvta.param.u64 T1, T2"]),
    (
        version(7, 8),
        &[
            "griddepcontrol.(wait|launch_dependents)",
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 \
             {%rd1, %rd2, %rd3, %rd4}, {%rd5, %rd6}, {%rd7}, {%rd1, %rd2, %rd3, %rd4}",
            "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 \
             {%rd1, %rd2, %rd3, %rd4}, {%rd5, %rd6, %rd7, %rd8}, {%rd7, %rd8}, \
             {%rd1, %rd2, %rd3, %rd4}",
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 \
             {%rd1, %rd2, %rd3, %rd4}, \
             {%rd1, %rd2, %rd3, %rd4, %rd5, %rd6, %rd7, %rd8}, \
             {%rd5, %rd6, %rd7, %rd8}, {%rd1, %rd2, %rd3, %rd4}",
            "mov.u32 %r1, %(clusterid|nclusterid|cluster_ctaid|cluster_nctaid).x",
            "mov.u32 %r1, %(cluster_ctarank|cluster_nctarank)",
            "mapa.shared::cluster.u32 %r1, %r2, %r3",
            "mapa.u64 %rd1, %rd2, %r3",
            "mbarrier.init.shared::cta.b64 [%r1], %r2",
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r3, %r4, %r5}",
        ],
    ),
    (
        version(8, 0),
        &[
            "barrier.cluster.arrive.release.aligned",
            "barrier.cluster.wait.acquire.aligned",
            "cp.async.bulk.commit_group",
            "cp.async.bulk.(wait_group|wait_group.read) 1",
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3}], [%r1]",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [%r1], [%rd1, {%r2, %r3}], [%r4]",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\
             .multicast::cluster [%r1], [%rd1, {%r2, %r3}], [%r4], %rs1",
            "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group \
             [%rd1, {%r2, %r3, %r4}], [%r1]",
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [%r1], [%rd1, {%r2, %r3, %r4}], [%r5]",
            "fence.mbarrier_init.release.cluster",
            "fence.proxy.async.shared::cta",
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1]",
            "mbarrier.arrive.shared::cluster.b64 _, [%r1]",
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], %r2",
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2",
            "setmaxnreg.(inc|dec).sync.aligned.u32 240",
            "wgmma.(fence|commit_group).sync.aligned",
            "wgmma.wait_group.sync.aligned 0",
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.(bf16.bf16|f16.f16) \
             SUMS32, %rd1, %rd2, %p1, 1, 1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.(bf16.bf16|f16.f16) \
             SUMS64, %rd1, %rd2, %p1, 1, 1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.(bf16.bf16|f16.f16) \
             SUMS128, %rd1, %rd2, %p1, 1, 1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 SUMS64, %rd1, %rd2, %p1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 SUMS128, %rd1, %rd2, %p1, 1, 1",
            "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 \
             SUMS128, {%r1, %r2, %r3, %r4}, %rd2, %p1, 1, 1",
        ],
    ),
];

/// Modifiers that examples name together.
const SETS: [(&str, &str); 11] = [
    ("MEMORY", "b8|u8|s8|VALUE"),
    ("VALUE", "BITS|INT|f32|f64"),
    ("NARROW", "b8|b16|b32|u8|u16|u32|s8|s16|s32|f32"),
    ("INT", "u16|s16|WIDE"),
    ("WIDE", "u32|s32|u64|s64"),
    ("BITS", "b16|b32|b64"),
    ("FLOAT", "f32|ftz.f32|f64"),
    ("ROUND", "rn|rz|rm|rp"),
    ("ORDER", "|.relaxed|.acquire|.release|.acq_rel"),
    ("SCOPE", "|.cta|.gpu|.sys"),
    ("SPACE", "|.global|.shared"),
];

/// Every example of the tables, each with one choice of modifiers.
pub fn examples() -> impl Iterator<Item = (Version, String)> {
    let patterns = INSTRUCTIONS
        .into_iter()
        .flat_map(|(since, patterns)| patterns.iter().map(move |pattern| (since, *pattern)));
    patterns.flat_map(|(since, pattern)| {
        let with_sets = SETS.iter().fold(pattern.to_owned(), |text, (name, set)| {
            text.replace(name, set)
        });
        let with_sums = with_sets
            .replace("SUMS32", &registers(32))
            .replace("SUMS64", &registers(64))
            .replace("SUMS128", &registers(128));
        let choices = expanded(&with_sums).into_iter();
        choices.map(move |example| (since, example))
    })
}

/// As many registers in braces, eight of them again and again.
fn registers(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%r{}", i % 8 + 1)).collect();
    format!("{{{}}}", names.join(", "))
}

/// What `(a|b).x` means. Other parentheses have no `|` in them.
fn expanded(pattern: &str) -> Vec<String> {
    let group = pattern.match_indices('(').find_map(|(start, _)| {
        let (choices, tail) = pattern[start + 1..].split_once(')')?;
        choices
            .contains('|')
            .then_some((&pattern[..start], choices, tail))
    });
    let Some((head, choices, tail)) = group else {
        return vec![pattern.to_owned()];
    };
    choices
        .split('|')
        .flat_map(|choice| expanded(&format!("{head}{choice}{tail}")))
        .collect()
}

/// The version of each instruction, by its [`key`], of each special register and each directive.
static KNOWN: LazyLock<HashMap<String, Version>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for (since, names) in DIRECTIVES {
        known.extend(names.split(' ').map(|name| (name.to_owned(), since)));
    }
    for (since, example) in examples() {
        let (opcode, operands) = opcode_and_operands(without_labels(&example));
        let special = names(operands, '%').filter(|name| needs_lookup(name));
        for name in special.map(str::to_owned).chain([key(opcode, operands)]) {
            // The first example is the oldest: `mov` comes again with newer special registers.
            known.entry(name).or_insert(since);
        }
    }
    known
});

/// What a text says, and what it needs.
struct Text {
    version: Version,
    needed: Version,
    /// Whether it has a `.pragma "used_bytes_mask"`.
    has_hints: bool,
}

/// Reads a complete text; the error is what is not in the tables.
fn read(ptx: &str) -> Result<Text, String> {
    let mut text = Text {
        version: OLDEST,
        needed: OLDEST,
        has_hints: false,
    };
    let mut code = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        code.push_str(text.line(line).ok_or(line)?);
        code.push('\n');
    }
    for statement in code.split(';') {
        text.statement(statement).ok_or(statement.trim())?;
    }
    Ok(text)
}

/// The functions that read a part of the text return `None` if it has something unknown.
impl Text {
    fn needs(&mut self, version: Version) {
        self.needed = self.needed.max(version);
    }

    /// Reads a line if it is complete without a semicolon; else returns what it has of statements.
    fn line<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [".version", version] => self.version = parsed(version)?,
            [".target", target] => {
                let known = NvvmArch::ALL.into_iter().find(|arch| arch.sm() == target);
                self.needs(known?.since());
            }
            [".section", ".debug_str"] => self.needs(INLINED_LOC),
            [".file" | ".loc", ..] if line.contains(';') => return None,
            [".loc", ..] if line.contains(',') => self.needs(INLINED_LOC),
            [".file" | ".loc", ..] | [".pragma", "\"nounroll\";"] => {}
            [".pragma", ..] if is_hint(line) => self.has_hints = true,
            _ => {
                let code = line.split_once("//").map_or(line, |(code, _comment)| code);
                return (!code.contains(['/', '"'])).then_some(code);
            }
        }
        Some("")
    }

    fn statement(&mut self, statement: &str) -> Option<()> {
        let statement = without_labels(statement);
        if !statement.starts_with('.') {
            return self.instruction(statement);
        }
        // A brace begins a function, unless it begins the value of a variable.
        match statement.split_once('{') {
            Some((head, body)) if !head.contains('=') => {
                self.directive(head)?;
                self.statement(body)
            }
            _ => self.directive(statement),
        }
    }

    fn directive(&mut self, directive: &str) -> Option<()> {
        for name in names(directive, '.').filter(|name| name.starts_with('.')) {
            self.needs(*KNOWN.get(name)?);
        }
        if let Some((_, head)) = directive.split_once(".entry")
            && parameter_bytes(head)? > SMALL_PARAMETER_BYTES
        {
            self.needs(LARGE_PARAMETERS);
        }
        // Newer are differences of labels among debug strings, and the operator `mask` in a value.
        let (declared, value) = directive.split_once('=').unwrap_or((directive, ""));
        known(!declared.contains('-') && !value.contains('('))
    }

    fn instruction(&mut self, instruction: &str) -> Option<()> {
        if instruction.is_empty() {
            return Some(());
        }
        let (opcode, operands) = opcode_and_operands(instruction);
        // ptxas also takes modifiers after a space.
        known(!operands.starts_with('.'))?;
        self.needs(*KNOWN.get(&key(opcode, operands))?);
        for name in names(operands, '%').filter(|name| needs_lookup(name)) {
            self.needs(*KNOWN.get(name)?);
        }
        // Instead of the size that a `cp.async` copies, a newer one has a predicate.
        let last = operands.rsplit(',').next().unwrap_or_default().trim();
        let is_size = is_number(last.strip_prefix("%r").unwrap_or(last));
        let has_size = opcode.starts_with("cp.async") && !opcode.starts_with("cp.async.bulk");
        known(!has_size || last.is_empty() || is_size)
    }
}

fn known(is_known: bool) -> Option<()> {
    is_known.then_some(())
}

fn is_hint(line: &str) -> bool {
    let mask = line.trim().strip_prefix(".pragma \"used_bytes_mask ");
    mask.and_then(|mask| mask.strip_suffix("\";"))
        .is_some_and(is_number)
}

/// A statement after braces, labels and the predicate, of which none needs more than another.
fn without_labels(statement: &str) -> &str {
    let mut statement = statement.trim();
    while let Some(rest) = after_label(statement) {
        statement = rest.trim_start();
    }
    statement
}

fn after_label(statement: &str) -> Option<&str> {
    if statement.starts_with(['{', '}']) {
        return Some(&statement[1..]);
    }
    if statement.starts_with('@') {
        return Some(statement.split_once(char::is_whitespace)?.1);
    }
    let (label, rest) = statement.split_once(':')?;
    label.trim_end().chars().all(is_of_name).then_some(rest)
}

fn opcode_and_operands(instruction: &str) -> (&str, &str) {
    let (opcode, operands) = instruction
        .split_once(char::is_whitespace)
        .unwrap_or((instruction, ""));
    (opcode, operands.trim())
}

/// What an instruction is looked up by: with its modifiers, with the count of its operands, and
/// with `_` if one of them is that, which means no register.
fn key(opcode: &str, operands: &str) -> String {
    let mut count = usize::from(!operands.is_empty());
    let mut depth = 0;
    for c in operands.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    let sink = if names(operands, '%').any(|name| name == "_") {
        " _"
    } else {
        ""
    };
    format!("{opcode} {count}{sink}")
}

/// The bytes of a kernel's parameters at most, from the text after `.entry`.
fn parameter_bytes(head: &str) -> Option<usize> {
    let (_, parameters) = head.split_once('(')?;
    let (parameters, _) = parameters.split_once(')')?;
    let mut bytes: usize = 0;
    for parameter in parameters.split(',') {
        let words: Vec<&str> = parameter.split_whitespace().collect();
        let parameter_bytes = match words[..] {
            [] => 0,
            [".param", ".align", alignment, ".b8", array] => {
                let (_, length) = array.strip_suffix(']')?.split_once('[')?;
                let padding = alignment.parse::<usize>().ok()?.checked_add(8)?;
                padding.checked_add(length.parse().ok()?)?
            }
            [".param", kind, ..] if kind != ".align" && !parameter.contains('[') => 8,
            _ => return None,
        };
        bytes = bytes.checked_add(parameter_bytes)?;
    }
    Some(bytes)
}

/// Reads `8.8`.
fn parsed(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some(version(major.parse().ok()?, minor.parse().ok()?))
}

/// The names and numbers in a text, with `mark` where it precedes one.
fn names(text: &str, mark: char) -> impl Iterator<Item = &str> {
    text.split(move |c| c != mark && !is_of_name(c))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// Whether a name among operands is that of a special register, not of a kernel's own, such as
/// `%rd12`, with one letter or two before a number.
fn needs_lookup(name: &str) -> bool {
    name.strip_prefix('%').is_some_and(|register| {
        let number = register.trim_start_matches(|c: char| c.is_ascii_lowercase());
        !is_number(number) || register.len() - number.len() > 2
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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
    fn the_newest_of_what_a_text_has_decides() {
        for (lines, major, minor) in [
            ("", 6, 3),
            ("\t.loc\t1 2 3", 6, 3),
            ("\t.loc\t1 2 3, function_name $L, inlined_at 1 4 5", 7, 2),
            ("cp.async.wait_all; griddepcontrol.wait; ret;", 7, 8),
            ("mov.u32 %r1, %tid.x; mov.u32 %r2, %clusterid.x;", 7, 8),
            ("}\n.entry second(.param .align 8 .b8 x[4000]) {", 6, 3),
            (
                "}\n.entry second(.param .u64 p, .param .align 4 .b8 x[4345]) {",
                8,
                1,
            ),
            ("cvta.param.u64 %rd1, %rd2;", 7, 7),
            (
                "}\n.entry second() .explicitcluster .reqnctapercluster 2, 1, 1 {",
                7,
                8,
            ),
        ] {
            assert_eq!(needed(&kernel(lines)), Ok(version(major, minor)), "{lines}");
        }
        for arch in NvvmArch::ALL {
            let ptx = kernel("\tcp.async.commit_group;").replace("sm_75", &arch.sm());
            assert_eq!(needed(&ptx), Ok(arch.since().max(version(7, 0))), "{arch}");
        }
    }

    #[test]
    fn what_the_tables_do_not_have_keeps_the_version() {
        for lines in [
            "no.such.instruction;",
            "nosuchinstruction;",
            "bra .uni $L;",
            ".loc\t1 2 3; no.such.instruction;",
            "add.bf16 %h1, %h1, %h1;",
            "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, %p1;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, p;",
            "cp.async.cg.shared.global [%r1], [%rd1], 16, %r1, %rd2;",
            "min.f32 %f1, %f1,\n%f2, %f3;",
            "ld.global.v4.f64 {%fd1, %fd2, %fd3, %fd4}, [%rd1];",
            "ld.global.L1::no_allocate.f32 %f1, [%rd1];",
            "mov.b64 {_, %r1}, %rd1;",
            "mov.u32 %r1, %aggr_smem_size;",
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
            "}\n.section .debug_str\n{\nL:\n.b32 L - M\n",
            "}\n.entry second(.param .align 8 .b8 x[18446744073709551615]) {",
            "}\n.entry second(.param .align 8 .b8 x[2][4000]) {",
            "}\n.entry second(.param .b64 x[4000]) {",
            "}\n.entry second(.param .b128 x) {",
        ] {
            let ptx = kernel(lines);
            assert!(needed(&ptx).is_err(), "{lines}: {:?}", needed(&ptx));
            assert_eq!(lower(ptx.clone()), ptx, "{lines}");
        }
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
