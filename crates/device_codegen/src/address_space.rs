//! Puts every static into an address space of the device.
//!
//! A static marked `#[link_section = ".nvvm.addrspace.3"]` goes into shared memory (1: global, 4:
//! constant); all others go into global memory. Code still uses generic pointers: each mention of
//! a static becomes an `addrspacecast`, through which libNVVM sees where the pointer leads and
//! selects `ld.shared` and the like.
//!
//! Shared memory has no initial value. Zeros stand for none, since a `static mut` must have some
//! value in the source, and kernels for rust-cuda write zeros; another value is an error.

use crate::error::{Error, Result};
use crate::ir::{CastOperation, Constant, Global, Module, Symbol, Type, TypedConstant};

const SECTION_PREFIX: &str = ".nvvm.addrspace.";

/// The section of statics in shared memory.
pub(crate) const SHARED_SECTION: &str = ".nvvm.addrspace.3";

const GLOBAL: u32 = 1;
pub(crate) const SHARED: u32 = 3;
const CONSTANT: u32 = 4;

/// Assigns the address spaces and rewrites all mentions.
pub(crate) fn assign(module: &mut Module) -> Result<()> {
    for global in module.globals.values_mut() {
        place(global)?;
    }
    let spaces: Vec<(Symbol, u32)> = module
        .globals
        .iter()
        .map(|(symbol, global)| (symbol.clone(), global.address_space))
        .collect();
    module.visit_constants_mut(&mut |constant| {
        if let Constant::Symbol(symbol) = constant
            && let Ok(found) = spaces.binary_search_by(|(known, _)| known.cmp(symbol))
        {
            *constant = to_generic(symbol.clone(), spaces[found].1);
        }
    });
    Ok(())
}

fn place(global: &mut Global) -> Result<()> {
    let error = |problem: String| Err(Error::new(&global.location, problem));
    global.address_space = match global.section.take() {
        None => GLOBAL,
        Some(section) => match section.strip_prefix(SECTION_PREFIX) {
            Some("1") => GLOBAL,
            Some("3") => SHARED,
            Some("4") => CONSTANT,
            _ => {
                return error(format!(
                    "the section `{section}` has no meaning on the device; leave out the `link_section`"
                ));
            }
        },
    };
    if global.address_space == SHARED
        && let Some(value) = &mut global.initializer
    {
        if !is_nothing(value) {
            return error(
                "shared memory has no initial value but zeros, which mean nothing; make the static a `MaybeUninit` \
                 and write it in the kernel"
                    .to_owned(),
            );
        }
        *value = Constant::Undef;
    }
    Ok(())
}

/// Whether each byte of a constant is zero or has no value.
fn is_nothing(constant: &Constant) -> bool {
    match constant {
        Constant::Undef | Constant::Poison | Constant::Zero => true,
        Constant::Aggregate(_, elements) => {
            elements.iter().all(|element| is_nothing(&element.value))
        }
        _ => false,
    }
}

fn to_generic(symbol: Symbol, space: u32) -> Constant {
    Constant::Cast(
        CastOperation::AddressSpaceCast,
        Box::new(TypedConstant {
            ty: Type::Pointer(space),
            value: Constant::Symbol(symbol),
        }),
        Type::GENERIC_POINTER,
    )
}
