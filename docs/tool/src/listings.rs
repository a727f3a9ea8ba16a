//! Lines of a kernel as rustc, device_codegen and libNVVM wrote them.
//! `opencl` is the kernel in OpenCL C.
//!
//! A chapter selects lines by text that they contain, in order:
//! `ptx tiled_32: st.shared.f32 | bar.sync .. fma.rn.f32` shows a line, and, from a later one,
//! all lines up to another. Between them, `...` marks omitted lines.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};
use gpu_kernels::spec::Variant;
use nvvm::{Origin, Toolkit, nvdisasm};

use crate::chapters::{self, Chapter};
use crate::ladder::{of_floats, on_cuda_cores};
use crate::parts::Part;
use crate::repository::read;

/// Why there are no compiled kernels to show, or `None` if there are.
pub fn why_absent() -> Option<&'static str> {
    static REASON: LazyLock<Option<String>> = LazyLock::new(cuda_builder::why_no_libnvvm);
    REASON.as_deref()
}

/// Kinds of parts that show compiled kernels.
pub const KINDS: [&str; 4] = ["llvm", "nvvm", "ptx", "opencl"];

/// The kernels that the chapters show: `<!-- ptx tiled_32: .. -->`.
fn shown(chapters: &[Chapter]) -> impl Iterator<Item = &str> {
    chapters.iter().flat_map(|chapter| {
        let comments = chapter.text.split("<!-- ").skip(1);
        comments.filter_map(|comment| {
            let (kind, arguments) = comment.split_once(' ')?;
            let (entry, _) = arguments.split_once(": ")?;
            KINDS.contains(&kind).then_some(entry)
        })
    })
}

/// What counts instructions ([`crate::machine_code`]): not ptxas of an SDK, which may be of another
/// version than the wheel and count otherwise.
pub fn tools() -> Option<(Toolkit, PathBuf)> {
    let (toolkit, nvdisasm) = (Toolkit::find()?, nvdisasm::find()?);
    let is_of_sdk = matches!(toolkit.origin, Origin::Variable(_) | Origin::Folder(_));
    (toolkit.ptxas.is_some() && !is_of_sdk).then_some((toolkit, nvdisasm))
}

/// The variants whose machine code is counted; none where that is not possible.
pub fn counted() -> impl Iterator<Item = &'static Variant> {
    let kernels = tools().map(|_| on_cuda_cores());
    kernels.into_iter().flatten().flat_map(of_floats)
}

/// A file that the compilers make of the kernels that are shown: their IR, PTX or OpenCL C. All
/// kernels take twice as long and more.
fn compiled(file: &str) -> Result<String, String> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let chapters = chapters::all()?;
        build("shown", shown(&chapters))
    });
    read(&FOLDER.clone()?.join(file))
}

/// The PTX of the kernels whose machine code is counted.
pub fn counted_ptx() -> Result<String, String> {
    let folder = build("counted", counted().map(|one| one.entry.name))?;
    read(&folder.join("kernels.ptx"))
}

fn build<'a>(folder: &str, entries: impl Iterator<Item = &'a str>) -> Result<PathBuf, String> {
    let out = Path::new(env!("OUT_DIR")).join(folder);
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let built = CudaBuilder::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu-kernels"))
        .arch(NvvmArch::Compute90)
        .only(entries)
        .copy_to(out.join("kernels.ptx"))
        .opencl_to(out.join("opencl"))
        .emit_llvm_ir(true)
        .debug(DebugInfo::LineTables)
        .panic_messages(false) // as in the library
        .build_now(&out);
    built.map(|_| out).map_err(|error| error.to_string())
}

/// Makes a part of a compiled kernel's lines, as a code block. `None` for a part of another
/// kind, and for one in which only the numbers of registers and labels would change: any change
/// to any kernel changes those.
pub fn quote(part: Part<'_>) -> Result<Option<String>, String> {
    let Part {
        kind, arguments, ..
    } = part;
    if kind == "opencl" {
        return opencl(part).map(Some);
    }
    let file = match kind {
        "llvm" => "kernels.rustc.ll",
        "nvvm" => "kernels.ll",
        "ptx" => "kernels.ptx",
        _ => return Ok(None),
    };
    let text = compiled(file)?;
    let (entry, lines) = arguments
        .split_once(": ")
        .ok_or_else(|| format!("`{kind} {arguments}` is not `{kind} ENTRY: LINES`"))?;
    let body = match kind {
        "ptx" => body(&text, &format!(".entry {entry}(")),
        _ => body(&text, &format!("@{entry}(")),
    };
    let body = body.ok_or_else(|| format!("there is no `{entry}`"))?;
    let chosen = choose(&body, lines).map_err(|why| format!("{kind} {entry}: {why}"))?;
    let new = format!("\n```text\n{chosen}```\n");
    let is_same = without_numbers(&new) == without_numbers(part.old);
    Ok((!is_same).then_some(new))
}

