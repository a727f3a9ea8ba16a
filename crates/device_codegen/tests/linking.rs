//! Several modules become one: by symbol name, each definition once, local symbols kept apart, with
//! the functions that a device lacks and without the code of a CPU.

use device_codegen::{Dialect, Error, KernelEntry, NvvmModule, Source, compile};

fn link(texts: &[&str]) -> Result<NvvmModule, Error> {
    let names = ["first.ll", "second.ll"];
    let sources: Vec<Source<'_>> = names
        .iter()
        .zip(texts)
        .map(|(name, text)| Source { name, text })
        .collect();
    compile(&sources, Dialect::OpaquePointers)
}

const CALLER: &str = "\
@TABLE = internal constant [4 x i8] c\"\\01\\02\\03\\04\", align 4

define void @kernel(ptr %out) section \".nvvm.kernel\" {
start:
  %v = call i32 @helper()
  %w = load i32, ptr @TABLE, align 4, !range !0
  store i32 %w, ptr %out, align 4
  ret void
}

declare i32 @helper()

!0 = !{i32 0, i32 7}
";

const HELPER: &str = "\
@TABLE = internal constant [4 x i8] c\"\\05\\06\\07\\08\", align 4

define i32 @helper() {
start:
  %v = load i32, ptr @TABLE, align 4, !range !0
  ret i32 %v
}

!0 = !{i32 0, i32 9}
";

#[test]
fn a_declaration_finds_its_definition_in_another_module() {
    for texts in [[CALLER, HELPER], [HELPER, CALLER]] {
        let ir = link(&texts).expect("it links").ir;
        assert!(ir.contains("define internal i32 @helper()"), "{ir}");
        assert!(!ir.contains("declare i32 @helper"), "{ir}");
    }
}

#[test]
fn local_symbols_of_one_name_stay_two() {
    let ir = link(&[CALLER, HELPER]).expect("it links").ir;
    let tables: Vec<&str> = ir
        .lines()
        .filter(|line| line.contains("constant [4 x i8]"))
        .collect();
    assert_eq!(tables.len(), 2, "{ir}");
    let name = |bytes: &str| {
        let table = tables
            .iter()
            .find(|line| line.contains(bytes))
            .expect("both tables are kept");
        table.split(' ').next().unwrap_or_default().to_owned()
    };
    let body = |head: &str| {
        let (_, rest) = ir.split_once(head).expect("both functions are kept");
        rest.split_once("\n}").expect("a body ends").0.to_owned()
    };
    assert!(
        body("define void @kernel").contains(&format!("{} to", name("\\01"))),
        "{ir}"
    );
    assert!(
        body("define internal i32 @helper").contains(&format!("{} to", name("\\05"))),
        "{ir}"
    );
}

#[test]
fn two_strong_definitions_are_an_error() {
    let error = link(&[HELPER, HELPER]).expect_err("helper is defined twice");
    assert_eq!(
        error.to_string(),
        "second.ll:3: in function `helper`: `helper` is defined in two modules; rename one of the two"
    );
}

#[test]
fn one_of_two_weak_definitions_is_kept() {
    let weak = HELPER.replace("define i32", "define linkonce_odr i32");
    for texts in [[&*weak, &*weak], [HELPER, &*weak], [&*weak, HELPER]] {
        assert!(link(&texts).is_ok());
    }
}

#[test]
fn a_module_says_what_its_kernels_are_and_need() {
    let text = "\
define void @plain(float %x) section \".nvvm.kernel\" {
  ret void
}

define void @bounded(ptr %out, float %x) section \".nvvm.kernel\" {
  call void @__nvvm_launch_bounds(i32 128, i32 0)
  %y = call float @__nv_expf(float %x)
  store float %y, ptr %out, align 4
  ret void
}

declare void @__nvvm_launch_bounds(i32, i32)

declare float @__nv_expf(float)
";
    let module = link(&[text]).expect("it compiles");
    let entry = |name: &str, max_threads| KernelEntry {
        name: name.to_owned(),
        max_threads,
        min_blocks: None,
        most_copied: None,
    };
    assert_eq!(
        module.kernels,
        [entry("bounded", Some(128)), entry("plain", None)]
    );
    assert!(module.needs_libdevice);
    assert!(!link(&[CALLER, HELPER]).expect("it links").needs_libdevice);
}

const CALLER_WITH_LINES: &str = "\
define void @kernel(ptr %out) section \".nvvm.kernel\" !dbg !0 {
start:
  %v = call i32 @helper(), !dbg !1
  store i32 %v, ptr %out, align 4, !dbg !1
  ret void, !dbg !1
}

declare i32 @helper()

