//! `#[gpu_only]` and `#[externally_visible]`: functions that exist for the device's sake.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn};

/// Hands the function over in two parts, so that `cuda_std::__gpu_only!` can replace its body.
pub fn gpu_only(item: TokenStream) -> syn::Result<TokenStream> {
    let function = function(item, "gpu_only")?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
        ..
    } = function;
    let name = sig.ident.to_string();
    Ok(quote! {
        ::cuda_std::__gpu_only! { #name, [#(#attrs)* #vis #sig], #block }
    })
}

pub fn externally_visible(item: TokenStream) -> syn::Result<TokenStream> {
    let function = function(item, "externally_visible")?;
    let is_named = function.attrs.iter().any(|attribute| {
        let text = quote!(#attribute).to_string();
        text.contains("no_mangle") || text.contains("export_name")
    });
    if !is_named {
        return Err(Error::new(
            function.sig.ident.span(),
            "an externally visible function needs a name that others can call it by: add \
             `#[unsafe(no_mangle)]`",
        ));
    }
    Ok(quote! { ::cuda_std::__externally_visible! { #function } })
}

fn function(item: TokenStream, attribute: &str) -> syn::Result<ItemFn> {
    syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("#[{attribute}] goes on a function that has a body: {error}"),
        )
    })
}