/// Lines of a kernel in OpenCL C, without the places in the Rust source.
fn opencl(part: Part<'_>) -> Result<String, String> {
    let arguments = part.arguments;
    let (entry, lines) = arguments
        .split_once(": ")
        .ok_or_else(|| format!("`opencl {arguments}` is not `opencl ENTRY: LINES`"))?;
    let text = compiled(&format!("opencl/{entry}.cl"))?;
    let body: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("__kernel"))
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let chosen = choose_as(&body, lines, |line| format!("{line}\n"))
        .map_err(|why| format!("opencl {entry}: {why}"))?;
    Ok(format!("\n```c\n{chosen}```\n"))
}

/// The text without the numbers of registers, labels and metadata.
fn without_numbers(text: &str) -> String {
    let mut in_name = false;
    text.chars()
        .filter(|&letter| {
            in_name = match letter {
                '%' | '$' | '!' => true,
                letter => in_name && (letter.is_alphanumeric() || "_.".contains(letter)),
            };
            !(in_name && letter.is_ascii_digit())
        })
        .collect()
}

/// The lines of a function's body, without empty ones, directives and comments.
fn body<'a>(text: &'a str, head: &str) -> Option<Vec<&'a str>> {
    let is_head = |line: &&str| {
        line.contains(head) && (line.starts_with("define") || line.contains(".entry"))
    };
    let lines = text.lines().skip_while(|line| !is_head(line)).skip(1);
    let body: Vec<&str> = lines
        .take_while(|line| *line != "}")
        .map(|line| {
            // Metadata and comments do not affect the result.
            let end = [" ; preds", ", !"]
                .iter()
                .filter_map(|mark| line.find(mark));
            line[..end.min().unwrap_or(line.len())].trim_end()
        })
        .filter(|line| {
            let line = line.trim_start();
            let left_out = [".loc", "//", "#dbg", ";", "$L__tmp"];
            !(line.is_empty() || left_out.iter().any(|start| line.starts_with(start)))
        })
        .collect();
    (!body.is_empty()).then_some(body)
}

/// Chosen lines of assembly, without their own blanks.
fn choose(body: &[&str], ranges: &str) -> Result<String, String> {
    choose_as(body, ranges, |line| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let label = line.ends_with(':');
        format!("{}{line}\n", if label { "" } else { "    " })
    })
}

fn choose_as(
    body: &[&str],
    ranges: &str,
    write: impl Fn(&str) -> String,
) -> Result<String, String> {
    let mut chosen = String::new();
    let mut at = 0;
    for (index, range) in ranges.split(" | ").enumerate() {
        let (first, last) = range.split_once(" .. ").unwrap_or((range, range));
        let find = |from: usize, what: &str| {
            let found = body[from..].iter().position(|line| line.contains(what));
            found
                .map(|offset| from + offset)
                .ok_or_else(|| format!("there is no line with `{what}` from here on"))
        };
        let start = find(at, first)?;
        let end = match first == last {
            true => start,
            false => find(start + 1, last)?,
        };
        if index > 0 && start > at {
            chosen += "    ...\n";
        }
        for line in &body[start..=end] {
            chosen += &write(line);
        }
        at = end + 1;
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_registers_do_not_matter_and_those_of_offsets_do() {
        let same = |one: &str, other: &str| without_numbers(one) == without_numbers(other);
        assert!(same(
            "ld.f32 %f17, [%rd5+8]; bra $L__BB6_4;",
            "ld.f32 %f2, [%rd44+8]; bra $L__BB11_4;"
        ));
        assert!(!same("ld.f32 %f17, [%rd5+8];", "ld.f32 %f17, [%rd5+16];"));
        assert!(!same("ld.v4.f32 %f17;", "ld.v2.f32 %f17;"));
    }
}