!0 = distinct !DISubprogram(name: \"kernel\", file: !2, line: 3)
!1 = !DILocation(line: 4, column: 5, scope: !0)
!2 = !DIFile(filename: \"first.rs\", directory: \"\")
";

const HELPER_WITH_LINES: &str = "\
define i32 @helper() !dbg !2 {
start:
  ret i32 7, !dbg !0
}

!0 = !DILocation(line: 8, column: 9, scope: !2)
!1 = !DIFile(filename: \"second.rs\", directory: \"\")
!2 = distinct !DISubprogram(name: \"helper\", file: !1, line: 7)
";

/// The metadata node that a text mentions after `before`.
fn node_after<'i>(ir: &'i str, text: &str, before: &str) -> &'i str {
    let (_, rest) = text.split_once(before).expect("the text mentions a node");
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let definition = format!("!{} = ", &rest[..digits]);
    ir.lines()
        .find_map(|line| line.strip_prefix(&definition))
        .expect("the node is defined")
}

#[test]
fn line_tables_with_the_same_numbers_stay_apart() {
    for texts in [
        [CALLER_WITH_LINES, HELPER_WITH_LINES],
        [HELPER_WITH_LINES, CALLER_WITH_LINES],
    ] {
        let ir = link(&texts).expect("it links").ir;
        for (instruction, line, function, file) in [
            ("store i32", "line: 4,", "name: \"kernel\"", "first.rs"),
            ("ret i32 7", "line: 8,", "name: \"helper\"", "second.rs"),
        ] {
            let found = ir.lines().find(|line| line.contains(instruction));
            let location = node_after(&ir, found.expect("it is there"), "!dbg !");
            assert!(location.contains(line), "{ir}");
            let scope = node_after(&ir, location, "scope: !");
            assert!(scope.contains(function), "{ir}");
            assert!(node_after(&ir, scope, "file: !").contains(file), "{ir}");
        }
        assert_eq!(ir.matches("distinct !DICompileUnit").count(), 1, "{ir}");
    }
}

#[test]
fn the_list_of_functions_that_a_device_lacks_names_what_their_text_defines() {
    let (text, list) = (
        include_str!("../src/runtime.ll"),
        include_str!("../src/runtime.rs"),
    );
    let defined = text.lines().filter(|line| line.starts_with("define "));
    let defined = defined.filter_map(|line| line.split_once('@')?.1.split_once('('));
    let mut defined: Vec<&str> = defined.map(|(name, _)| name.trim_matches('"')).collect();
    defined.sort_unstable();
    let (_, list) = list.split_once("const FUNCTIONS: ").expect("a list");
    let (list, _) = list.split_once("];\n").expect("the list ends");
    let listed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(listed, defined);
}

/// Whether assembly is refused as that of a CPU.
fn is_of_host(text: &str) -> bool {
    let text = text.replace('\n', "\\0A");
    let kernel = format!(
        "define void @kernel() section \".nvvm.kernel\" {{\n  \
         call void asm sideeffect \"{text}\", \"\"()\n  ret void\n}}\n"
    );
    let refused = link(&[&kernel]).err();
    refused.is_some_and(|error| error.problem().contains("is for x86 or another host"))
}

#[test]
fn ptx_is_told_from_x86() {
    for text in [
        "",
        "bar.sync 0;",
        "pmevent 1;",
        "cp.async.ca.shared.global [${0:e}], [${1}], 4, ${2:e};",
        "ld.global.v4.f32 {$0, $1, $2, $3}, [$4];",
        "{ .reg .pred p; setp.ne.b32 p, $0, 0; @p bra done; trap; done: }",
        "@!%p1 st.shared.b32 [$0], $1; // a comment\nret;",
        "{\n.reg .b64 state;\nwait:\nmbarrier.try_wait.parity.shared.b64 p, [$0], $1;\n@p bra.uni end;\nbra.uni wait;\nend:\n}",
        "/* nothing */ activemask.b32 $0;",
        "{ .reg .f32 t0, t1;\nld.global.v2.f32 {t0, t1}, [$0];\nst.global.v2.f32 [$0], {t1, t0}; }",
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, $1}, $2, $3, 1, 1, 1, 0, 0;",
    ] {
        assert!(!is_of_host(text), "{text}");
    }
    for text in [
        "cpuid",
        "sqrtss ${0}, ${0}",
        "mov ${0:r}, rbx\ncpuid\nxchg ${0:r}, rbx",
        "xchg bx, bx;",
        "lock; cmpxchg8b [$0];",
        "2: dec ecx; jnz 2b;",
        ".byte 0x0f, 0x0b;",
        "bar.sync 0",
        "sqrtsd %xmm0, %xmm0",
    ] {
        assert!(is_of_host(text), "{text}");
    }
}
