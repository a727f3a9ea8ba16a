//! The tables of `ptx_version` against the real ptxas: it accepts each entry at the version that
//! they give, and rejects it one version lower.
//!
//! If ptxas is not available, the tests that need it are reported as ignored, by name.

use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::ptx_version::{DIRECTIVES, INSTRUCTIONS, OLDEST, REGISTERS, TARGETS, needed};
use nvvm::{Error, NvvmArch, Toolkit, Version, ptxas};

fn main() {
    let arguments = Arguments::from_args();
    let toolkit = Toolkit::find_or_fetch().ok();
    let can_assemble = toolkit.as_ref().is_some_and(|found| found.ptxas.is_some());
    if !can_assemble {
        eprintln!("The tests of ptxas are ignored: no CUDA toolkit or wheel with it was found.");
    }
    let mut trials = vec![
        Trial::test("every_line_of_the_tables_has_an_example", || {
            every_line_has_an_example()
        }),
        Trial::test("an_example_needs_the_version_that_the_tables_give", || {
            examples_need_their_version()
        }),
    ];
    let mut with_ptxas = |name: String, test: fn(&Toolkit, usize) -> Result<(), Failed>, index| {
        let toolkit = toolkit.clone();
        let trial = Trial::test(name, move || {
            test(toolkit.as_ref().ok_or("no toolkit")?, index)
        });
        trials.push(trial.with_ignored_flag(!can_assemble));
    };
    for (index, examples) in EXAMPLES.iter().enumerate() {
        let name = format!("ptxas_takes_what_needs_{}_from_there_on", examples.since);
        with_ptxas(name, examples_assemble, index);
    }
    for (index, (target, since)) in TARGETS.iter().enumerate() {
        with_ptxas(
            format!("ptxas_takes_{target}_from_{since}_on"),
            target_assembles,
            index,
        );
    }
    for (index, construct) in CONSTRUCTS.iter().enumerate() {
        let name = format!("ptxas_takes_{}_from_{}_on", construct.name, construct.ptxas);
        with_ptxas(name, construct_assembles, index);
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The versions of the PTX ISA, from the one before Turing's on.
const RELEASES: [Version; 22] = [
    version(6, 2),
    version(6, 3),
    version(6, 4),
    version(6, 5),
    version(7, 0),
    version(7, 1),
    version(7, 2),
    version(7, 3),
    version(7, 4),
    version(7, 5),
    version(7, 6),
    version(7, 7),
    version(7, 8),
    version(8, 0),
    version(8, 1),
    version(8, 2),
    version(8, 3),
    version(8, 4),
    version(8, 5),
    version(8, 6),
    version(8, 7),
    version(8, 8),
];

const fn version(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

/// The version before one.
fn before(version: Version) -> Version {
    let older = RELEASES.iter().rfind(|release| **release < version);
    *older.expect("there is one before each that the tables have")
}

/// Instructions that need a version, on the oldest architecture that has them all.
struct Examples {
    since: Version,
    arch: NvvmArch,
    /// `(a|b) x` stands for `a x` and `b x`.
    instructions: &'static [&'static str],
}

const EXAMPLES: &[Examples] = &[
    Examples {
        since: OLDEST,
        arch: NvvmArch::Compute75,
        instructions: &[
            "(abs.s16|neg.s16|not.b16|mov.b16|mov.u16|mov.s16) %rs1, %rs2",
            "(abs.s32|abs.f32|abs.ftz.f32|neg.s32|neg.f32|neg.ftz.f32|not.b32) %r1, %r2",
            "(brev.b32|clz.b32|popc.b32|bfind.u32|bfind.s32|bfind.shiftamt.u32) %r1, %r2",
            "(sin|cos|ex2|lg2|rcp|rsqrt|sqrt).approx.(f32|ftz.f32) %r1, %r2",
            "(rcp|sqrt).(rn|rz|rm|rp).(f32|ftz.f32) %r1, %r2",
            "(rcp|rsqrt).approx.ftz.f64 %rd1, %rd2",
            "(rcp|sqrt).(rn|rz|rm|rp).f64 %rd1, %rd2",
            "(abs.s64|abs.f64|neg.s64|neg.f64|not.b64|brev.b64) %rd1, %rd2",
            "(clz.b64|popc.b64|bfind.u64|bfind.s64) %r1, %rd2",
            "mov.(b32|u32|s32|f32) %r1, %r2",
            "mov.(b64|u64|s64|f64) %rd1, %rd2",
            "(mov|not).pred %p1, %p2",
            "cvt.(u8|s8).u32 %rs1, %r2",
            "cvt.(u16|s16).u32 %rs1, %r2",
            "cvt.(u64|s64).s32 %rd1, %r2",
            "cvt.(rni|rzi|rmi|rpi).f32.f32 %r1, %r2",
            "cvt.(rn|rz|rm|rp).f32.u32 %r1, %r2",
            "cvt.rn.f16.f32 %rs1, %r2",
            "cvt.f64.f32 %rd1, %r2",
            "cvt.ftz.sat.f32.f32 %r1, %r2",
            "(add|sub).(u16|s16) %rs1, %rs2, %rs3",
            "(add|sub).(u32|s32|f32|sat.s32|cc.u32|sat.f32|ftz.f32) %r1, %r2, %r3",
            "(add|sub|mul).(rn|rz|rm|rp).f32 %r1, %r2, %r3",
            "(add|sub).(u64|s64|f64) %rd1, %rd2, %rd3",
            "(addc|subc).(u32|s32|cc.u32) %r1, %r2, %r3",
            "(addc|subc).(u64|s64) %rd1, %rd2, %rd3",
            "(and|or|xor).pred %p1, %p2, %p3",
            "(and|or|xor).b16 %rs1, %rs2, %rs3",
            "(and|or|xor).b32 %r1, %r2, %r3",
            "(and|or|xor).b64 %rd1, %rd2, %rd3",
            "(div|rem|min|max).(u16|s16) %rs1, %rs2, %rs3",
            "(div|rem|min|max).(u32|s32) %r1, %r2, %r3",
            "(div|rem|min|max).(u64|s64) %rd1, %rd2, %rd3",
            "(min|max).(f32|ftz.f32) %r1, %r2, %r3",
            "(min|max|copysign|div.rn).f64 %rd1, %rd2, %rd3",
            "copysign.f32 %r1, %r2, %r3",
            "div.(approx|full|rn|rz|rm|rp).(f32|ftz.f32) %r1, %r2, %r3",
            "mul.(lo|hi).(u16|s16) %rs1, %rs2, %rs3",
            "mul.(lo|hi).(u32|s32) %r1, %r2, %r3",
            "mul.(lo|hi).(u64|s64) %rd1, %rd2, %rd3",
            "mul.wide.u32 %rd1, %r2, %r3",
            "mul.(f32|ftz.f32|sat.f32) %r1, %r2, %r3",
            "mul.f64 %rd1, %rd2, %rd3",
            "mad.lo.(u16|s16) %rs1, %rs2, %rs3, %rs1",
            "mad.(lo|hi|lo.cc).(u32|s32) %r1, %r2, %r3, %r1",
            "mad.hi.sat.s32 %r1, %r2, %r3, %r1",
            "mad.lo.(u64|s64) %rd1, %rd2, %rd3, %rd1",
            "mad.wide.u32 %rd1, %r2, %r3, %rd1",
            "(fma|mad).(rn|rz|rm|rp).(f32|ftz.f32|sat.f32) %r1, %r2, %r3, %r1",
            "(fma|mad).(rn|rz|rm|rp).f64 %rd1, %rd2, %rd3, %rd1",
            "madc.(lo|hi|lo.cc).(u32|s32) %r1, %r2, %r3, %r1",
            "madc.lo.(u64|s64) %rd1, %rd2, %rd3, %rd1",
            "sad.(u16|s16) %rs1, %rs2, %rs3, %rs1",
            "sad.(u32|s32) %r1, %r2, %r3, %r1",
            "sad.(u64|s64) %rd1, %rd2, %rd3, %rd1",
            "bfe.(u32|s32) %r1, %r2, %r3, %r1",
            "bfe.(u64|s64) %rd1, %rd2, %r3, %r1",
            "bfi.b32 %r1, %r2, %r3, %r1, %r2",
            "bfi.b64 %rd1, %rd2, %rd3, %r1, %r2",
            "lop3.b32 %r1, %r2, %r3, %r1, 128",
            "prmt.b32 %r1, %r2, %r3, 291",
            "(shl.b16|shr.b16|shr.u16|shr.s16) %rs1, %rs2, %r3",
            "(shl.b32|shr.b32|shr.u32|shr.s32) %r1, %r2, %r3",
            "(shl.b64|shr.b64|shr.u64|shr.s64) %rd1, %rd2, %r3",
            "shf.(l|r).(wrap|clamp).b32 %r1, %r2, %r3, %r1",
            "selp.(b16|u16|s16) %rs1, %rs2, %rs3, %p1",
            "selp.(b32|u32|s32|f32) %r1, %r2, %r3, %p1",
            "selp.(b64|u64|s64|f64) %rd1, %rd2, %rd3, %p1",
            "setp.eq.(b16|u16|s16) %p1, %rs2, %rs3",
            "setp.eq.(b32|u32|s32|f32|ftz.f32) %p1, %r2, %r3",
            "setp.eq.(b64|u64|s64|f64) %p1, %rd2, %rd3",
            "setp.(ne|lt|le|gt|ge|lo|ls|hi|hs).u32 %p1|%p2, %r2, %r3",
            "setp.(equ|neu|ltu|leu|gtu|geu|num|nan).f32 %p1, %r2, %r3",
            "setp.eq.(and|or|xor).u32 %p1, %r2, %r3, %p2",
            "ld.(global|shared|local|const).u32 %r1, [%rd1]",
            "ld.param.u64 %rd1, [parameter]",
            "ld.(b8|u8|s8|b16|u16|s16) %rs1, [%rd1]",
            "ld.(b32|u32|s32|f32) %r1, [%rd1]",
            "ld.(b64|u64|s64|f64) %rd1, [%rd1]",
            "ld.global.v2.u64 {%rd1, %rd2}, [%rd1]",
            "ld.global.nc.v4.f32 {%r1, %r2, %r3, %r4}, [%rd1]",
            "ld.(volatile|weak).global.u32 %r1, [%rd1]",
            "ld.(relaxed|acquire).(cta|gpu|sys).global.u32 %r1, [%rd1]",
            "ld.global.(ca|cg|cs|lu|cv).u32 %r1, [%rd1]",
            "st.(global|shared|local).u32 [%rd1], %r1",
            "st.(b8|u8|s8|b16|u16|s16) [%rd1], %rs1",
            "st.(b32|u32|s32|f32) [%rd1], %r1",
            "st.(b64|u64|s64|f64) [%rd1], %rd1",
            "st.global.v2.u64 [%rd1], {%rd1, %rd2}",
            "st.global.v4.f32 [%rd1], {%r1, %r2, %r3, %r4}",
            "st.(volatile|weak).global.u32 [%rd1], %r1",
            "st.(relaxed|release).(cta|gpu|sys).global.u32 [%rd1], %r1",
            "st.global.(wb|cg|cs|wt).u32 [%rd1], %r1",
            "{ .param .b32 out; st.param.b32 [out], %r1; }",
            "atom.(global|shared).(and|or|xor|exch).b32 %r1, [%rd1], %r2",
            "atom.(add|inc|dec|min|max).u32 %r1, [%rd1], %r2",
            "atom.add.(s32|f32) %r1, [%rd1], %r2",
            "atom.cas.b64 %rd1, [%rd1], %rd2, %rd3",
            "atom.(add.u64|max.s64|add.f64) %rd1, [%rd1], %rd2",
            "atom.(relaxed|acquire|release|acq_rel).(cta|gpu|sys).add.u32 %r1, [%rd1], %r2",
            "red.(global|shared).(and|or|xor).b32 [%rd1], %r2",
            "red.(add|inc|dec|min|max).u32 [%rd1], %r2",
            "red.add.(s32|f32) [%rd1], %r2",
            "red.(or.b64|add.u64|max.s64|add.f64) [%rd1], %rd2",
            "red.(relaxed|release).(cta|gpu|sys).add.u32 [%rd1], %r2",
            "membar.(cta|gl|sys)",
            "fence.(sc|acq_rel).(cta|gpu|sys)",
            "prefetch.(global|local).(L1|L2) [%rd1]",
            "cvta.(global|shared|local|const|to.global).u64 %rd1, %rd2",
            "isspacep.(global|shared|local|const) %p1, %rd1",
            "(bar|barrier).sync 0",
            "(bar|barrier).arrive 0, 64",
            "barrier.sync.aligned 0",
            "(bar|barrier).red.popc.u32 %r1, 0, %p1",
            "(bar|barrier).red.(and|or).pred %p1, 0, %p2",
            "bar.warp.sync %r1",
            "shfl.sync.(up|down|bfly|idx).b32 %r1|%p1, %r2, 1, 31, %r3",
            "vote.sync.(all|any|uni).pred %p1, %p2, %r1",
            "vote.sync.ballot.b32 %r1, %p2, %r2",
            "match.any.sync.b32 %r1, %r2, %r3",
            "match.all.sync.b64 %r1|%p1, %rd2, %r3",
            "activemask.b32 %r1",
            "nanosleep.u32 100",
            "mov.u32 %r1, %(tid|ntid|ctaid|nctaid).x",
            "mov.u32 %r1, %(laneid|warpid|nwarpid|smid|nsmid)",
            "mov.u32 %r1, %(lanemask_eq|lanemask_le|lanemask_lt|lanemask_ge|lanemask_gt)",
            "mov.u32 %r1, %(clock|clock_hi|dynamic_smem_size|total_smem_size)",
            "mov.u64 %rd1, %(gridid|clock64|globaltimer)",
            "mov.u64 %SPL, %SP",
            "mov.b64 {%r1, %temp}, %rd1",
            "call called, (%rd1)",
            "call.uni called, (%rd1)",
            "@%p1 bra END",
            "@!%p1 bra.uni END",
            "@%p1 (ret|ret.uni|exit|trap)",
            "brx.idx %r1, TARGETS",
            "brx.idx.uni %r1, TARGETS",
        ],
    },
    Examples {
        since: version(6, 5),
        arch: NvvmArch::Compute75,
        instructions: &[
            "ldmatrix.sync.aligned.m8n8.x1(|.trans).shared.b16 {%r1}, [%rd1]",
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%rd1]",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%rd1]",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4}",
        ],
    },
    Examples {
        since: version(7, 0),
        arch: NvvmArch::Compute80,
        instructions: &[
            "cp.async.(ca|cg).shared.global [%r1], [%rd1], 16",
            "cp.async.(ca|cg).shared.global [%r1], [%rd1], 16, %r2",
            "cp.async.(commit_group|wait_all)",
            "cp.async.wait_group 2",
            "cvt.rna.tf32.f32 %r1, %r2",
            "cvt.rn.bf16.f32 %rs1, %r2",
            "mbarrier.init.shared.b64 [%rd1], %r1",
            "mbarrier.inval.shared.b64 [%rd1]",
            "mbarrier.arrive.shared.b64 %rd2, [%rd1]",
            "mbarrier.test_wait.shared.b64 %p1, [%rd1], %rd2",
            "mma.sync.aligned.m16n8k16.row.col.f32.(f16.f16|bf16.bf16).f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r1, %r2}, {%r1, %r2, %r3, %r4}",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \
             {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r1, %r2}, {%r1, %r2, %r3, %r4}",
            "redux.sync.(add|min|max).(u32|s32) %r1, %r2, %r3",
            "redux.sync.(and|or|xor).b32 %r1, %r2, %r3",
            "tanh.approx.f32 %r1, %r2",
        ],
    },
    Examples {
        since: version(7, 1),
        arch: NvvmArch::Compute80,
        instructions: &["mbarrier.test_wait.parity.shared.b64 %p1, [%rd1], %r2"],
    },
    Examples {
        since: version(7, 8),
        arch: NvvmArch::Compute90,
        instructions: &[
            "griddepcontrol.(wait|launch_dependents)",
            "mbarrier.try_wait.shared.b64 %p1, [%rd1], %rd2",
            "mbarrier.try_wait.parity.shared.b64 %p1, [%rd1], %r2",
            "mov.u32 %r1, %(clusterid|nclusterid|cluster_ctaid|cluster_nctaid).x",
            "mov.u32 %r1, %(cluster_ctarank|cluster_nctarank)",
            "mov.pred %p1, %is_explicit_cluster",
        ],
    },
    Examples {
        since: version(8, 0),
        arch: NvvmArch::Compute90a,
        instructions: &[
            "elect.sync %r1|%p1, %r2",
            "fence.proxy.async",
            "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%rd1], %r2",
            "setmaxnreg.(inc|dec).sync.aligned.u32 64",
            "wgmma.(fence|commit_group).sync.aligned",
            "wgmma.wait_group.sync.aligned 0",
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.(f16.f16|bf16.bf16) \
             {%r1, %r2, %r3, %r4}, %rd1, %rd2, %p1, 1, 1, 0, 0",
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 \
             {%r1, %r2, %r3, %r4}, %rd1, %rd2, %p1, 1, 1",
        ],
    },
];

