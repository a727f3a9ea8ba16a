//! Calls: work-item functions, barriers and LLVM's intrinsics by name; other functions of the
//! module.

use super::body::Body;
use super::expression::{Expression, rank};
use super::function::Refusal;
use super::shuffle::own_value;
use super::types::signed_name;
use crate::error::{Result, demangle};
use crate::ir::{Call, Callee, LocalId, Symbol, Type, Value};
use crate::panics;

/// Registers of a thread, and what OpenCL C calls them.
const WORK_ITEM: &[(&str, &str)] = &[
    ("tid", "get_local_id"),
    ("ctaid", "get_group_id"),
    ("ntid", "get_local_size"),
    ("nctaid", "get_num_groups"),
];

/// CUDA numbers the lanes of a warp along x, then y, then z, as `cuda_std`'s simulator does.
const LANE: &str = "((uint)get_local_id(0) + (uint)get_local_size(0) * ((uint)get_local_id(1) + \
    (uint)get_local_size(1) * (uint)get_local_id(2))) & 31u";

/// The barrier of a block: it orders the accesses to both kinds of memory that work-items share.
const BARRIER: &str = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";

/// Functions of floats that are exact, or correctly rounded, in both languages.
const EXACT: &[(&str, &str)] = &[
    ("llvm.ceil.", "ceil"),
    ("llvm.floor.", "floor"),
    ("llvm.fma.", "fma"),
    ("llvm.maxnum.", "fmax"),
    ("llvm.minnum.", "fmin"),
    ("llvm.nvvm.fabs.", "fabs"),
    ("llvm.nvvm.round.", "rint"),
    ("llvm.nvvm.trunc.", "trunc"),
    ("__nv_fma_rn", "fma"),
    ("__nv_fmaf_rn", "fma"),
    ("__nv_fmod", "fmod"),
];

/// Functions of two integers without a sign, and of two with one.
const INTEGERS: &[(&str, &str, bool)] = &[
    ("llvm.umin.", "min", false),
    ("llvm.umax.", "max", false),
    ("llvm.smin.", "min", true),
    ("llvm.smax.", "max", true),
    ("llvm.uadd.sat.", "add_sat", false),
    ("llvm.usub.sat.", "sub_sat", false),
    ("llvm.sadd.sat.", "add_sat", true),
    ("llvm.ssub.sat.", "sub_sat", true),
];

impl Body<'_, '_> {
    pub(super) fn call(&mut self, result: Option<LocalId>, call: &Call) -> Result<()> {
        let name = match &call.callee {
            Callee::Symbol(name) => name.clone(),
            Callee::Assembly(assembly) => return self.assembly(result, assembly, call),
            Callee::Pointer(_) => {
                return Err(self.error(
                    "OpenCL C cannot call through a pointer; call the function by its name",
                ));
            }
        };
        if self.is_effect(&name, call)? {
            return Ok(());
        }
        if let Some(expression) = self.pure_call(&name, call)? {
            return match result {
                Some(id) => self.define(id, &call.ty.result, expression),
                None => Ok(()),
            };
        }
        if name.contains(".with.overflow.") {
            return self.with_overflow(result, &name, call);
        }
        let function = self.printer.module.functions.get(&name);
        match function.filter(|function| !function.is_declaration()) {
            Some(_) => self.helper(result, &name, call),
            None => Err(self.error(refused(&name))),
        }
    }

