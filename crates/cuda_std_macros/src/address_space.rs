//! `#[address_space(..)]`: takes a static apart for `cuda_std::__static_in!`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Ident, ItemStatic};

pub fn expand(space: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let space: Ident = syn::parse2(space).map_err(|error| {
        Error::new(
            error.span(),
            "#[address_space] takes one of `shared`, `global` and `constant`",
        )
    })?;
    if !["shared", "global", "constant"]
        .iter()
        .any(|name| space == name)
    {
        return Err(Error::new(
            space.span(),
            format!("no address space `{space}`; there are `shared`, `global` and `constant`"),
        ));
    }
    let ItemStatic {
        attrs,
        vis,
        mutability,
        ident,
        ty,
        expr,
        ..
    } = syn::parse2(item)?;
    // What is `mut` is unsafe to use, whatever it holds.
    let is_safe = matches!(mutability, syn::StaticMutability::None);
    let check = if !is_safe {
        None
    } else if space == "shared" {
        Some(quote! { const _: () = ::cuda_std::shared::__assert_content::<#ty>(); })
    } else if space == "constant" {
        Some(quote! { const _: () = ::cuda_std::__assert_constant::<#ty>(); })
    } else {
        None
    };
    Ok(quote! {
        #check
        ::cuda_std::__static_in! { #space, [#(#attrs)* #vis static #mutability], #ident, #ty, #expr }
    })
}
