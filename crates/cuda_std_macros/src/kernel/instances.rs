//! Entry points of a generic function: one for each instance that is named.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, GenericParam, Ident, ItemFn, PathArguments, PathSegment, Type,
    WherePredicate,
};

use super::arguments::Instance;
use super::parameters;

/// The generic function itself, which its entry points call.
pub fn generic_part(mut function: ItemFn) -> TokenStream {
    for parameter in &mut function.sig.inputs {
        if let FnArg::Typed(parameter) = parameter {
            parameter.attrs = parameters::without_grid_constant(&parameter.attrs);
        }
    }
    let is_inline = |path: &syn::Path| path.is_ident("inline");
    let inline = match function.attrs.iter().any(|one| is_inline(one.path())) {
        true => None,
        false => Some(quote! { #[inline(always)] }),
    };
    quote! { #inline #function }
}

/// The function, with the types of its parameters as the instance has them, that calls the
/// generic one.
pub fn entry_point(generic: &ItemFn, instance: &Instance) -> syn::Result<ItemFn> {
    let choices = choices(generic, instance)?;
    let mut function = generic.clone();
    function.attrs.retain(|one| !one.path().is_ident("inline"));
    // A constant in braces may now be the length of an array, where it needs none.
    let allowed = syn::parse_quote!(#[allow(unused_braces)]);
    function.attrs.push(allowed);
    let signature = &mut function.sig;
    signature.ident = instance.name.clone();
    signature.generics.params = std::mem::take(&mut signature.generics.params)
        .into_iter()
        .filter(|one| matches!(one, GenericParam::Lifetime(_)))
        .collect();
    if let Some(clause) = &mut signature.generics.where_clause {
        clause.predicates = std::mem::take(&mut clause.predicates)
            .into_iter()
            .filter(|one| matches!(one, WherePredicate::Lifetime(_)))
            .collect();
    }
    let mut names = Vec::new();
    for (position, parameter) in signature.inputs.iter_mut().enumerate() {
        if let FnArg::Typed(parameter) = parameter {
            let name = parameters::name_of(parameter, position);
            *parameter.pat = syn::parse_quote!(#name);
            *parameter.ty = chosen_type(&parameter.ty, &choices)?;
            names.push(name);
        }
    }
    let path = &instance.path;
    function.block = syn::parse_quote!({ unsafe { #path(#(#names),*) } });
    Ok(function)
}

/// Names of the generic parameters, each with what the instance gives for it.
fn choices(generic: &ItemFn, instance: &Instance) -> syn::Result<Vec<(Ident, TokenStream)>> {
    let name = &generic.sig.ident;
    let segments: Vec<&PathSegment> = instance.path.segments.iter().collect();
    let [
        PathSegment {
            ident,
            arguments: PathArguments::AngleBracketed(given),
            ..
        },
    ] = segments[..]
    else {
        return Err(Error::new(
            instance.path.span(),
            format!("an instance is the function with its arguments, such as `{name}::<f32>`"),
        ));
    };
    if ident != name {
        return Err(Error::new(
            ident.span(),
            format!("an instance of `{name}` begins with its name"),
        ));
    }
    let given = given.args.iter();
    let given = given.filter(|one| !matches!(one, GenericArgument::Lifetime(_)));
    let given: Vec<TokenStream> = given.map(ToTokens::to_token_stream).collect();
    let parameters = generic.sig.generics.params.iter();
    let parameters = parameters.filter_map(|one| match one {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(one) => Some(one.ident.clone()),
        GenericParam::Const(one) => Some(one.ident.clone()),
    });
    let parameters: Vec<Ident> = parameters.collect();
    if parameters.len() != given.len() {
        return Err(Error::new(
            instance.path.span(),
            format!(
                "`{name}` has {} generic parameters, and this instance chooses {}",
                parameters.len(),
                given.len()
            ),
        ));
    }
    Ok(parameters.into_iter().zip(given).collect())
}

/// The type with each generic parameter replaced by what was chosen for it.
fn chosen_type(ty: &Type, choices: &[(Ident, TokenStream)]) -> syn::Result<Type> {
    let tokens = replaced(ty.to_token_stream(), choices)?;
    syn::parse2(tokens).map_err(|error| Error::new(ty.span(), error))
}

fn replaced(tokens: TokenStream, choices: &[(Ident, TokenStream)]) -> syn::Result<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_colons = |at: usize| {
        let is_colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
        is_colon(at) && is_colon(at + 1)
    };
    let mut out = TokenStream::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(name) => {
                let is_in_a_path = at >= 2 && is_colons(at - 2);
                let choice = choices.iter().find(|(parameter, _)| parameter == name);
                match choice {
                    Some(_) if is_colons(at + 1) => {
                        return Err(Error::new(
                            name.span(),
                            format!("name the trait as well: `<{name} as Trait>::..`"),
                        ));
                    }
                    Some((_, chosen)) if !is_in_a_path => out.extend(chosen.clone()),
                    _ => out.extend([token.clone()]),
                }
            }
            TokenTree::Group(group) => {
                let inner = replaced(group.stream(), choices)?;
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            _ => out.extend([token.clone()]),
        }
    }
    Ok(out)
}
