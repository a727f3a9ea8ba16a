//! Parameters by value become a parameter for each field that the kernel reads.
//!
//! OpenCL allows no pointer inside a structure that a kernel takes. So a kernel of one parameter
//! `gemm`, of which it reads a number at byte 16 and a pointer at byte 32, becomes one of two
//! parameters, by whose names a host knows what to pass:
//!
//! ```text
//!     __kernel void naive(ulong gemm_at_16, const __global float *restrict gemm_at_32, ...
//! ```

use std::collections::{BTreeMap, HashMap};

use crate::ir::{Attribute, Function, Local, LocalId, Module, Operand, Operation, Type, Value};
use crate::read_only;

/// Replaces the parameters by value of all kernels of which only fields at constant places are
/// read; others stay as they are.
pub(crate) fn become_parameters(module: &mut Module) {
    for function in module.functions.values_mut() {
        let Some(kernel) = &function.kernel else {
            continue;
        };
        // From the last to the first, so that the places of the others stay.
        let positions: Vec<usize> = kernel.by_value.keys().rev().copied().collect();
        for position in positions {
            if let Some(places) = function
                .parameters
                .get(position)
                .and_then(|parameter| places_in(function, *parameter))
            {
                replace(function, position, &places);
            }
        }
    }
}

/// The pointers into a parameter, and the byte that each leads to. `None` if anything but loads at
/// constant places is done with one.
fn places_in(function: &Function, parameter: LocalId) -> Option<HashMap<LocalId, u64>> {
    let mut places = HashMap::from([(parameter, 0_u64)]);
    // A block may come before one that it depends on.
    let mut known = 0;
    while known < places.len() {
        known = places.len();
        for instruction in function.instructions() {
            if let Some((base, bytes)) = moved(&instruction.operation)
                && let Some(place) = places.get(&base)
            {
                let place = place.checked_add(bytes)?;
                places.extend(instruction.result.map(|result| (result, place)));
            }
        }
    }
    let leads_into = |value: &Value| matches!(value, Value::Local(id) if places.contains_key(id));
    let mut operations = function
        .instructions()
        .map(|instruction| &instruction.operation);
    let only_loads = operations.all(|operation| match operation {
        Operation::Load { order: None, .. } => true,
        _ if moved(operation).is_some_and(|(base, _)| places.contains_key(&base)) => true,
        _ => !operation.values().into_iter().any(leads_into),
    });
    only_loads.then_some(places)
}

/// The pointer that an operation moves by a constant number of bytes, and that number.
fn moved(operation: &Operation) -> Option<(LocalId, u64)> {
    match operation {
        Operation::ElementPointer {
            source: Type::Integer(8),
            base:
                Operand {
                    value: Value::Local(base),
                    ..
                },
            indices,
            ..
        } => match indices.as_slice() {
            [index] => Some((*base, u64::try_from(index.value.as_integer()?).ok()?)),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces a parameter by one for each field.
fn replace(function: &mut Function, position: usize, places: &HashMap<LocalId, u64>) {
    let parameter = function.parameters[position];
    let name = function.locals[parameter.0 as usize].name.clone();
    let name = name.as_deref().unwrap_or("block").to_owned();
    let mut fields: BTreeMap<(u64, String), (LocalId, Type)> = BTreeMap::new();
    let mut loaded = Vec::new();
    for block in 0..function.blocks.len() {
        let mut instructions = std::mem::take(&mut function.blocks[block].instructions);
        instructions.retain(|instruction| {
            let Operation::Load { ty, pointer, .. } = &instruction.operation else {
                return true;
            };
            let Value::Local(pointer) = pointer.value else {
                return true;
            };
            let (Some(place), Some(result)) = (places.get(&pointer), instruction.result) else {
                return true;
            };
            let (field, _) = fields.entry((*place, ty.to_string())).or_insert_with(|| {
                let id = LocalId(function.locals.len() as u32);
                function.locals.push(Local {
                    name: Some(format!("{name}_at_{place}").into()),
                    ty: ty.clone(),
                });
                (id, ty.clone())
            });
            loaded.push((result, Value::Local(*field)));
            false
        });
        function.blocks[block].instructions = instructions;
    }
    function.substitute(&loaded);
    let (ids, types): (Vec<LocalId>, Vec<Type>) = fields.into_values().unzip();
    let attributes: Vec<Vec<Attribute>> = ids
        .iter()
        .zip(&types)
        .map(|(id, ty)| match ty {
            Type::Pointer(_) if read_only::is_read_only(function, *id) => {
                vec![Attribute::flag("noalias"), Attribute::flag("readonly")]
            }
            _ => Vec::new(),
        })
        .collect();
    let added = ids.len();
    function.parameters.splice(position..=position, ids);
    function.ty.parameters.splice(position..=position, types);
    function
        .parameter_attributes
        .splice(position..=position, attributes);
    if let Some(kernel) = &mut function.kernel {
        kernel.by_value.remove(&position);
        let after = kernel.by_value.split_off(&position);
        let moved = after
            .into_iter()
            .map(|(other, value)| (other + added - 1, value));
        kernel.by_value.extend(moved);
    }
    // What led into the parameter leads nowhere.
    for block in &mut function.blocks {
        block.instructions.retain(|instruction| {
            !instruction
                .result
                .is_some_and(|result| places.contains_key(&result))
        });
    }
}
