//! What a kernel says of itself by calls in its body: launch bounds, registers, the size of its
//! clusters, and which parameters are values that the launch passes.
//!
//! ```text
//!   define void @k(ptr %shape) section ".nvvm.kernel" {
//!     call void @__nvvm_by_value(ptr %shape, i64 24, i64 8)
//! ```
//!
//! turns the parameter into 24 bytes aligned to 8, which `%shape` points to. rustc itself would
//! pass a struct of 24 bytes behind a pointer and divide a smaller one among registers, as suits a
//! CPU. Size and alignment are all that the launch knows of it, and all that PTX says.

use crate::error::{Error, Result, demangle};
use crate::ir::{ByValue, Function, Kernel, Module, Symbol, Value};

/// What a call says.
#[derive(Clone, Copy)]
pub(crate) enum Property {
    /// The most threads of a block, and the number of blocks that an SM should hold; 0 leaves
    /// either open.
    LaunchBounds,
    /// The most registers of a thread.
    MaxRegisters,
    /// The extents of a cluster, in blocks.
    ClusterDim,
    /// A parameter, and the size and alignment of what it points to, which is what the launch
    /// passes.
    ByValue,
    /// The same, and all threads use the launch's own copy, which has an address.
    GridConstant,
}

impl Property {
    /// How errors call it.
    fn name(self) -> &'static str {
        match self {
            Property::LaunchBounds => "launch bounds",
            Property::MaxRegisters => "register limits",
            Property::ClusterDim => "cluster dimensions",
            Property::ByValue | Property::GridConstant => "parameters by value",
        }
    }
}

/// Sets the property that a call with these arguments, in this line of the IR, gives the kernel.
pub(crate) fn set(
    function: &mut Function,
    property: Property,
    arguments: &[Value],
    line: u32,
) -> Result<()> {
    let location = function.location_of(line);
    let fail = |problem: String| Err(Error::new(&location, problem));
    let name = property.name();
    let parameter = match arguments.first() {
        Some(Value::Local(id)) => function.parameters.iter().position(|other| other == id),
        _ => None,
    };
    let Some(kernel) = &mut function.kernel else {
        return fail(format!("{name} can only be given in the body of a kernel"));
    };
    let is_first = match property {
        Property::ByValue | Property::GridConstant => {
            let Some(parameter) = parameter else {
                return fail("only a parameter of the kernel can be passed by value".to_owned());
            };
            let [_, bytes, align] = arguments else {
                return fail(not_constant(name));
            };
            let (Some(bytes), Some(align)) = (number::<u64>(bytes), number::<u64>(align)) else {
                return fail(not_constant(name));
            };
            if bytes == 0 || !align.is_power_of_two() {
                return fail(format!("no parameter has {bytes} bytes aligned to {align}"));
            }
            let value = ByValue {
                bytes,
                align,
                is_grid_constant: matches!(property, Property::GridConstant),
            };
            let other = kernel.by_value.insert(parameter, value);
            other.is_none_or(|other| other == value)
        }
        _ => {
            let numbers: Option<Vec<u32>> = arguments.iter().map(number).collect();
            let Some(numbers) = numbers else {
                return fail(not_constant(name));
            };
            set_numbers(kernel, property, &numbers)
        }
    };
    match is_first {
        true => Ok(()),
        false => fail(format!(
            "the kernel is given two different {name}; leave one of them out"
        )),
    }
}

/// Sets what numbers say. Returns whether the kernel had no other numbers for it.
fn set_numbers(kernel: &mut Kernel, property: Property, numbers: &[u32]) -> bool {
    let old = kernel.clone();
    let given = |number: u32| (number > 0).then_some(number);
    let had_none = match (property, numbers) {
        (Property::LaunchBounds, [threads, blocks]) => {
            (kernel.max_threads, kernel.min_blocks) = (given(*threads), given(*blocks));
            (old.max_threads, old.min_blocks) == (None, None)
        }
        (Property::MaxRegisters, [registers]) => {
            kernel.max_registers = Some(*registers);
            old.max_registers.is_none()
        }
        (Property::ClusterDim, [x, y, z]) => {
            kernel.cluster_dim = Some([*x, *y, *z]);
            old.cluster_dim.is_none()
        }
        // The caller has checked that the call has the property's signature.
        _ => true,
    };
    had_none || *kernel == old
}

fn number<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    T::try_from(value.as_integer()?).ok()
}

fn not_constant(name: &str) -> String {
    format!("{name} must be constants; write them as literals or `const` items")
}

/// Checks that no code calls a kernel whose parameters a launch must pass by value: to a call they
/// are pointers.
pub(crate) fn check_calls(module: &Module) -> Result<()> {
    let takes_values = |symbol: &Symbol| {
        let function = module.functions.get(symbol);
        let kernel = function.and_then(|function| function.kernel.as_ref());
        kernel.is_some_and(|kernel| !kernel.by_value.is_empty())
    };
    for function in module.functions.values() {
        let mut symbols = function.symbols().into_iter();
        if let Some((symbol, line)) = symbols.find(|(symbol, _)| takes_values(symbol)) {
            let problem = format!(
                "it calls the kernel `{}`, which has a parameter by value: only a launch can pass it",
                demangle(symbol)
            );
            return Err(Error::new(&function.location_of(line), problem));
        }
    }
    Ok(())
}
