//! A kernel in OpenCL C, with the text of the Rust lines beside their places.

use super::Place;
use super::sources;

/// Where the text of a source line begins, counted from the comment.
const SOURCE_COLUMN: usize = 44;

/// The program with the text of the Rust lines that its comments name. Only comments change.
pub fn with_sources(program: &str) -> String {
    let mut text = String::with_capacity(program.len() * 2);
    for line in program.lines() {
        text.push_str(line);
        if let Some(place) = place(line)
            && let Some(source) = sources::line(&place.file, place.line)
        {
            let comment = line.trim_start();
            let blanks = SOURCE_COLUMN.saturating_sub(comment.chars().count());
            text.push_str(&" ".repeat(blanks.max(2)));
            // A backslash at the end would continue the comment in the next line.
            text.push_str(source.trim_end_matches('\\'));
        }
        text.push('\n');
    }
    text
}

/// The place in a comment `// gpu-kernels/src/tiled.rs:62`.
fn place(line: &str) -> Option<Place> {
    let (file, number) = line.trim_start().strip_prefix("// ")?.rsplit_once(':')?;
    Some(Place {
        file: file.to_owned(),
        line: number.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::device::compiled;

    #[test]
    fn a_place_is_a_comment_of_its_own() {
        let expected = Place {
            file: "src/a.rs".to_owned(),
            line: 7,
        };
        assert_eq!(place("    // src/a.rs:7"), Some(expected));
        for line in [
            "a = b; // src/a.rs:7",
            "// options: -cl-std=CL1.2",
            "// a",
            "",
        ] {
            assert_eq!(place(line), None, "{line}");
        }
    }

    #[test]
    fn all_lines_stay_and_places_get_their_text() {
        let name = "gpu-kernels/src/tiled.rs";
        let Some(source) = compiled::source(name) else {
            return; // no device code in this build, which `gpu_gemm` has a test for
        };
        let program = format!("{{\n    // {name}:1\n    a = b;\n    // no/such.rs:1\n}}\n");
        let listing = with_sources(&program);
        let first = source.lines().next().unwrap_or_default().trim();
        let lines: Vec<&str> = listing.lines().collect();
        assert!(lines[1].starts_with(&format!("    // {name}:1  ")) && lines[1].ends_with(first));
        assert_eq!(
            [lines[0], lines[2], lines[3]],
            ["{", "    a = b;", "    // no/such.rs:1"]
        );
    }
}
