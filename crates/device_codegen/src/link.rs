//! Merges several modules into one and keeps only what kernels reach.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::address_space::SHARED;
use crate::error::{Error, Location, Result, demangle};
use crate::intrinsics;
use crate::ir::{Constant, Function, Global, Kernel, Linkage, MetadataItem, Module, Symbol, Type};

/// The section that `#[kernel]` puts a function into.
const KERNEL_SECTION: &str = ".nvvm.kernel";

/// The section that `#[externally_visible]` puts a function into.
const VISIBLE_SECTION: &str = ".nvvm.visible";

/// Merges modules by symbol name. Symbols local to a module are renamed where another module has
/// the name too.
pub(crate) fn link(modules: Vec<Module>) -> Result<Module> {
    let mut occurrences: HashMap<Symbol, usize> = HashMap::new();
    for module in &modules {
        for symbol in module.globals.keys().chain(module.functions.keys()) {
            *occurrences.entry(symbol.clone()).or_default() += 1;
        }
    }
    let mut linked = Module::default();
    for (position, mut module) in modules.into_iter().enumerate() {
        rename_locals(&mut module, position, &occurrences);
        let offset = linked.next_metadata();
        shift_metadata(&mut module, offset);
        linked.metadata.append(&mut module.metadata);
        linked.lines.append(&mut module.lines);
        for (symbol, global) in module.globals {
            merge_global(&mut linked, symbol, global)?;
        }
        for (symbol, function) in module.functions {
            merge_function(&mut linked, symbol, function)?;
        }
    }
    // An intrinsic is declared by its calls: rewriting them changes its name and type.
    linked
        .functions
        .retain(|symbol, function| !(function.is_declaration() && symbol.starts_with("llvm.")));
    mark_kernels(&mut linked)?;
    Ok(linked)
}

/// Lets the host see each variable with a name of its own (`#[no_mangle]`): it may set it before
/// a launch. Otherwise libNVVM would take the initial value of one that no kernel writes for its
/// only one. Shared memory is a block's own.
pub(crate) fn export_variables(module: &mut Module) {
    for (symbol, global) in &mut module.globals {
        let is_mangled = ["_ZN", "_R"]
            .iter()
            .any(|prefix| symbol.starts_with(prefix));
        if global.linkage == Linkage::Strong
            && global.initializer.is_some()
            && !global.is_constant
            && global.address_space != SHARED
            && !is_mangled
        {
            global.linkage = Linkage::Exported;
        }
    }
}

fn rename_locals(module: &mut Module, position: usize, occurrences: &HashMap<Symbol, usize>) {
    let is_shared = |symbol: &Symbol| occurrences.get(symbol).is_some_and(|count| *count > 1);
    let globals = module
        .globals
        .iter()
        .filter(|(_, global)| global.linkage == Linkage::Local)
        .map(|(symbol, _)| symbol);
    let functions = module
        .functions
        .iter()
        .filter(|(_, function)| function.linkage == Linkage::Local)
        .map(|(symbol, _)| symbol);
    let renamed: BTreeMap<Symbol, Symbol> = globals
        .chain(functions)
        .filter(|symbol| is_shared(symbol))
        .map(|symbol| {
            let mut name = format!("{symbol}.{position}");
            while occurrences.contains_key(name.as_str()) {
                name.push('_');
            }
            (symbol.clone(), name.into())
        })
        .collect();
    module.rename(&renamed);
}

/// Moves a module's metadata numbers behind those that are taken.
fn shift_metadata(module: &mut Module, offset: u32) {
    if offset == 0 {
        return;
    }
    module.lines.shift(offset);
    let shift = |number: &mut u32| *number = number.saturating_add(offset);
    module.metadata = std::mem::take(&mut module.metadata)
        .into_iter()
        .map(|(number, mut node)| {
            for item in &mut node.items {
                if let MetadataItem::Node(number) = item {
                    shift(number);
                }
            }
            (number.saturating_add(offset), node)
        })
        .collect();
    for function in module.functions.values_mut() {
        function.scope.iter_mut().for_each(shift);
        for (metadata, source) in function.attachments_mut() {
            metadata.iter_mut().for_each(|(_, number)| shift(number));
            source.iter_mut().for_each(shift);
        }
    }
}

