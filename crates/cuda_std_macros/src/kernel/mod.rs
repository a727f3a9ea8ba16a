//! `#[kernel]`: checks the function and hands it to `cuda_std::__entry_point!`, once as the
//! simulator calls it and once as a GPU launches it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `arguments.rs` | reads `max_threads = 256, ..` |
//! | `signature.rs` | finds everything that is wrong with the signature |
//! | `parameters.rs` | receives each parameter from the launch |
//! | `instances.rs` | makes entry points of a generic function |

mod arguments;
mod instances;
mod parameters;
mod signature;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, ItemFn, parse_quote, token::Brace};

use arguments::Arguments;
use parameters::Received;

pub fn expand(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("#[kernel] goes on a function that has a body: {error}"),
        )
    })?;
    signature::check(&function.sig, !arguments.instances.is_empty())?;
    let properties = arguments.properties();
    if arguments.instances.is_empty() {
        return entry_point(function, &properties);
    }
    let mut expanded = TokenStream::new();
    for instance in &arguments.instances {
        let instance = instances::entry_point(&function, instance)?;
        expanded.extend(entry_point(instance, &properties)?);
    }
    expanded.extend(instances::generic_part(function));
    Ok(expanded)
}

/// One entry point. `properties` are statements for the head of its body.
fn entry_point(function: ItemFn, properties: &TokenStream) -> syn::Result<TokenStream> {
    signature::check_name(&function.sig.ident)?;
    let Received {
        for_cpu,
        for_gpu,
        checks,
        receives,
    } = parameters::receive(&function.sig)?;
    // Not the user's braces, of which rustc would say that they are unnecessary.
    let mut body = function.block.clone();
    let place = body.brace_token.span.join();
    body.brace_token = Brace(Span::mixed_site().located_at(place));
    let name = function.sig.ident.to_string();
    let with = |signature, head: &TokenStream| ItemFn {
        sig: signature,
        block: syn::parse_quote!({ #head #properties #body }),
        ..function.clone()
    };
    // Where other kernels alone are compiled, the table of a crate may still name this one.
    let mut left_out = ItemFn {
        block: syn::parse_quote!({}),
        ..with(for_gpu.clone(), &TokenStream::new())
    };
    let is_in = quote! { any(not(cuda_kernels_named), cuda_kernel = #name) };
    left_out.attrs.push(parse_quote! { #[cfg(not(#is_in))] });
    let for_cpu = with(for_cpu, &checks);
    let mut for_gpu = with(for_gpu, &quote! { #receives #checks });
    for_gpu.attrs.push(parse_quote! { #[cfg(#is_in)] });
    Ok(quote! { ::cuda_std::__entry_point! { { #for_cpu } { #for_gpu } { #left_out } } })
}
