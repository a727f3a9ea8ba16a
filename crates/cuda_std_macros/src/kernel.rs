//! `#[kernel]`: checks the function's signature and hands it to `cuda_std::__entry_point!`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, FnArg, GenericParam, Ident, ItemFn, Pat, PatType, ReturnType, Safety, Signature,
    Token,
};

pub fn expand(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let bounds = LaunchBounds::parse(arguments)?;
    let mut function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("#[kernel] goes on a function that has a body: {error}"),
        )
    })?;
    check_signature(&function.sig)?;

    let checks = function.sig.inputs.iter().filter_map(check_parameter);
    let head: TokenStream = checks.chain(bounds.call()).collect();
    let body = function.block;
    function.block = syn::parse_quote!({ #head #body });
    Ok(quote! { ::cuda_std::__entry_point! { #function } })
}

/// Checks that a launch can pass the parameter, at the place of its type. It refers to the
/// parameter by name if it has one: repeating a type that does not exist would report it twice.
fn check_parameter(parameter: &FnArg) -> Option<TokenStream> {
    let FnArg::Typed(PatType { pat, ty, .. }) = parameter else {
        return None;
    };
    let place = ty.span();
    Some(match &**pat {
        Pat::Ident(pattern) => {
            let mut name = pattern.ident.clone();
            name.set_span(place.resolved_at(name.span()));
            quote_spanned! { place => ::cuda_std::__check_kernel_parameter(&#name); }
        }
        _ => {
            quote_spanned! { place => const { ::cuda_std::__check_kernel_parameter_type::<#ty>() }; }
        }
    })
}

/// Reports everything that is wrong with the signature, each at its own place.
fn check_signature(signature: &Signature) -> syn::Result<()> {
    let mut errors = Vec::new();
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        errors.push(Error::new(
            signature.fn_token.span,
            "a kernel must be an `unsafe fn`: whoever launches it vouches for its pointers and its launch shape",
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
    for parameter in &signature.generics.params {
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            errors.push(Error::new(
                parameter.span(),
                "a kernel cannot be generic, because the host launches it by its name; write the generic part as an \
                 #[inline(always)] function and one kernel for each type that calls it",
            ));
        }
    }
    for parameter in &signature.inputs {
        if let FnArg::Receiver(receiver) = parameter {
            errors.push(Error::new(
                receiver.span(),
                "a kernel cannot be a method: there is no `self` to launch it with",
            ));
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

/// `max_threads = EXPR, min_blocks = EXPR`: either, both or neither.
#[derive(Default)]
struct LaunchBounds {
    max_threads: Option<Expr>,
    min_blocks: Option<Expr>,
}

impl LaunchBounds {
    fn parse(arguments: TokenStream) -> syn::Result<Self> {
        let parser = Punctuated::<Argument, Token![,]>::parse_terminated;
        let mut bounds = Self::default();
        for argument in parser.parse2(arguments)? {
            let name = argument.name;
            let place = if name == "max_threads" {
                &mut bounds.max_threads
            } else if name == "min_blocks" {
                &mut bounds.min_blocks
            } else {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "#[kernel] has no argument `{name}`; it takes `max_threads` and `min_blocks`"
                    ),
                ));
            };
            if place.is_some() {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            *place = Some(argument.value);
        }
        Ok(bounds)
    }

    fn call(&self) -> Option<TokenStream> {
        if self.max_threads.is_none() && self.min_blocks.is_none() {
            return None;
        }
        let value = |bound: &Option<Expr>| match bound {
            Some(value) => quote! { { #value } },
            None => quote! { 0 },
        };
        let (max_threads, min_blocks) = (value(&self.max_threads), value(&self.min_blocks));
        Some(quote! { ::cuda_std::launch_bounds::<#max_threads, #min_blocks>(); })
    }
}

/// One `name = value`.
struct Argument {
    name: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        Ok(Self { name, value })
    }
}