fn merge_global(linked: &mut Module, symbol: Symbol, global: Global) -> Result<()> {
    if linked.functions.contains_key(&symbol) {
        return Err(clash(&symbol, &global.location));
    }
    match linked.globals.get(&symbol) {
        Some(_) if global.initializer.is_none() => return Ok(()),
        Some(other) if other.initializer.is_some() => {
            if other.linkage != Linkage::Weak && global.linkage != Linkage::Weak {
                return Err(clash(&symbol, &global.location));
            }
            if global.linkage == Linkage::Weak {
                return Ok(());
            }
        }
        _ => {}
    }
    linked.globals.insert(symbol, global);
    Ok(())
}

fn merge_function(linked: &mut Module, symbol: Symbol, function: Function) -> Result<()> {
    if linked.globals.contains_key(&symbol) {
        return Err(clash(&symbol, &function.location));
    }
    match linked.functions.get(&symbol) {
        Some(_) if function.is_declaration() => return Ok(()),
        Some(other) if !other.is_declaration() => {
            if other.linkage != Linkage::Weak && function.linkage != Linkage::Weak {
                return Err(clash(&symbol, &function.location));
            }
            if function.linkage == Linkage::Weak {
                return Ok(());
            }
        }
        _ => {}
    }
    linked.functions.insert(symbol, function);
    Ok(())
}

fn clash(symbol: &Symbol, location: &crate::error::Location) -> Error {
    let name = demangle(symbol);
    Error::new(
        location,
        format!("`{name}` is defined in two modules; rename one of the two"),
    )
}

fn mark_kernels(module: &mut Module) -> Result<()> {
    for function in module.functions.values_mut() {
        let section = function.section.take();
        if function.is_declaration() {
            continue;
        }
        function.is_visible = section.as_deref() == Some(VISIBLE_SECTION);
        if section.as_deref() != Some(KERNEL_SECTION) {
            continue;
        }
        if function.ty.result != Type::Void {
            return Err(Error::new(
                &function.location,
                "a kernel cannot return a value; write it through a pointer parameter",
            ));
        }
        function.kernel = Some(Kernel::default());
    }
    Ok(())
}

/// Drops all functions and globals that neither kernels nor visible functions reach.
pub(crate) fn keep_reachable(module: &mut Module) {
    let mut reached: BTreeSet<Symbol> = BTreeSet::new();
    let mut waiting: Vec<Symbol> = module
        .functions
        .iter()
        .filter(|(_, function)| function.kernel.is_some() || function.is_visible)
        .map(|(symbol, _)| symbol.clone())
        .collect();
    while let Some(symbol) = waiting.pop() {
        if !reached.insert(symbol.clone()) {
            continue;
        }
        if let Some(function) = module.functions.get(&symbol) {
            let symbols = function.symbols().into_iter();
            waiting.extend(symbols.map(|(symbol, _)| symbol.clone()));
        }
        if let Some(initializer) = module
            .globals
            .get(&symbol)
            .and_then(|g| g.initializer.as_ref())
        {
            waiting.extend(initializer.symbols().into_iter().cloned());
        }
    }
    module
        .functions
        .retain(|symbol, _| reached.contains(symbol));
    module.globals.retain(|symbol, _| reached.contains(symbol));
}

