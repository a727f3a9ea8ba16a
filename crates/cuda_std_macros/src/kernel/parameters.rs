//! A kernel's parameters, and how it receives them from a launch.
//!
//! A number or a pointer, which rustc passes as a launch does, remains a parameter of its own
//! type. For any other type `T` the entry point on a GPU takes a `&T`, which `device_codegen` makes
//! a parameter by value, and its body begins by reading it:
//!
//! ```text
//!   unsafe fn k(shape: Shape) { .. }
//!
//!   unsafe fn k(shape: PASSED) { let shape: Shape = receive(shape); { .. } }
//! ```
//!
//! A name such as `Shape` may stand for a number too. So `PASSED` is a type that `cuda_std` finds
//! with a constant: `Shape` itself, or a reference to it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Meta, Pat, PatType, Signature, Type};

/// A kernel's signatures, and the statements at the head of its body.
pub struct Received {
    /// As it is written.
    pub for_cpu: Signature,
    /// As a launch passes the parameters.
    pub for_gpu: Signature,
    /// They check that a launch can pass each parameter.
    pub checks: TokenStream,
    /// In `for_gpu`, they give the parameters their types.
    pub receives: TokenStream,
}

pub fn receive(signature: &Signature) -> syn::Result<Received> {
    let mut received = Received {
        for_cpu: signature.clone(),
        for_gpu: signature.clone(),
        checks: TokenStream::new(),
        receives: TokenStream::new(),
    };
    let on_both = received.for_cpu.inputs.iter_mut();
    let on_both = on_both.zip(received.for_gpu.inputs.iter_mut());
    for (position, both) in on_both.enumerate() {
        let (FnArg::Typed(on_cpu), FnArg::Typed(on_gpu)) = both else {
            continue;
        };
        if is_marked(on_cpu)? {
            let Some(name) = named(on_cpu) else {
                return Err(Error::new(
                    on_cpu.pat.span(),
                    "a `#[grid_constant]` parameter needs a name",
                ));
            };
            let place = on_cpu.ty.span();
            let name = at(name, place);
            let mark = quote_spanned! { place => ::cuda_std::__grid_constant(#name); };
            received.checks.extend(mark);
            on_cpu.attrs = without_grid_constant(&on_cpu.attrs);
            on_gpu.attrs = on_cpu.attrs.clone();
            continue;
        }
        received.checks.extend(check(on_cpu));
        if !is_passed_as_itself(&on_cpu.ty) {
            let name = name_of(on_cpu, position);
            let (pattern, ty) = (&on_cpu.pat, &on_cpu.ty);
            let way = way_of(ty);
            received.receives.extend(quote! {
                let #pattern: #ty = <#ty as ::cuda_std::__Pass<#way>>::receive(#name);
            });
            *on_gpu.pat = syn::parse_quote!(#name);
            *on_gpu.ty = syn::parse_quote!(<#ty as ::cuda_std::__Pass<#way>>::Passed<'_>);
        }
    }
    Ok(received)
}

/// Checks that a launch can pass the parameter, at the place of its type. It refers to the
/// parameter by name if it has one: repeating a type that does not exist would report it again.
fn check(parameter: &PatType) -> TokenStream {
    let PatType { pat, ty, .. } = parameter;
    let place = ty.span();
    match &**pat {
        // The name of a `ref` is that of a reference.
        Pat::Ident(pattern) if pattern.by_ref.is_none() => {
            let name = at(&pattern.ident, place);
            quote_spanned! { place => ::cuda_std::__check_kernel_parameter(&#name); }
        }
        _ => {
            quote_spanned! { place => const { ::cuda_std::__check_kernel_parameter_type::<#ty>() }; }
        }
    }
}

/// The name, for an error to be shown at another place.
fn at(name: &Ident, place: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(place.resolved_at(name.span()));
    name
}

/// The name of a parameter whose pattern is a name.
fn named(parameter: &PatType) -> Option<&Ident> {
    match &*parameter.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Some(&pattern.ident)
        }
        _ => None,
    }
}

/// A name for a parameter: its own, if it has one.
pub fn name_of(parameter: &PatType, position: usize) -> Ident {
    let new = || format_ident!("parameter_{position}", span = Span::mixed_site());
    named(parameter).cloned().unwrap_or_else(new)
}

/// Whether the parameter is marked `#[grid_constant]`, which only a reference can be.
fn is_marked(parameter: &PatType) -> syn::Result<bool> {
    let Some(mark) = parameter.attrs.iter().find(|one| is_grid_constant(one)) else {
        return Ok(false);
    };
    if !matches!(mark.meta, Meta::Path(_)) {
        return Err(Error::new(
            mark.span(),
            "`#[grid_constant]` takes no arguments",
        ));
    }
    match &*parameter.ty {
        Type::Reference(reference) if reference.mutability.is_none() => Ok(true),
        other => Err(Error::new(
            other.span(),
            "a `#[grid_constant]` parameter is a reference, `&T`: the launch passes the `T`, and all threads read \
             it where it is",
        )),
    }
}

fn is_grid_constant(attribute: &Attribute) -> bool {
    attribute.path().is_ident("grid_constant")
}

pub fn without_grid_constant(attributes: &[Attribute]) -> Vec<Attribute> {
    let others = attributes.iter().filter(|one| !is_grid_constant(one));
    others.cloned().collect()
}

/// Whether a type is known, as it is written, to be passed as rustc does.
fn is_passed_as_itself(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) | Type::Ptr(_) => true,
        Type::Group(group) => is_passed_as_itself(&group.elem),
        Type::Paren(inner) => is_passed_as_itself(&inner.elem),
        Type::Path(path) => path
            .path
            .get_ident()
            .is_some_and(|name| SCALARS.iter().any(|scalar| name == scalar)),
        _ => false,
    }
}

const SCALARS: [&str; 14] = [
    "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64", "bool",
    "char",
];

/// The constant that says how a launch passes a type.
fn way_of(ty: &Type) -> TokenStream {
    let ty = without_lifetimes(ty.to_token_stream());
    quote! {{
        #[allow(unused_imports)]
        use ::cuda_std::__ByValue as _;
        <::cuda_std::__Way<#ty>>::AS_ITSELF
    }}
}

/// Tokens of a type with `'_` for each lifetime, which a constant cannot name.
fn without_lifetimes(ty: TokenStream) -> TokenStream {
    let mut after_quote = false;
    let tokens = ty.into_iter().map(|token| {
        let is_lifetime = std::mem::replace(
            &mut after_quote,
            matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '\''),
        );
        match token {
            TokenTree::Ident(name) if is_lifetime => Ident::new("_", name.span()).into(),
            TokenTree::Group(group) => {
                let inner = without_lifetimes(group.stream());
                let mut new = proc_macro2::Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                new.into()
            }
            other => other,
        }
    });
    tokens.collect()
}