impl Examples {
    /// The instructions, each alone.
    fn all(&self) -> Vec<String> {
        let all = self.instructions.iter();
        all.flat_map(|instruction| expanded(instruction)).collect()
    }
}

/// What `(a|b) x` stands for. Other parentheses have no `|` in them.
fn expanded(pattern: &str) -> Vec<String> {
    let choices = pattern.match_indices('(').find_map(|(start, _)| {
        let (choices, _) = pattern[start + 1..].split_once(')')?;
        choices.contains('|').then_some((start, choices))
    });
    let Some((start, choices)) = choices else {
        return vec![pattern.to_owned()];
    };
    let (head, tail) = (&pattern[..start], &pattern[start + choices.len() + 2..]);
    let all = choices.split('|');
    all.flat_map(|choice| expanded(&format!("{head}{choice}{tail}")))
        .collect()
}

/// What stands before the first instruction of a module, and how many lines that is.
const HEAD: &str = "\
.address_size 64
.func called(.param .b64 x) { ret; }
.visible .entry kernel(.param .u64 parameter)
{
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
.reg .b64 %SP; .reg .b64 %SPL; .reg .b32 %temp;
TARGETS: .branchtargets END, OTHER;
";
const HEAD_LINES: usize = 9;

/// A module with these instructions, one a line.
fn module(version: Version, target: &str, instructions: &[String]) -> String {
    let mut module = format!(".version {version}\n.target {target}\n{HEAD}");
    for instruction in instructions {
        module.push_str(instruction);
        module.push_str(if instruction.starts_with('{') {
            "\n"
        } else {
            ";\n"
        });
    }
    module + "OTHER: ret;\nEND: ret;\n}\n"
}

/// The modifiers of a line of the tables, each with the name; an instruction alone where it has
/// none.
fn parts_of(row: &str) -> Vec<(String, String)> {
    let (name, modifiers) = row.split_once(' ').unwrap_or((row, ""));
    let part = |modifier: &str| (name.to_owned(), modifier.trim_end_matches('*').to_owned());
    modifiers.split(' ').map(part).collect()
}

fn every_line_has_an_example() -> Result<(), Failed> {
    for (since, rows) in INSTRUCTIONS {
        let all: Vec<String> = EXAMPLES
            .iter()
            .filter(|examples| examples.since == since)
            .flat_map(Examples::all)
            .collect();
        for (name, modifier) in rows.iter().flat_map(|row| parts_of(row)) {
            let is_there = all
                .iter()
                .flat_map(|line| line.split([' ', ';']))
                .any(|word| {
                    let mut parts = word.split('.');
                    let is_whole = modifier.is_empty() && word == name;
                    is_whole
                        || parts.next() == Some(&name)
                            && !modifier.is_empty()
                            && parts.any(|part| part.starts_with(&modifier))
                });
            if !is_there {
                return Err(format!("no example of {since} has {name} with {modifier}").into());
            }
        }
    }
    let registers = REGISTERS.iter().flat_map(|(since, names)| {
        let of_version = move |name| (*since, format!("%{name}"));
        names.split(' ').map(of_version)
    });
    for (since, register) in registers {
        let mut examples = EXAMPLES.iter().filter(|examples| examples.since == since);
        if !examples.any(|examples| examples.all().iter().any(|line| line.contains(&register))) {
            return Err(format!("no example of {since} has {register}").into());
        }
    }
    for (since, names) in DIRECTIVES {
        for name in names.split(' ') {
            let has_it = |text: &str| {
                text.split([' ', '\n', '\t'])
                    .any(|word| word == format!(".{name}"))
            };
            let mut constructs = CONSTRUCTS
                .iter()
                .filter(|construct| construct.documented == since);
            if !constructs.any(|construct| has_it(&construct.module("", since))) {
                return Err(format!("no construct of {since} has .{name}").into());
            }
        }
    }
    Ok(())
}

fn examples_need_their_version() -> Result<(), Failed> {
    for examples in EXAMPLES {
        for instruction in examples.all() {
            // The oldest target, which needs no more than the oldest version itself.
            let module = module(version(8, 8), "sm_75", std::slice::from_ref(&instruction));
            if needed(&module) != Ok(examples.since) {
                return Err(format!("{instruction} needs {:?}", needed(&module)).into());
            }
        }
    }
    for construct in CONSTRUCTS {
        let module = construct.module("sm_75", version(8, 8));
        if needed(&module) != Ok(construct.documented) {
            return Err(format!("{} needs {:?}", construct.name, needed(&module)).into());
        }
    }
    Ok(())
}

fn examples_assemble(toolkit: &Toolkit, index: usize) -> Result<(), Failed> {
    let Examples { since, arch, .. } = EXAMPLES[index];
    let instructions = EXAMPLES[index].all();
    ptxas::assemble(toolkit, &module(since, &arch.sm(), &instructions), arch)?;

    let older = module(before(since), &arch.sm(), &instructions);
    let log = refusal(toolkit, &older, arch)?;
    if since == OLDEST {
        // It is the target that needs it.
        return says(
            &log,
            &format!("PTX .version {} does not support", before(since)),
        );
    }
    for (index, instruction) in instructions.iter().enumerate() {
        let line = format!("line {};", HEAD_LINES + index + 1);
        let mut errors = log.lines().filter(|error| error.contains(&line));
        let needs = format!("requires PTX ISA .version {since} or later");
        if !errors.any(|error| error.contains(&needs)) {
            return Err(format!("{instruction} is not refused for its version: {log}").into());
        }
    }
    Ok(())
}

fn target_assembles(toolkit: &Toolkit, index: usize) -> Result<(), Failed> {
    let (target, since) = TARGETS[index];
    let arch: NvvmArch = target.replace("sm_", "compute_").parse()?;
    ptxas::assemble(toolkit, &module(since, target, &[]), arch)?;
    let older = before(since);
    let log = refusal(toolkit, &module(older, target, &[]), arch)?;
    says(
        &log,
        &format!("PTX .version {older} does not support .target {target}"),
    )
}

/// What else a text can need a version for.
struct Construct {
    name: &'static str,
    /// The version that NVIDIA documents, which the text is taken to need.
    documented: Version,
    /// The version from which on ptxas of CUDA 12.9 takes it.
    ptxas: Version,
    /// Of a module what follows `.address_size`.
    text: &'static str,
    /// As many bytes of parameters as the text has `BYTES` for.
    parameter_bytes: usize,
}

const CONSTRUCTS: &[Construct] = &[
    Construct {
        name: "directives",
        documented: OLDEST,
        ptxas: OLDEST,
        text: r#"
.extern .func (.param .b32 out) vprintf (.param .b64 a, .param .b64 b) ;
.func (.param .b32 out) pointee(.param .b64 a, .param .b64 b)
{
	ret;
}
.extern .shared .align 16 .b8 dynamic[];
.weak .global .align 4 .b8 w[8];
.common .global .u8 c;
.visible .const .s8 s = 1;
.global .b16 h; .global .u16 uh; .global .s16 sh;
.global .u32 uw; .global .s32 sw; .global .f32 f;
.global .u64 address = generic(uw); .global .s64 sd; .global .f64 d;
.global .align 8 .v2 .f32 pair; .global .align 16 .v4 .f32 four;
.visible .entry kernel(
	.param .u64 .ptr .global .align 4 p,
	.param .align 8 .b8 BYTES
)
.maxntid 128, 1, 1
.minnctapersm 2
.maxnreg 64
{
	.local .align 4 .b8 depot[16];
	.reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<3>;
	.pragma "nounroll";
	prototype : .callprototype (.param .b32 out) _ (.param .b64 a, .param .b64 b) ;
	mov.u64 %rd1, pointee;
	{ // callseq 0, 0
	.param .b64 a;
	.param .b64 b;
	.param .b32 out;
	st.param.b64 [a], %rd1; st.param.b64 [b], %rd1;
	call (out),
	%rd1,
	(
	a,
	b
	)
	, prototype;
	} // callseq 0
TARGETS: .branchtargets $END, $OTHER;
	brx.idx %r1, TARGETS;
$OTHER:
$END:
	ret;
}
.entry other()
.reqntid 32, 1, 1
{
	ret;
}
"#,
        parameter_bytes: 4344,
    },
    Construct {
        name: "noreturn",
        documented: version(6, 4),
        ptxas: version(6, 4),
        text: ".func f() .noreturn { trap; }\n",
        parameter_bytes: 0,
    },
    Construct {
        name: "the_line_of_an_inlined_call",
        documented: version(7, 2),
        ptxas: version(7, 0),
        text: "\
.func f() {
	.loc	1 1 1
	.loc	1 2 3, function_name NAMES, inlined_at 1 1 1
	ret;
}
	.file	1 \"kernels.rs\"
	.section	.debug_str
	{
NAMES:
.b8 95,0
	}
",
        parameter_bytes: 0,
    },
    Construct {
        name: "a_label_among_names",
        documented: version(7, 2),
        ptxas: version(7, 0),
        text: ".section .debug_str\n{\nNAMES:\n.b8 95,0\n}\n",
        parameter_bytes: 0,
    },
    Construct {
        name: "large_parameters",
        documented: version(8, 1),
        ptxas: version(8, 1),
        text: ".entry kernel(.param .u64 p, .param .align 1 .b8 BYTES) { ret; }\n",
        parameter_bytes: 4345,
    },
];

