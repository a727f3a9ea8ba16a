//! Writes each kernel of a module as OpenCL C.
//!
//! ```text
//!     linked, legalized IR
//!            |
//!         spaces        where each pointer leads: __global, __local, __constant, __private
//!            |
//!          flow         loops and branches as C has them
//!       instruction     values with one use stand where they are used
//!      function, mod    declarations, and what the file needs of the device
//!            |
//!      one file a kernel
//! ```
//!
//! A file holds one kernel, all of one function, so that a program compiles only what it runs. Its
//! parameters are those of the Rust function; behind them, as far as the kernel has them, stand
//! `dynamic_local`, the dynamic shared memory of a launch, and `panic_record`.
//!
//! If contraction is allowed, a product stands in the expression of the sum that it goes into,
//! since OpenCL C fuses the two only within one expression. An operation that must not be fused is
//! then a statement of its own.

mod arithmetic;
mod assembly;
mod body;
mod calls;
mod expression;
pub(crate) mod fields;
mod flow;
mod function;
mod instruction;
mod labels;
mod literal;
mod memory;
mod names;
mod panic;
mod phis;
mod shuffle;
mod spaces;
mod types;
mod uses;
mod value;

use std::collections::BTreeSet;

use crate::error::Error;
use crate::ir::{Function, Module, Operation, Symbol, Type, Value};
use crate::{Contraction, OpenClKernel};
use types::Element;

/// Defines `report_panic`. The record is as CUDA's (see `panics/record.ll`); only the first panic
/// is written.
const REPORT_PANIC: &str = "\
static void report_panic(volatile __global uint *record, uint number, ulong first, ulong second, ulong third)
{
    if (atomic_cmpxchg(record, 0u, number) != 0u) {
        return;
    }
    for (uint axis = 0; axis < 3; ++axis) {
        record[1 + axis] = (uint)get_group_id(axis);
        record[4 + axis] = (uint)get_local_id(axis);
    }
    const ulong numbers[3] = {first, second, third};
    for (uint index = 0; index < 3; ++index) {
        record[8 + 2 * index] = (uint)numbers[index];
        record[9 + 2 * index] = (uint)(numbers[index] >> 32);
    }
}
";

/// Prints every kernel, or says why it cannot be one of OpenCL's.
pub(crate) fn print(
    module: &Module,
    panics: &[String],
    contraction: Contraction,
) -> Vec<(String, Result<OpenClKernel, Error>)> {
    let printer = Printer {
        module,
        contraction,
    };
    module
        .functions
        .iter()
        .filter(|(_, function)| function.kernel.is_some() && !function.is_declaration())
        .map(|(symbol, function)| (symbol.to_string(), printer.kernel(symbol, function, panics)))
        .collect()
}

struct Printer<'m> {
    module: &'m Module,
    contraction: Contraction,
}

/// What a kernel needs beside its own text.
#[derive(Default)]
struct Needs {
    fp64: bool,
    correct_rounding: bool,
    dynamic_local: bool,
    panic_record: bool,
    /// What each panic says, by its number.
    panics: Vec<String>,
    /// Types for accesses that meet those of another type, or are less aligned.
    aliases: BTreeSet<(String, u64)>,
    /// The blocks of the function being written that a `goto` leads to.
    labels: BTreeSet<usize>,
}

impl Needs {
    fn note_type(&mut self, ty: &Type) {
        self.fp64 |= *ty == Type::Double;
    }

    fn note_element(&mut self, element: Element) {
        self.fp64 |= element == Element::Double;
    }

    /// A type for such accesses.
    fn alias(&mut self, ty: &str, align: u64) -> String {
        self.aliases.insert((ty.to_owned(), align));
        format!("{ty}_aligned_{align}")
    }
}

impl Printer<'_> {
    fn kernel(
        &self,
        symbol: &Symbol,
        function: &Function,
        panics: &[String],
    ) -> Result<OpenClKernel, Error> {
        if !names::is_identifier(symbol) {
            return Err(Error::new(
                &function.location,
                format!("`{symbol}` is no name for a kernel of OpenCL C; rename it"),
            ));
        }
        let mut needs = Needs {
            panics: panics.to_vec(),
            ..Needs::default()
        };
        let text = function::write(self, &mut needs, symbol, function)?;
        let mut source = self.head(symbol, function, &needs);
        if needs.panic_record {
            source.push_str(REPORT_PANIC);
            source.push('\n');
        }
        source.push_str(&text);
        for number in panics_of(function, &needs, panics.len()) {
            // Comments are ASCII, and end with the line.
            let said = needs.panics.get(number).map_or("", String::as_str);
            source.push_str(&format!("// panic {number}: {}\n", said.escape_default()));
        }
        Ok(OpenClKernel {
            name: symbol.to_string(),
            source,
            has_dynamic_local: needs.dynamic_local,
            has_panic_record: needs.panic_record,
        })
    }

    /// The beginning of a file, up to its functions.
    fn head(&self, symbol: &Symbol, function: &Function, needs: &Needs) -> String {
        let place = function.scope.and_then(|scope| {
            let scope = self.module.lines.scopes.get(&scope)?;
            let file = self.module.lines.files.get(&scope.file())?;
            Some(format!(", from {}", file.name))
        });
        let mut options = vec!["-cl-std=CL1.2"];
        if needs.correct_rounding {
            options.push("-cl-fp32-correctly-rounded-divide-sqrt");
        }
        let mut head = format!(
            "// The kernel {symbol}{}. OpenCL C 1.2.\n// options: {}\n",
            place.unwrap_or_default(),
            options.join(" ")
        );
        let switch = match self.contraction {
            Contraction::Allowed => "ON",
            Contraction::Forbidden => "OFF",
        };
        head.push_str(&format!("\n#pragma OPENCL FP_CONTRACT {switch}\n"));
        if needs.fp64 {
            head.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
        }
        head.push('\n');
        for (ty, align) in &needs.aliases {
            head.push_str(&format!(
                "typedef {ty} {ty}_aligned_{align} __attribute__((may_alias, aligned({align})));\n"
            ));
        }
        if !needs.aliases.is_empty() {
            head.push('\n');
        }
        head
    }
}

/// The numbers of the panics that a function reports.
fn panics_of(function: &Function, needs: &Needs, known: usize) -> BTreeSet<usize> {
    // Those that stop without a panic are the kernel's own.
    let mut found: BTreeSet<usize> = (known..needs.panics.len()).collect();
    let instructions = || function.blocks.iter().flat_map(|block| &block.instructions);
    let mut note = |value: &Value| {
        found.extend(
            value
                .as_integer()
                .and_then(|number| usize::try_from(number).ok()),
        );
    };
    for instruction in instructions() {
        let Operation::Call(call) = &instruction.operation else {
            continue;
        };
        if call
            .symbol()
            .is_none_or(|symbol| **symbol != *crate::panics::PANIC)
        {
            continue;
        }
        match call.arguments.first() {
            Some(Value::Local(id)) => {
                let made = instructions().find(|instruction| instruction.result == Some(*id));
                if let Some(Operation::Phi { incoming, .. }) = made.map(|made| &made.operation) {
                    incoming.iter().for_each(|(value, _)| note(value));
                }
            }
            Some(value) => note(value),
            None => {}
        }
    }
    found
}
