//! The kernels that the book is about.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{DataType, Kernel, Unit, Variant};
use verification::cpu::RUNGS;

/// The kernel of that name.
pub fn kernel(name: &str) -> Result<&'static Kernel, String> {
    let mut kernels = KERNELS.iter().copied();
    kernels
        .find(|kernel| kernel.name == name)
        .ok_or_else(|| format!("there is no kernel `{name}`"))
}

/// The idea of a kernel, or of a rung of the CPU's ladder, as a quotation.
pub fn idea(name: &str) -> Result<String, String> {
    let mut rungs = RUNGS.iter();
    let idea = match rungs.find(|rung| rung.name == name) {
        Some(rung) => rung.idea,
        None => kernel(name)?.idea,
    };
    Ok(format!("\n> {idea}\n\n"))
}

/// The variants that multiply `f32`, in the table's order; if a kernel has none, those for `f64`,
/// `bf16`, `i8` or `e4m3`.
pub fn of_floats(kernel: &Kernel) -> impl Iterator<Item = &'static Variant> {
    let variants = kernel.variants.iter();
    let has = |data_type| {
        kernel
            .variants
            .iter()
            .any(|one| one.types.data_type() == data_type)
    };
    let order = [
        DataType::F32,
        DataType::F64,
        DataType::BF16,
        DataType::I8,
        DataType::E4M3,
    ];
    let data_type = order.into_iter().find(|data_type| has(*data_type));
    variants.filter(move |variant| Some(variant.types.data_type()) == data_type)
}

/// The kernels whose [`of_floats`] are none of tensor cores.
pub fn on_cuda_cores() -> impl Iterator<Item = &'static Kernel> {
    let kernels = KERNELS.iter().copied();
    kernels.filter(|kernel| of_floats(kernel).all(|variant| variant.unit == Unit::CudaCores))
}
