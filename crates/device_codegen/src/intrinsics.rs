//! One table of the functions that cuda_std declares by name, and of what they become.
//!
//! `cuda_std` declares `extern "C"` functions called `__nvvm_*`. They are calls of libNVVM's
//! intrinsics, inline PTX, or directives to this compiler (launch bounds, loop unrolling, opaque
//! values) that leave no code behind.

use crate::error::{Error, Result};
use crate::ir::{
    Attribute, Call, Callee, CastOperation, Constant, Editor, Function, FunctionType, Global,
    InlineAssembly, Instruction, Linkage, Module, Operand, Operation, Symbol, Type, Value,
};
use crate::kernel_properties::{self, Property};

/// What a call becomes.
#[derive(Clone, Copy)]
enum Lowering {
    /// An intrinsic of the same signature.
    Intrinsic(&'static str),
    /// An intrinsic of the same signature that all threads of a warp or a block must reach
    /// together.
    Convergent(&'static str),
    /// A vote: the last argument is a truth value of 32 bits, and so is the result of `all` and
    /// `any`.
    Vote(&'static str),
    /// Inline PTX, convergent: text and constraints.
    Assembly(&'static str, &'static str),
    /// Inline PTX that all threads of a warp must reach together.
    ConvergentAssembly(&'static str, &'static str),
    /// The start of the shared memory that a launch requests, aligned as the argument says.
    DynamicShared,
    /// The address in shared memory of what a generic pointer points to there.
    SharedAddress,
    /// Its argument.
    Opaque,
    /// Nothing.
    Nothing,
    /// Nothing, but it sets a property of the kernel.
    Kernel(Property),
    /// Nothing, but it marks the enclosing loop; see `unroll.rs`.
    Unroll,
}

use Lowering::{
    Assembly, Convergent, ConvergentAssembly, DynamicShared, Intrinsic, Nothing, Opaque,
    SharedAddress, Unroll, Vote,
};

const I32: Type = Type::Integer(32);
const I64: Type = Type::Integer(64);
const F32: Type = Type::Float;
const F64: Type = Type::Double;
const VOID: Type = Type::Void;
const POINTER: Type = Type::GENERIC_POINTER;

/// The function that marks a loop.
pub(crate) const UNROLL: &str = "__nvvm_unroll";

/// Returns its argument, and says that nothing writes the memory that it leads to.
pub(crate) const READ_ONLY: &str = "__nvvm_read_only";

/// The array that is the dynamic shared memory.
pub(crate) const DYNAMIC_SHARED: &str = "__nvvm_dynamic_shared_memory";

/// Name, parameters, result, lowering.
type Row = (&'static str, &'static [Type], Type, Lowering);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("__nvvm_thread_idx_x", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.tid.x")),
    ("__nvvm_thread_idx_y", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.tid.y")),
    ("__nvvm_thread_idx_z", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.tid.z")),
    ("__nvvm_block_idx_x", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.x")),
    ("__nvvm_block_idx_y", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.y")),
    ("__nvvm_block_idx_z", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.z")),
    ("__nvvm_block_dim_x", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ntid.x")),
    ("__nvvm_block_dim_y", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ntid.y")),
    ("__nvvm_block_dim_z", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.ntid.z")),
    ("__nvvm_grid_dim_x", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.x")),
    ("__nvvm_grid_dim_y", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.y")),
    ("__nvvm_grid_dim_z", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.z")),
    ("__nvvm_warp_size", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.warpsize")),
    ("__nvvm_lane_id", &[], I32, Intrinsic("llvm.nvvm.read.ptx.sreg.laneid")),

    ("__nvvm_block_barrier", &[], VOID, Convergent("llvm.nvvm.barrier0")),
    ("__nvvm_block_barrier_count", &[I32], I32, Convergent("llvm.nvvm.barrier0.popc")),
    ("__nvvm_block_barrier_and", &[I32], I32, Convergent("llvm.nvvm.barrier0.and")),
    ("__nvvm_block_barrier_or", &[I32], I32, Convergent("llvm.nvvm.barrier0.or")),

    ("__nvvm_block_fence", &[], VOID, Intrinsic("llvm.nvvm.membar.cta")),
    ("__nvvm_grid_fence", &[], VOID, Intrinsic("llvm.nvvm.membar.gl")),
    ("__nvvm_device_fence", &[], VOID, Intrinsic("llvm.nvvm.membar.gl")),
    ("__nvvm_system_fence", &[], VOID, Intrinsic("llvm.nvvm.membar.sys")),

    ("__nvvm_warp_shfl_idx_i32", &[I32, I32, I32, I32], I32, Convergent("llvm.nvvm.shfl.sync.idx.i32")),
    ("__nvvm_warp_shfl_up_i32", &[I32, I32, I32, I32], I32, Convergent("llvm.nvvm.shfl.sync.up.i32")),
    ("__nvvm_warp_shfl_down_i32", &[I32, I32, I32, I32], I32, Convergent("llvm.nvvm.shfl.sync.down.i32")),
    ("__nvvm_warp_shfl_bfly_i32", &[I32, I32, I32, I32], I32, Convergent("llvm.nvvm.shfl.sync.bfly.i32")),
    ("__nvvm_warp_vote_all", &[I32, I32], I32, Vote("llvm.nvvm.vote.all.sync")),
    ("__nvvm_warp_vote_any", &[I32, I32], I32, Vote("llvm.nvvm.vote.any.sync")),
    ("__nvvm_warp_ballot", &[I32, I32], I32, Vote("llvm.nvvm.vote.ballot.sync")),
    ("__nvvm_warp_sync", &[I32], VOID, Convergent("llvm.nvvm.bar.warp.sync")),
    ("__nvvm_active_mask", &[], I32, Assembly("activemask.b32 $0;", "=r")),
    ("__nvvm_warp_match_any_b32", &[I32, I32], I32, ConvergentAssembly("match.any.sync.b32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_match_any_b64", &[I32, I64], I32, ConvergentAssembly("match.any.sync.b64 $0, $2, $1;", "=r,r,l")),
    ("__nvvm_warp_match_all_b32", &[I32, I32], I32, ConvergentAssembly("match.all.sync.b32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_match_all_b64", &[I32, I64], I32, ConvergentAssembly("match.all.sync.b64 $0, $2, $1;", "=r,r,l")),
    ("__nvvm_warp_reduce_add", &[I32, I32], I32, ConvergentAssembly("redux.sync.add.u32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_min_u32", &[I32, I32], I32, ConvergentAssembly("redux.sync.min.u32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_max_u32", &[I32, I32], I32, ConvergentAssembly("redux.sync.max.u32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_min_i32", &[I32, I32], I32, ConvergentAssembly("redux.sync.min.s32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_max_i32", &[I32, I32], I32, ConvergentAssembly("redux.sync.max.s32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_and", &[I32, I32], I32, ConvergentAssembly("redux.sync.and.b32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_or", &[I32, I32], I32, ConvergentAssembly("redux.sync.or.b32 $0, $2, $1;", "=r,r,r")),
    ("__nvvm_warp_reduce_xor", &[I32, I32], I32, ConvergentAssembly("redux.sync.xor.b32 $0, $2, $1;", "=r,r,r")),

    ("__nvvm_sqrt_f32", &[F32], F32, Intrinsic("llvm.sqrt.f32")),
    ("__nvvm_sqrt_f64", &[F64], F64, Intrinsic("llvm.sqrt.f64")),
    ("__nvvm_fabs_f32", &[F32], F32, Intrinsic("llvm.fabs.f32")),
    ("__nvvm_fabs_f64", &[F64], F64, Intrinsic("llvm.fabs.f64")),
    ("__nvvm_floor_f32", &[F32], F32, Intrinsic("llvm.floor.f32")),
    ("__nvvm_floor_f64", &[F64], F64, Intrinsic("llvm.floor.f64")),
    ("__nvvm_ceil_f32", &[F32], F32, Intrinsic("llvm.ceil.f32")),
    ("__nvvm_ceil_f64", &[F64], F64, Intrinsic("llvm.ceil.f64")),
    ("__nvvm_trunc_f32", &[F32], F32, Intrinsic("llvm.trunc.f32")),
    ("__nvvm_trunc_f64", &[F64], F64, Intrinsic("llvm.trunc.f64")),
    ("__nvvm_rint_f32", &[F32], F32, Intrinsic("llvm.rint.f32")),
    ("__nvvm_rint_f64", &[F64], F64, Intrinsic("llvm.rint.f64")),
    ("__nvvm_fma_f32", &[F32, F32, F32], F32, Intrinsic("llvm.fma.f32")),
    ("__nvvm_fma_f64", &[F64, F64, F64], F64, Intrinsic("llvm.fma.f64")),
    ("__nvvm_fmin_f32", &[F32, F32], F32, Intrinsic("llvm.minnum.f32")),
    ("__nvvm_fmin_f64", &[F64, F64], F64, Intrinsic("llvm.minnum.f64")),
    ("__nvvm_fmax_f32", &[F32, F32], F32, Intrinsic("llvm.maxnum.f32")),
    ("__nvvm_fmax_f64", &[F64, F64], F64, Intrinsic("llvm.maxnum.f64")),
    ("__nvvm_copysign_f32", &[F32, F32], F32, Intrinsic("llvm.copysign.f32")),
    ("__nvvm_copysign_f64", &[F64, F64], F64, Intrinsic("llvm.copysign.f64")),

    ("__nvvm_trap", &[], VOID, Intrinsic("llvm.trap")),
    ("__nvvm_exit", &[], VOID, Assembly("exit;", "")),
    ("__nvvm_nanosleep", &[I32], VOID, Assembly("nanosleep.u32 $0;", "r")),
    ("__nvvm_breakpoint", &[], VOID, Assembly("brkpt;", "")),
    ("__nvvm_clock", &[], I64, Assembly("mov.u64 $0, %clock64;", "=l")),
    ("__nvvm_dynamic_smem_size", &[], I32, Assembly("mov.u32 $0, %dynamic_smem_size;", "=r")),
    ("__nvvm_total_smem_size", &[], I32, Assembly("mov.u32 $0, %total_smem_size;", "=r")),

    ("__nvvm_is_global", &[POINTER], I32, Assembly("{ .reg .pred p; isspacep.global p, $1; selp.u32 $0, 1, 0, p; }", "=r,l")),
    ("__nvvm_is_shared", &[POINTER], I32, Assembly("{ .reg .pred p; isspacep.shared p, $1; selp.u32 $0, 1, 0, p; }", "=r,l")),
    ("__nvvm_is_constant", &[POINTER], I32, Assembly("{ .reg .pred p; isspacep.const p, $1; selp.u32 $0, 1, 0, p; }", "=r,l")),
    ("__nvvm_is_local", &[POINTER], I32, Assembly("{ .reg .pred p; isspacep.local p, $1; selp.u32 $0, 1, 0, p; }", "=r,l")),
    ("__nvvm_to_global", &[POINTER], POINTER, Assembly("cvta.to.global.u64 $0, $1;", "=l,l")),
    ("__nvvm_to_shared", &[POINTER], POINTER, Assembly("cvta.to.shared.u64 $0, $1;", "=l,l")),
    ("__nvvm_to_constant", &[POINTER], POINTER, Assembly("cvta.to.const.u64 $0, $1;", "=l,l")),
    ("__nvvm_to_local", &[POINTER], POINTER, Assembly("cvta.to.local.u64 $0, $1;", "=l,l")),
    ("__nvvm_from_global", &[POINTER], POINTER, Assembly("cvta.global.u64 $0, $1;", "=l,l")),
    ("__nvvm_from_shared", &[POINTER], POINTER, Assembly("cvta.shared.u64 $0, $1;", "=l,l")),
    ("__nvvm_from_constant", &[POINTER], POINTER, Assembly("cvta.const.u64 $0, $1;", "=l,l")),
    ("__nvvm_from_local", &[POINTER], POINTER, Assembly("cvta.local.u64 $0, $1;", "=l,l")),

    ("__nvvm_dynamic_shared", &[I32], POINTER, DynamicShared),
    ("__nvvm_shared_address", &[POINTER], I32, SharedAddress),
    ("__nvvm_opaque_u32", &[I32], I32, Opaque),
    ("__nvvm_opaque_u64", &[I64], I64, Opaque),
    ("__nvvm_launch_bounds", &[I32, I32], VOID, Lowering::Kernel(Property::LaunchBounds)),
    ("__nvvm_max_registers", &[I32], VOID, Lowering::Kernel(Property::MaxRegisters)),
    ("__nvvm_cluster_dim", &[I32, I32, I32], VOID, Lowering::Kernel(Property::ClusterDim)),
    ("__nvvm_by_value", &[POINTER, I64, I64], VOID, Lowering::Kernel(Property::ByValue)),
    ("__nvvm_grid_constant", &[POINTER, I64, I64], VOID, Lowering::Kernel(Property::GridConstant)),
    (READ_ONLY, &[POINTER], POINTER, Opaque),
    (UNROLL, &[I32], VOID, Unroll),
];

/// rustc calls it before every allocation, so that a program without an allocator does not link.
/// Its symbol has more before and after this.
static ALLOCATOR_MARK: Row = ("___rust_no_alloc_shim_is_unstable", &[], VOID, Nothing);

/// Functions that libNVVM's output may leave to the driver.
const DEVICE_RUNTIME: &[&str] = &["vprintf", "__assertfail", "malloc", "free"];

/// The prefix of libdevice's functions.
const LIBDEVICE_PREFIX: &str = "__nv_";

/// Whether the device side defines the symbol without the kernel's help.
pub(crate) fn is_offered(symbol: &Symbol) -> bool {
    row(symbol).is_some()
        || symbol.starts_with("llvm.")
        || is_libdevice(symbol)
        || DEVICE_RUNTIME.contains(&&**symbol)
}

/// Whether the symbol is one of libdevice's.
pub(crate) fn is_libdevice(symbol: &Symbol) -> bool {
    symbol.starts_with(LIBDEVICE_PREFIX)
}

/// Whether the threads of a warp or a block must reach it together.
pub(crate) fn is_convergent(symbol: &Symbol) -> bool {
    matches!(
        row(symbol),
        Some((.., Convergent(_) | ConvergentAssembly(..) | Vote(_)))
    )
}

fn row(symbol: &str) -> Option<&'static Row> {
    if symbol.contains(ALLOCATOR_MARK.0) {
        return Some(&ALLOCATOR_MARK);
    }
    TABLE.iter().find(|(name, ..)| *name == symbol)
}

/// Replaces every call of the table's functions, except [`UNROLL`]'s.
pub(crate) fn lower_intrinsics(module: &mut Module) -> Result<()> {
    let mut dynamic_shared = None;
    for function in module.functions.values_mut() {
        let mut opaque = Vec::new();
        for block in 0..function.blocks.len() {
            let instructions = std::mem::take(&mut function.blocks[block].instructions);
            let mut editor = Editor::new(function);
            for mut instruction in instructions {
                let Some(row) = called_row(&instruction) else {
                    editor.push(instruction);
                    continue;
                };
                check_signature(editor.function, &instruction, row)?;
                (editor.line, editor.source) = (instruction.line, instruction.source);
                match row.3 {
                    Intrinsic(name) => rename(&mut instruction, name, false),
                    Convergent(name) => rename(&mut instruction, name, true),
                    Assembly(text, constraints) | ConvergentAssembly(text, constraints) => {
                        assemble(&mut instruction, text, constraints);
                    }
                    Unroll => {}
                    Vote(name) => {
                        vote(&mut editor, instruction, name);
                        continue;
                    }
                    SharedAddress => {
                        shared_address(&mut editor, &instruction);
                        continue;
                    }
                    DynamicShared => {
                        let align = dynamic_shared_alignment(editor.function, &instruction)?;
                        dynamic_shared = dynamic_shared.max(Some(align));
                        let start = Constant::Symbol(DYNAMIC_SHARED.into());
                        opaque.extend(instruction.result.map(|id| (id, Value::Constant(start))));
                        continue;
                    }
                    Opaque => {
                        let argument = arguments(&instruction).first().cloned();
                        opaque.extend(instruction.result.zip(argument));
                        continue;
                    }
                    Nothing => continue,
                    Lowering::Kernel(property) => {
                        let (arguments, line) = (arguments(&instruction), instruction.line);
                        kernel_properties::set(editor.function, property, arguments, line)?;
                        continue;
                    }
                }
                editor.push(instruction);
            }
            let lowered = editor.finish();
            function.blocks[block].instructions = lowered;
        }
        function.substitute(&opaque);
    }
    if let Some(align) = dynamic_shared {
        declare_dynamic_shared(module, align)?;
    }
    kernel_properties::check_calls(module)?;
    check_not_taken(module)
}

fn called_row(instruction: &Instruction) -> Option<&'static Row> {
    row(instruction.operation.call()?.symbol()?)
}

fn arguments(instruction: &Instruction) -> &[Value] {
    let call = instruction.operation.call();
    call.map_or(&[], |call| &call.arguments)
}

fn check_signature(function: &Function, instruction: &Instruction, row: &Row) -> Result<()> {
    let (name, parameters, result, _) = row;
    match &instruction.operation {
        Operation::Call(call) if call.ty.parameters == *parameters && call.ty.result == *result => {
            Ok(())
        }
        _ => {
            let parameters: Vec<String> = parameters.iter().map(Type::to_string).collect();
            Err(Error::new(
                &function.location_of(instruction.line),
                format!(
                    "`{name}` must be declared with parameters ({}) and result {result}",
                    parameters.join(", ")
                ),
            ))
        }
    }
}

fn rename(instruction: &mut Instruction, name: &str, convergent: bool) {
    if let Operation::Call(call) = &mut instruction.operation {
        call.callee = Callee::Symbol(name.into());
        forget_attributes(call);
        if convergent {
            call.attributes.push(Attribute::flag("convergent"));
        }
    }
}

/// rustc's attributes are about an unknown `extern` function.
fn forget_attributes(call: &mut Call) {
    call.attributes.clear();
    call.argument_attributes.iter_mut().for_each(Vec::clear);
}

fn assemble(instruction: &mut Instruction, text: &str, constraints: &str) {
    if let Operation::Call(call) = &mut instruction.operation {
        call.callee = Callee::Assembly(InlineAssembly {
            side_effect: true,
            text: text.as_bytes().to_vec(),
            constraints: constraints.to_owned(),
        });
        forget_attributes(call);
        call.attributes.push(Attribute::flag("convergent"));
    }
}

/// `vote(mask, predicate)` as LLVM has it: the predicate is an `i1`, and so is what `all` and
/// `any` return.
fn vote(editor: &mut Editor<'_>, instruction: Instruction, name: &str) {
    let Operation::Call(mut call) = instruction.operation else {
        return;
    };
    if let [_, truth] = call.arguments.as_mut_slice() {
        *truth = editor.compare("ne", &I32, truth, &Value::integer(0));
    }
    forget_attributes(&mut call);
    call.attributes.push(Attribute::flag("convergent"));
    call.callee = Callee::Symbol(name.into());
    let returns_mask = name.contains("ballot");
    call.ty = FunctionType {
        result: if returns_mask { I32 } else { Type::BOOL },
        parameters: vec![I32, Type::BOOL],
    };
    let call = Operation::Call(call);
    let voted = match returns_mask {
        true => call,
        false => {
            let truth = Operand::new(Type::BOOL, editor.value(Type::BOOL, call));
            Operation::cast(CastOperation::ZeroExtend, truth, I32)
        }
    };
    editor.define(instruction.result, voted);
}

/// A generic pointer's address in shared memory, as 32 bits. It is written as casts, which
/// libNVVM traces back to the array that the pointer came from: only the array's address and an
/// offset remain.
fn shared_address(editor: &mut Editor<'_>, instruction: &Instruction) {
    let Some(pointer) = arguments(instruction).first() else {
        return;
    };
    let shared = Type::Pointer(crate::address_space::SHARED);
    let narrowed = editor.cast(CastOperation::AddressSpaceCast, &POINTER, pointer, &shared);
    let address = Operand::new(shared, narrowed);
    let cast = Operation::cast(CastOperation::PointerToInteger, address, I32);
    editor.define(instruction.result, cast);
}

fn dynamic_shared_alignment(function: &Function, instruction: &Instruction) -> Result<u64> {
    let align = arguments(instruction).first().and_then(Value::as_integer);
    match align.and_then(|align| u64::try_from(align).ok()) {
        Some(align) if align.is_power_of_two() => Ok(align),
        _ => Err(Error::new(
            &function.location_of(instruction.line),
            "the alignment of dynamic shared memory must be a constant power of two",
        )),
    }
}

/// Declares the array. All kernels of the module have the same one, at the greatest alignment
/// that any of them requires: its address is then the same in each function that a kernel calls.
fn declare_dynamic_shared(module: &mut Module, align: u64) -> Result<()> {
    let Some(location) = module.functions.values().next().map(|f| f.location.clone()) else {
        return Ok(());
    };
    let global = Global {
        location: crate::error::Location {
            function: None,
            ..location
        },
        linkage: Linkage::Strong,
        is_constant: false,
        ty: Type::Array(0, Type::Integer(8).into()),
        initializer: None,
        section: Some(crate::address_space::SHARED_SECTION.to_owned()),
        align: Some(align),
        address_space: 0,
    };
    match module.globals.insert(DYNAMIC_SHARED.into(), global) {
        None => Ok(()),
        Some(other) => Err(Error::new(
            &other.location,
            format!("the name `{DYNAMIC_SHARED}` is taken; rename the static"),
        )),
    }
}

/// The functions of the table have no address.
fn check_not_taken(module: &Module) -> Result<()> {
    for function in module.functions.values() {
        let is_own = |symbol: &Symbol| row(symbol).is_some() && **symbol != *UNROLL;
        let mut symbols = function.symbols().into_iter();
        if let Some((symbol, line)) = symbols.find(|(symbol, _)| is_own(symbol)) {
            return Err(Error::new(
                &function.location_of(line),
                format!("`{symbol}` has no address; call it, or wrap it in a function of your own"),
            ));
        }
    }
    Ok(())
}
