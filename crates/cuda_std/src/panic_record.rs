//! What a panic on a GPU leaves on the host: message, place, block and thread.
//!
//! A panic ends in a trap, which destroys the GPU's context together with everything in the GPU's
//! memory. So the thread that panics first writes to memory of the host before it, if the host has
//! put its address into the variable [`ADDRESS`] of the module, which every module has that can
//! panic. The memory must be page-locked and mapped, as `cust`'s `LockedBuffer` is.
//!
//! ```ignore
//! use cuda_std::panic_record;
//! use cust::memory::{CopyDestination, LockedBuffer};
//!
//! let record = LockedBuffer::new(&0u32, panic_record::WORDS)?;
//! let module = Module::from_ptx(PTX, &[])?;
//! if panic_record::is_in(PTX) {
//!     let address = record.as_ptr() as u64;
//!     module.get_global::<u64>(panic_record::ADDRESS)?.copy_from(&address)?;
//! }
//! // ... launches ...
//! if let Err(error) = stream.synchronize() {
//!     // Thread (40, 0, 0) of block (0, 0, 0) panicked at src/lib.rs:5:9: index out of bounds ...
//!     if let Some(panic) = panic_record::read(PTX, &record) {
//!         eprintln!("{panic}");
//!     }
//! }
//! ```
//!
//! The record must live as long as the module. A build with
//! `CudaBuilder::panic_messages(false)` has no such variable, and its panics only trap.

use std::ffi::CStr;

use crate::simulator::{Dim3, Fault};

/// The name of the variable that holds the record's address, of type `u64`; 0 unless the host
/// sets it.
pub const ADDRESS: &CStr = c"__nvvm_panic_record";

/// The size of a record in words. All of them are zero before a panic.
pub const WORDS: usize = 16;

/// Whether a module has the variable [`ADDRESS`].
pub fn is_in(ptx: &str) -> bool {
    ptx.contains("__nvvm_panic_record")
}

/// The panic that a kernel of this module has recorded: a [`Fault::Panic`], as the simulator
/// returns it. `None` if no thread has panicked, or `record` is shorter than [`WORDS`].
///
/// Call it once the GPU has failed. `ptx` is the text that `cuda_builder` wrote: its last lines say
/// what each panic means. If they are missing, only the panic's number is known.
pub fn read(ptx: &str, record: &[u32]) -> Option<Fault> {
    let [valid, place @ ..] = record.first_chunk::<WORDS>()?;
    let number = valid.checked_sub(1)?;
    let [bx, by, bz, tx, ty, tz, _, rest @ ..] = place;
    let mut values = [0; 3];
    for (value, halves) in values.iter_mut().zip(rest.chunks_exact(2)) {
        *value = u64::from(halves[0]) | u64::from(halves[1]) << 32;
    }
    let said = said(ptx, number);
    let (location, message) = match said.as_deref().and_then(|said| said.split_once(": ")) {
        Some((place, message)) => (
            Some(place.to_owned()).filter(|place| !place.is_empty()),
            filled(message, values),
        ),
        None => (None, format!("panic {number}")),
    };
    Some(Fault::Panic {
        block: Dim3 {
            x: *bx,
            y: *by,
            z: *bz,
        },
        thread: Dim3 {
            x: *tx,
            y: *ty,
            z: *tz,
        },
        message,
        location,
    })
}

/// What the PTX says of a panic: `src/lib.rs:5:9: index out of bounds: the len is {1} but ...`.
fn said(ptx: &str, number: u32) -> Option<String> {
    let prefix = format!("// panic {number}: ");
    let line = ptx
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(&prefix))?;
    Some(unescaped(line))
}

/// Undoes `str::escape_default`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let digits: String = characters.by_ref().take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(digits.trim_start_matches('{'), 16);
                out.extend(code.ok().and_then(char::from_u32));
            }
            other => out.extend(other),
        }
    }
    out
}

/// A message with its numbers: `{0}` to `{2}`; a doubled brace is one.
fn filled(message: &str, values: [u64; 3]) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..];
        let value = ["{0}", "{1}", "{2}"]
            .iter()
            .zip(values)
            .find(|(name, _)| brace.starts_with(**name));
        rest = match value {
            Some((name, value)) => {
                out.push_str(&value.to_string());
                &brace[name.len()..]
            }
            None => {
                out.push_str(&brace[..1]);
                let doubled = brace.starts_with("{{") || brace.starts_with("}}");
                &brace[1 + usize::from(doubled)..]
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".visible .entry k()\n{\n\ttrap;\n}\n\
        // panic 0: src/lib.rs:5:9: index out of bounds: the len is {1} but the index is {0}\n\
        // panic 1: : {{a}} \\n \\u{e9} \\\\ \\\"b\\\"\n\
        // panic 10: src/lib.rs:7:1: none of them: {{}}\n";

    fn record(number: u32, values: [u64; 3]) -> [u32; WORDS] {
        let mut record = [0; WORDS];
        record[..7].copy_from_slice(&[number + 1, 1, 2, 3, 4, 5, 6]);
        for (halves, value) in record[8..14].chunks_exact_mut(2).zip(values) {
            halves.copy_from_slice(&[value as u32, (value >> 32) as u32]);
        }
        record
    }

    #[test]
    fn a_record_and_its_module_say_what_where_and_which_thread() {
        let fault = read(PTX, &record(0, [9, 4 << 32, 0])).unwrap();
        assert_eq!(
            fault.to_string(),
            "Thread (4, 5, 6) of block (1, 2, 3) panicked at src/lib.rs:5:9: index out of bounds: the len is \
             17179869184 but the index is 9"
        );
        let fault = read(PTX, &record(10, [9, 4, 0])).unwrap();
        assert!(
            fault
                .to_string()
                .ends_with("src/lib.rs:7:1: none of them: {}"),
            "{fault}"
        );
    }

    #[test]
    fn escapes_and_braces_are_undone() {
        let Some(Fault::Panic {
            message, location, ..
        }) = read(PTX, &record(1, [0; 3]))
        else {
            panic!("there is a panic");
        };
        assert_eq!(message, "{a} \n é \\ \"b\"");
        assert_eq!(location, None);
    }

    #[test]
    fn a_panic_that_the_module_does_not_list_has_a_number() {
        let fault = read("", &record(3, [0; 3])).unwrap();
        assert!(fault.to_string().ends_with("panicked: panic 3"), "{fault}");
    }

    #[test]
    fn without_a_panic_there_is_nothing_to_read() {
        assert_eq!(read(PTX, &[0; WORDS]), None);
        assert_eq!(read(PTX, &[1; WORDS - 1]), None);
    }
}
