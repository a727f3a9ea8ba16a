//! Calls: work-item functions, barriers and LLVM's intrinsics by name; other functions of the
//! module.

use super::body::Body;
use super::expression::{Expression, rank};
use super::types::signed_name;
use crate::error::{Result, demangle};
use crate::ir::{Call, Callee, LocalId, Type};
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
        Err(self.error(match self.printer.module.functions.get(&name) {
            Some(function) if !function.is_declaration() => format!(
                "`{}` has not been inlined into the kernel, which is to be one function of OpenCL C; mark it \
                 `#[inline(always)]`",
                demangle(&name)
            ),
            _ => refused(&name),
        }))
    }

    /// Writes a call that is a statement. Returns whether it is one.
    fn is_effect(&mut self, name: &str, call: &Call) -> Result<bool> {
        match name {
            "llvm.nvvm.barrier0" => {
                self.settle()?;
                self.say_source();
                self.push(BARRIER, &[]);
            }
            panics::PANIC => self.panic(call)?,
            panics::TRAP => self.trap()?,
            _ if name.starts_with("llvm.lifetime.") => {}
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
        let mut arguments = Vec::new();
        let is_known = |prefix: &str| name.starts_with(prefix);
        let exact = EXACT.iter().find(|(known, _)| match known.ends_with('.') {
            true => is_known(known),
            false => name == *known || name == format!("{known}f"),
        });
        let integers = INTEGERS.iter().find(|(known, ..)| is_known(known));
        let others = [
            "__nv_dmul_rn",
            "__nv_fmul_rn",
            "__nv_dadd_rn",
            "__nv_fadd_rn",
            "llvm.fmuladd.",
            "llvm.sqrt.",
        ];
        if exact.is_none() && integers.is_none() && !others.iter().any(|known| is_known(known)) {
            return Ok(None);
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
            [left, right] if is_known("__nv_dmul_rn") || is_known("__nv_fmul_rn") => {
                self.rounded("*", rank::PRODUCT, first, [left, right])?
            }
            [left, right] if is_known("__nv_dadd_rn") || is_known("__nv_fadd_rn") => {
                self.rounded("+", rank::SUM, first, [left, right])?
            }
            [left, right, addend] if is_known("llvm.fmuladd.") => {
                let product = Expression::binary(left, "*", right, rank::PRODUCT);
                Expression::binary(&product, "+", addend, rank::SUM)
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
}

/// Why a function is not called.
fn refused(name: &str) -> String {
    let path = demangle(name);
    match name {
        _ if name.contains("shfl") => {
            "OpenCL C 1.2 has no warps whose lanes exchange values (`shfl`); exchange them through shared memory".to_owned()
        }
        _ if name.contains(".vote.") || name.contains("bar.warp") || name.contains("barrier0.") => {
            format!("OpenCL C 1.2 has nothing like `{path}`; exchange values through shared memory and `sync_threads`")
        }
        _ if name.starts_with("llvm.mem") => {
            format!("`{path}` cannot be written in OpenCL C; set or copy the elements one by one")
        }
        _ if name.starts_with("__nv_") => {
            format!("`{path}` of libdevice has no function of the same accuracy in OpenCL C; compute it from others")
        }
        _ => format!("OpenCL C has no function like `{path}`"),
    }
}