impl Construct {
    fn module(&self, target: &str, version: Version) -> String {
        let text = self
            .text
            .replace("BYTES", &format!("bytes[{}]", self.parameter_bytes));
        format!(".version {version}\n.target {target}\n.address_size 64\n{text}")
    }
}

fn construct_assembles(toolkit: &Toolkit, index: usize) -> Result<(), Failed> {
    let construct = &CONSTRUCTS[index];
    let arch = NvvmArch::Compute75;
    for version in [construct.ptxas, construct.documented] {
        ptxas::assemble(toolkit, &construct.module("sm_75", version), arch)?;
    }
    let older = construct.module("sm_75", before(construct.ptxas));
    let log = refusal(toolkit, &older, arch)?;
    says(&log, "version")
}

/// What ptxas says about a module that it rejects.
fn refusal(toolkit: &Toolkit, ptx: &str, arch: NvvmArch) -> Result<String, Failed> {
    match ptxas::assemble(toolkit, ptx, arch) {
        Err(Error::PtxasRejected { log, .. }) => Ok(log),
        Err(error) => Err(error.into()),
        Ok(_) => Err(format!("ptxas takes it: {}", ptx.lines().next().unwrap_or_default()).into()),
    }
}

fn says(log: &str, words: &str) -> Result<(), Failed> {
    match log.contains(words) {
        true => Ok(()),
        false => Err(format!("not refused for its version: {log}").into()),
    }
}
