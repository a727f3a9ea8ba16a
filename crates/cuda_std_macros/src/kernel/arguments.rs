//! The arguments of `#[kernel(..)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, Path, Token, parenthesized};

/// All of them, each at most once.
#[derive(Default)]
pub struct Arguments {
    max_threads: Option<Expr>,
    min_blocks: Option<Expr>,
    max_registers: Option<Expr>,
    /// Blocks along x, y and z.
    cluster_dim: Option<Vec<Expr>>,
    pub instances: Vec<Instance>,
}

/// `add_f32 = add::<f32>`
pub struct Instance {
    /// The entry point.
    pub name: Ident,
    /// The generic function, with its arguments.
    pub path: Path,
}

impl Arguments {
    pub fn parse(arguments: TokenStream) -> syn::Result<Self> {
        let parser = Punctuated::<Argument, Token![,]>::parse_terminated;
        let mut all = Self::default();
        for Argument { name, value } in parser.parse2(arguments)? {
            let (place, value) = match value {
                Value::Instances(instances) if all.instances.is_empty() => {
                    all.instances = instances;
                    continue;
                }
                Value::ClusterDim(extents) if all.cluster_dim.is_none() => {
                    all.cluster_dim = Some(extents);
                    continue;
                }
                Value::MaxThreads(value) => (&mut all.max_threads, value),
                Value::MinBlocks(value) => (&mut all.min_blocks, value),
                Value::MaxRegisters(value) => (&mut all.max_registers, value),
                Value::Instances(_) | Value::ClusterDim(_) => return Err(given_twice(&name)),
            };
            if place.replace(value).is_some() {
                return Err(given_twice(&name));
            }
            if all.min_blocks.is_some() && all.max_registers.is_some() {
                return Err(Error::new(
                    name.span(),
                    "`min_blocks` and `maxnreg` both limit the registers of a thread; give one of them",
                ));
            }
        }
        Ok(all)
    }

    /// Statements that give the kernel its properties.
    pub fn properties(&self) -> TokenStream {
        let mut statements = TokenStream::new();
        if self.max_threads.is_some() || self.min_blocks.is_some() {
            let [max_threads, min_blocks] = [&self.max_threads, &self.min_blocks].map(constant);
            statements.extend(quote! { ::cuda_std::launch_bounds::<#max_threads, #min_blocks>(); });
        }
        if self.max_registers.is_some() {
            let registers = constant(&self.max_registers);
            statements.extend(quote! { ::cuda_std::__max_registers::<#registers>(); });
        }
        if let Some(extents) = &self.cluster_dim {
            statements.extend(quote! { ::cuda_std::__cluster_dim::<#({ #extents }),*>(); });
        }
        statements
    }
}

/// A number as a generic argument; 0 if it is not given.
fn constant(value: &Option<Expr>) -> TokenStream {
    match value {
        Some(value) => quote! { { #value } },
        None => quote! { 0 },
    }
}

fn given_twice(name: &Ident) -> Error {
    Error::new(name.span(), format!("`{name}` is given twice"))
}

/// One argument.
struct Argument {
    name: Ident,
    value: Value,
}

enum Value {
    MaxThreads(Expr),
    MinBlocks(Expr),
    MaxRegisters(Expr),
    ClusterDim(Vec<Expr>),
    Instances(Vec<Instance>),
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let number = |value: fn(Expr) -> Value| {
            input.parse::<Token![=]>()?;
            input.parse().map(value)
        };
        let value = match name.to_string().as_str() {
            "max_threads" => number(Value::MaxThreads)?,
            "min_blocks" => number(Value::MinBlocks)?,
            "maxnreg" => number(Value::MaxRegisters)?,
            "cluster_dim" => {
                input.parse::<Token![=]>()?;
                Value::ClusterDim(extents(input.parse()?)?)
            }
            "instantiate" => {
                let list;
                parenthesized!(list in input);
                let instances = Punctuated::<Instance, Token![,]>::parse_terminated(&list)?;
                if instances.is_empty() {
                    return Err(Error::new(name.span(), "`instantiate` names no instance"));
                }
                Value::Instances(instances.into_iter().collect())
            }
            _ => {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "#[kernel] has no argument `{name}`; it takes `max_threads`, `min_blocks`, `maxnreg`, \
                         `cluster_dim` and `instantiate`"
                    ),
                ));
            }
        };
        Ok(Self { name, value })
    }
}

/// The three expressions of `(2, 1, 1)`.
fn extents(value: Expr) -> syn::Result<Vec<Expr>> {
    match value {
        Expr::Tuple(tuple) if tuple.elems.len() == 3 => Ok(tuple.elems.into_iter().collect()),
        other => Err(Error::new_spanned(
            other,
            "`cluster_dim` takes the blocks of a cluster along x, y and z, such as `(2, 1, 1)`",
        )),
    }
}

impl Parse for Instance {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let path = input.parse()?;
        Ok(Self { name, path })
    }
}