/// Checks that everything that remains is defined, or is something that the device provides.
pub(crate) fn check_defined(module: &Module) -> Result<()> {
    let is_missing = |symbol: &Symbol| match module.functions.get(symbol) {
        Some(function) => function.is_declaration() && !intrinsics::is_offered(symbol),
        None => match module.globals.get(symbol) {
            Some(global) => global.initializer.is_none(),
            None => !intrinsics::is_offered(symbol),
        },
    };
    let undefined = |location: &Location, verb: &str, symbol: &Symbol| {
        let path = demangle(symbol);
        let problem = format!(
            "{verb} `{path}`, which is not defined for the device. {}",
            way_round(&path)
        );
        Error::new(location, problem)
    };
    for (name, function) in &module.functions {
        let mut symbols = function.symbols().into_iter();
        if let Some((symbol, line)) = symbols.find(|(symbol, _)| is_missing(symbol)) {
            let error = undefined(&function.location_of(line), "it uses", symbol);
            return Err(error.with_calls(calls_of(module, name)));
        }
    }
    for (name, global) in &module.globals {
        let mut symbols = global.initializer.iter().flat_map(Constant::symbols);
        if let Some(symbol) = symbols.find(|symbol| is_missing(symbol)) {
            let verb = format!("the static `{}` refers to", demangle(name));
            let error = undefined(&global.location, &verb, symbol);
            return Err(error.with_calls(calls_of(module, name)));
        }
    }
    Ok(())
}

const FORMATTING: &str = "Texts are not formatted in a kernel: `cuda_std::println!` has its numbers formatted by the \
    driver, and a number's digits can be written to bytes by a loop";

/// What to do without functions of Rust's own libraries, by a part of their paths.
const WAYS_ROUND: &[(&str, &str)] = &[
    (
        "__rust_alloc",
        "The device's heap is `cuda_std`'s, which the crate must use; `sort_unstable` sorts without a heap, and an \
         array needs none",
    ),
    (
        "core::str::pattern::StrSearcher",
        "A `char` can be searched for, and a text as bytes: `a.as_bytes().windows(n).position(|w| w == b)`",
    ),
    (
        "core::unicode::",
        "Use functions of ASCII, such as `trim_ascii`, `split_ascii_whitespace` and `is_ascii_alphabetic`",
    ),
    (
        "FromStr>::from_str",
        "Integers can be parsed in a kernel; parse floats on the host",
    ),
    (
        "::from_utf8",
        "Work on the bytes, or check them on the host and call `from_utf8_unchecked`",
    ),
    ("core::fmt::", FORMATTING),
    // Of an integer: `<u32>::_fmt`.
    (">::_fmt", FORMATTING),
];

fn way_round(path: &str) -> &'static str {
    match WAYS_ROUND.iter().find(|(part, _)| path.contains(part)) {
        Some((_, way)) => way,
        None => {
            "Device code may call `#[inline]` and generic functions, functions of its own crate, cuda_std, and \
             libdevice (`__nv_*`)"
        }
    }
}

/// Calls of a function, and of the function around the call, up to a kernel: as few as possible. A
/// table of methods in between has no place.
fn calls_of(module: &Module, symbol: &Symbol) -> Vec<Location> {
    let kernels = module.functions.iter();
    let kernels = kernels.filter(|(_, function)| function.kernel.is_some() || function.is_visible);
    let mut waiting: VecDeque<&Symbol> = kernels.map(|(name, _)| name).collect();
    let mut callers: BTreeMap<&Symbol, Option<(&Symbol, Option<Location>)>> =
        waiting.iter().map(|name| (*name, None)).collect();
    while let Some(name) = waiting.pop_front() {
        let mut reach = |called, location| {
            callers.entry(called).or_insert_with(|| {
                waiting.push_back(called);
                Some((name, location))
            });
        };
        if let Some(function) = module.functions.get(name) {
            for (called, line) in function.symbols() {
                reach(called, Some(function.location_of(line)));
            }
        }
        let global = module.globals.get(name);
        if let Some(initializer) = global.and_then(|global| global.initializer.as_ref()) {
            for called in initializer.symbols() {
                reach(called, None);
            }
        }
    }
    let caller_of = |name: &Symbol| callers.get(name)?.as_ref();
    let steps = std::iter::successors(caller_of(symbol), |(caller, _)| caller_of(caller));
    steps.filter_map(|(_, location)| location.clone()).collect()
}
