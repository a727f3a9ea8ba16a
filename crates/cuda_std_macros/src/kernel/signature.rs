//! What a kernel's signature must be.

use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericParam, Ident, ReturnType, Safety, Signature, Type};

/// Functions that a GPU's runtime has, or that LLVM calls.
const TAKEN: &[&str] = &[
    "__assertfail",
    "free",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "vprintf",
];

/// Rejects the name of another function of the program: a kernel's is seen in all of it.
pub fn check_name(name: &Ident) -> syn::Result<()> {
    let text = name.to_string();
    if TAKEN.contains(&text.as_str()) || text.starts_with("__nv") {
        let message = format!(
            "a kernel cannot be called `{text}`: a function of this name comes with the GPU's runtime, and calls of it \
             would be calls of the kernel"
        );
        return Err(Error::new(name.span(), message));
    }
    Ok(())
}

/// Reports everything that is wrong with the signature, each at its own place.
pub fn check(signature: &Signature, has_instances: bool) -> syn::Result<()> {
    let mut errors = Vec::new();
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        errors.push(Error::new(
            signature.fn_token.span,
            "a kernel must be an `unsafe fn`: the caller must guarantee that its pointers and its launch configuration are valid",
        ));
    }
    if let Some(constness) = &signature.constness {
        errors.push(Error::new(constness.span(), "a kernel cannot be `const`"));
    }
    if let Some(asyncness) = &signature.asyncness {
        errors.push(Error::new(asyncness.span(), "a kernel cannot be `async`"));
    }
    if let Some(abi) = &signature.abi {
        errors.push(Error::new(
            abi.span(),
            "a kernel's calling convention is set by #[kernel]; leave out `extern`",
        ));
    }
    let mut generic = signature.generics.params.iter();
    let mut generic = generic.find(|one| !matches!(one, GenericParam::Lifetime(_)));
    if has_instances && generic.take().is_none() {
        errors.push(Error::new(
            signature.ident.span(),
            "only a generic function has instances; leave out `instantiate`",
        ));
    }
    if let Some(parameter) = generic {
        errors.push(Error::new(
            parameter.span(),
            format!(
                "the host launches a kernel by its name, and a generic function has one for each choice of its \
                 parameters; name them: #[kernel(instantiate({0}_f32 = {0}::<f32>))]",
                signature.ident
            ),
        ));
    }
    for parameter in &signature.inputs {
        match parameter {
            FnArg::Receiver(receiver) => errors.push(Error::new(
                receiver.span(),
                "a kernel cannot be a method: there is no `self` to launch it with",
            )),
            FnArg::Typed(parameter) if matches!(*parameter.ty, Type::ImplTrait(_)) => {
                errors.push(Error::new(
                    parameter.ty.span(),
                    "a launch cannot choose the type of a parameter; name the generic parameter and its instances",
                ));
            }
            FnArg::Typed(_) => {}
        }
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        errors.push(Error::new(
            ty.span(),
            "a kernel cannot return a value; write results through a pointer parameter",
        ));
    }
    match errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    }) {
        Some(all) => Err(all),
        None => Ok(()),
    }
}
