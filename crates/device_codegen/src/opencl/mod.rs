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
//! A file holds one kernel and what it calls, so that a program compiles only what it runs. Its
//! parameters are those of the Rust function; behind them, as far as the kernel has them, follow
//! `dynamic_local`, the dynamic shared memory of a launch, and `panic_record`.
//!
//! If contraction is allowed, a product is part of the expression of its sum, since OpenCL C fuses
//! the two only within one expression. An operation that must not be fused is then a statement of
//! its own.

mod arithmetic;
mod assembly;
mod body;
mod calls;
mod expression;
pub(crate) mod fields;
mod flow;
mod function;
mod instruction;
mod kernel;
mod labels;
mod literal;
mod memory;
mod names;
mod needs;
mod overflow;
mod panic;
mod phis;
mod shuffle;
mod spaces;
mod statics;
mod types;
mod uses;
mod value;

use std::collections::BTreeSet;

use crate::error::Error;
use crate::ir::{Function, Module, Operation, Symbol, Value};
use function::Written;
use needs::{Needs, Printer};

pub use kernel::{Contraction, OpenClKernel, OpenClVersion};

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

/// The conversions of halves, which every device has.
const HALVES: &str = "\
static float float_of_half(ushort bits)
{
    return vload_half(0, (const __private half *)&bits);
}

static ushort half_of_float(float number)
{
    ushort bits;
    vstore_half_rte(number, 0, (__private half *)&bits);
    return bits;
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
        let Written { text, .. } = function::write(self, &mut needs, symbol, function, None)?;
        let version = needs.version();
        let mut source = self.head(symbol, function, &needs);
        for (_, text) in needs.statics.values() {
            source.push_str(text);
        }
        if needs.panic_record {
            source.push_str(REPORT_PANIC);
            source.push('\n');
        }
        if needs.halves {
            source.push_str(HALVES);
            source.push('\n');
        }
        for helper in &needs.texts_of_helpers {
            source.push_str(helper);
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
            version,
            has_dynamic_local: needs.dynamic_local,
            has_panic_record: needs.panic_record,
        })
    }

    /// The beginning of a file, up to its functions.
    fn head(&self, symbol: &Symbol, function: &Function, needs: &Needs) -> String {
        let version = needs.version();
        let place = function.scope.and_then(|scope| {
            let scope = self.module.lines.scopes.get(&scope)?;
            let file = self.module.lines.files.get(&scope.file())?;
            Some(format!(", from {}", file.name))
        });
        let mut options = vec![format!("-cl-std=CL{}", version.number())];
        if needs.correct_rounding {
            options.push("-cl-fp32-correctly-rounded-divide-sqrt".to_owned());
        }
        let mut head = format!(
            "// The kernel {symbol}{}. OpenCL C {}.\n// options: {}\n",
            place.unwrap_or_default(),
            version.number(),
            options.join(" ")
        );
        let switch = match self.contraction {
            Contraction::Allowed => "ON",
            Contraction::Forbidden => "OFF",
        };
        head.push_str(&format!("\n#pragma OPENCL FP_CONTRACT {switch}\n"));
        let extensions = [
            (needs.fp64, "cl_khr_fp64"),
            (needs.int64_atomics, "cl_khr_int64_base_atomics"),
            (needs.int64_atomics, "cl_khr_int64_extended_atomics"),
        ];
        for (_, name) in extensions.iter().filter(|(is_needed, _)| *is_needed) {
            head.push_str(&format!("#pragma OPENCL EXTENSION {name} : enable\n"));
        }
        head.push('\n');
        for (bytes, align) in &needs.by_value {
            head.push_str(&format!(
                "typedef struct {{ uchar bytes[{bytes}]; }} __attribute__((aligned({align}))) by_value_{bytes}_{align};\n"
            ));
        }
        let aliases: Vec<(String, u64)> = needs.aliases.iter().cloned().collect();
        for (ty, align) in aliases {
            let name = Needs::default().alias(&ty, align);
            head.push_str(&format!(
                "typedef {ty} {name} __attribute__((may_alias, aligned({align})));\n"
            ));
        }
        if !needs.by_value.is_empty() || !needs.aliases.is_empty() {
            head.push('\n');
        }
        head
    }
}

/// The numbers of the panics that a function reports.
fn panics_of(function: &Function, needs: &Needs, known: usize) -> BTreeSet<usize> {
    // Those that stop without a panic are the kernel's own.
    let mut found: BTreeSet<usize> = (known..needs.panics.len()).collect();
    let mut note = |value: &Value| {
        found.extend(
            value
                .as_integer()
                .and_then(|number| usize::try_from(number).ok()),
        );
    };
    let calls = function.calls();
    for (_, call, _) in calls.filter(|(.., symbol)| ***symbol == *crate::panics::PANIC) {
        match call.arguments.first() {
            Some(Value::Local(id)) => {
                let made = function.definition(*id);
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