    /// Writes a call that is a statement. Returns whether it is one.
    fn is_effect(&mut self, name: &str, call: &Call) -> Result<bool> {
        match name {
            "llvm.nvvm.barrier0" => {
                self.settle()?;
                self.say_source();
                self.push(BARRIER, &[]);
            }
            "llvm.nvvm.membar.cta" => {
                self.settle()?;
                self.say_source();
                self.push(
                    "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                    &[],
                );
            }
            "llvm.nvvm.membar.gl" | "llvm.nvvm.membar.sys" => {
                self.settle()?;
                self.say_source();
                let scope = match name.ends_with("sys") {
                    true => "memory_scope_all_svm_devices",
                    false => "memory_scope_device",
                };
                self.needs.device_fences = true;
                let text = format!(
                    "atomic_work_item_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, {scope});"
                );
                self.push(text, &[]);
            }
            panics::PANIC => self.panic(call)?,
            panics::TRAP => self.trap()?,
            _ if name.starts_with("llvm.lifetime.") => {}
            _ if name.starts_with("llvm.mem") => self.memory_call(call)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn pure_call(&mut self, name: &str, call: &Call) -> Result<Option<Expression>> {
        if let Some(register) = name.strip_prefix("llvm.nvvm.read.ptx.sreg.") {
            return self.register(register).map(Some);
        }
        if let Some(value) = self.shuffle_of_own_lane(call)? {
            return Ok(Some(value));
        }
        let result = &call.ty.result;
        self.needs.note_type(result);
        let is_vector = matches!(result, Type::Vector(..));
        let mut arguments = Vec::new();
        let is_known = |prefix: &str| name.starts_with(prefix);
        let exact = EXACT.iter().find(|(known, _)| match known.ends_with('.') {
            true => is_known(known),
            false => name == *known || name == format!("{known}f"),
        });
        let integers = INTEGERS.iter().find(|(known, ..)| is_known(known));
        let others = "\
            __nv_dmul_rn __nv_fmul_rn __nv_dadd_rn __nv_fadd_rn llvm.abs. llvm.bswap. llvm.ctlz. \
            llvm.ctpop. llvm.cttz. llvm.fmuladd. llvm.fshl. llvm.fshr. llvm.scmp. llvm.sqrt. \
            llvm.ucmp.";
        if exact.is_none() && integers.is_none() && !others.split(' ').any(is_known) {
            return Ok(None);
        }
        if is_vector && exact.is_none() {
            return Err(self.error(format!(
                "`{name}` of vectors cannot be written; use it on the elements"
            )));
        }
        for (ty, value) in call.ty.parameters.iter().zip(&call.arguments) {
            arguments.push(self.value(ty, value)?);
        }
        let all: Vec<&Expression> = arguments.iter().collect();
        let first = call.ty.parameters.first().unwrap_or(&Type::Void);
        if let Some((_, function)) = exact {
            return Ok(Some(Expression::call(function, &all)));
        }
        let width = first.integer_width().unwrap_or(0);
        let unsigned = super::types::scalar_name(first).ok_or_else(|| self.no_type(first))?;
        let signed = |value: &Expression| {
            let name = format!("as_{}", signed_name(width).unwrap_or("long"));
            Expression::call(&name, &[value])
        };
        if let Some((_, function, is_signed)) = integers {
            if width == 1 {
                return Err(self.error(format!("`{name}` of truth values cannot be written")));
            }
            return Ok(Some(match is_signed {
                true => {
                    let operands: Vec<Expression> = all.iter().map(|value| signed(value)).collect();
                    let operands: Vec<&Expression> = operands.iter().collect();
                    let inner = Expression::call(function, &operands);
                    Expression::call(&format!("as_{unsigned}"), &[&inner])
                }
                false => Expression::call(function, &all),
            }));
        }
        let written = match all.as_slice() {
            [value] if is_known("llvm.sqrt.") => {
                self.needs.correct_rounding |= *first == Type::Float;
                Expression::call("sqrt", &[value])
            }
            [value] if is_known("llvm.ctpop.") => Expression::call("popcount", &[value]),
            [value] if is_known("llvm.bswap.") => {
                let (bytes, order) = match width {
                    16 => ("as_uchar2", "yx"),
                    32 => ("as_uchar4", "wzyx"),
                    64 => ("as_uchar8", "s76543210"),
                    _ => return Err(self.no_type(first)),
                };
                let text = format!("as_{unsigned}({bytes}({}).{order})", value.text);
                Expression::of(text, rank::PRIMARY, &all)
            }
            [left, right] if is_known("__nv_dmul_rn") || is_known("__nv_fmul_rn") => {
                self.rounded("*", rank::PRODUCT, first, [left, right])?
            }
            [left, right] if is_known("__nv_dadd_rn") || is_known("__nv_fadd_rn") => {
                self.rounded("+", rank::SUM, first, [left, right])?
            }
            [left, right] if is_known("llvm.ucmp.") || is_known("llvm.scmp.") => {
                let (left, right) = match is_known("llvm.scmp.") {
                    true => (signed(left), signed(right)),
                    false => ((*left).clone(), (*right).clone()),
                };
                let name = super::types::scalar_name(result).ok_or_else(|| self.no_type(result))?;
                let (left, right) = (left.at(rank::SUM), right.at(rank::SUM));
                let text = format!("({name})(({left} > {right}) - ({left} < {right}))");
                Expression::of(text, rank::UNARY, &all)
            }
            [value, _] if is_known("llvm.abs.") => Expression::call("abs", &[&signed(value)]),
            [value, _] if is_known("llvm.ctlz.") => Expression::call("clz", &[value]),
            [value, _] if is_known("llvm.cttz.") && width >= 32 => {
                // The bits below the lowest one that is set; all, if none is.
                let value = value.at(rank::UNARY);
                let text = format!("popcount(~{value} & ({value} - 1u))");
                Expression::of(text, rank::PRIMARY, &all)
            }
            [left, right, addend] if is_known("llvm.fmuladd.") => {
                let product = Expression::binary(left, "*", right, rank::PRODUCT);
                Expression::binary(&product, "+", addend, rank::SUM)
            }
            [high, low, distance] if width == 32 => {
                let (high, low) = (high.at(rank::UNARY), low.at(rank::UNARY));
                let both = format!("(((ulong){high} << 32) | (ulong){low})");
                let distance = distance.at(rank::UNARY);
                let text = match is_known("llvm.fshl.") {
                    true => format!("(uint)(({both} << ({distance} & 31u)) >> 32)"),
                    false => format!("(uint)({both} >> ({distance} & 31u))"),
                };
                Expression::of(text, rank::UNARY, &all)
            }
            _ => return Err(self.error(refused(name))),
        };
        Ok(Some(written))
    }

    /// A special register of PTX.
    fn register(&self, register: &str) -> Result<Expression> {
        if let Some((name, axis)) = register.split_once('.')
            && let Some((_, function)) = WORK_ITEM.iter().find(|(known, _)| *known == name)
        {
            let axis = match axis {
                "x" => 0,
                "y" => 1,
                _ => 2,
            };
            let text = format!("(uint){function}({axis})");
            return Ok(Expression::of(text, rank::UNARY, &[]));
        }
        match register {
            "laneid" => Ok(Expression::of(LANE.to_owned(), rank::AND, &[])),
            "warpsize" => Ok(Expression::constant("32u")),
            _ => Err(self.error(format!(
                "OpenCL C has nothing like the register `%{register}`"
            ))),
        }
    }

    /// The value, if `call` is a shuffle in which each lane reads its own.
    fn shuffle_of_own_lane(&mut self, call: &Call) -> Result<Option<Expression>> {
        match own_value(self.function, call) {
            Some(value) => self.value(&Type::Integer(32), value).map(Some),
            None => Ok(None),
        }
    }

    /// A call of a function of the module.
    fn helper(&mut self, result: Option<LocalId>, name: &Symbol, call: &Call) -> Result<()> {
        let mut spaces = Vec::new();
        let mut arguments = Vec::new();
        for (ty, value) in call.ty.parameters.iter().zip(&call.arguments) {
            spaces.push(match ty {
                Type::Pointer(_) => match value {
                    Value::Constant(crate::ir::Constant::Null) => None,
                    _ => Some(self.known_pointer(value)?),
                },
                _ => None,
            });
            arguments.push(self.value(ty, value)?);
        }
        let function =
            self.printer
                .helper(self.needs, name, &spaces)
                .map_err(|error| match error {
                    Refusal::Error(error) => error,
                    Refusal::Reason(reason) => self.error(reason),
                })?;
        for ((argument, ty), wanted) in arguments
            .iter_mut()
            .zip(&call.ty.parameters)
            .zip(&function.parameters)
        {
            if let Type::Pointer(_) = ty {
                *argument = Expression::cast(wanted, argument);
            }
        }
        let operands: Vec<&Expression> = arguments.iter().collect();
        let mut value = Expression::call(&function.name, &operands);
        self.settle()?;
        match result {
            Some(id) => {
                // It may write, so it stays where it is.
                value.loads = true;
                self.assign((id, 0), &call.ty.result, value)
            }
            None => {
                self.say_source();
                self.push(format!("{};", value.text), &[&value]);
                Ok(())
            }
        }
    }
}

/// Why a function is not called.
pub(super) fn refused(name: &str) -> String {
    let path = demangle(name);
    match name {
        _ if name.contains("shfl") => {
            "OpenCL C 1.2 has no warps whose lanes exchange values (`shfl`); exchange them through shared memory".to_owned()
        }
        _ if name.contains(".vote.") || name.contains("bar.warp") || name.contains("barrier0.") => {
            format!("OpenCL C 1.2 has nothing like `{path}`; exchange values through shared memory and `sync_threads`")
        }
        _ if name.starts_with("__nv_") => {
            format!("`{path}` of libdevice has no function of the same accuracy in OpenCL C; compute it from others")
        }
        _ => format!("OpenCL C has no function like `{path}`"),
    }
}
