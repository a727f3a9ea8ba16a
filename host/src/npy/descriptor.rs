//! How NumPy spells element types, and what to do with an array of another one.

use gpu_gemm::{ElementType, text};
use serde_json::Value;

use super::refusal::Refusal;

/// The spellings of a type after the character for the byte order; first the one that is written.
fn spellings(data_type: ElementType) -> &'static [&'static str] {
    match data_type {
        ElementType::F32 => &["f4", "float32", "single", "f"],
        ElementType::F64 => &["f8", "float64", "double", "float", "d"],
        ElementType::I32 => &["i4", "int32", "intc", "i"],
        ElementType::F16 => &["f2", "float16", "half", "e"],
        ElementType::I8 => &["i1", "int8", "byte", "b"],
        // NumPy has neither. It writes these for those of the package `ml_dtypes`.
        ElementType::Bf16 => &["V2", "bfloat16"],
        ElementType::E4m3 => &["V1", "float8_e4m3fn"],
    }
}

/// The type as it is written.
pub(super) fn of(data_type: ElementType) -> String {
    // A byte has no order.
    let order = if data_type.bytes() == 1 { '|' } else { '<' };
    format!("{order}{}", spellings(data_type)[0])
}

/// The type of a header's `descr`, and whether its bytes are in big-endian order. Without a
/// character for the order it is the machine's, and that of machines with GPUs is little-endian.
pub(super) fn read(descr: &Value) -> Result<(ElementType, bool), Refusal> {
    let name = descr.as_str().unwrap_or_default();
    let spelling = name.trim_start_matches(['<', '>', '=', '|']);
    let mut types = ElementType::ALL.into_iter();
    match types.find(|data_type| spellings(*data_type).contains(&spelling)) {
        Some(data_type) => Ok((data_type, name.starts_with('>'))),
        None => Err(unfit(descr, spelling)),
    }
}

/// The refusal of an array of another type, with what to do instead.
fn unfit(descr: &Value, spelling: &str) -> Refusal {
    let known = text::list(&ElementType::ALL.map(ElementType::name));
    let what = format!("holds elements of the type {descr}, but kernels multiply {known}");
    let save = |array: &str| format!("save it again, with `numpy.save(path, {array})`");
    let fields = descr.as_array().into_iter().flatten();
    let mut fields = fields.filter_map(|field| field.get(0)?.as_str());
    if let Some(field) = fields.next() {
        return Refusal::Unfit(what, save(&format!("a['{field}']")));
    }
    let advice = match spelling {
        "u1" | "b1" | "i2" | "u2" => save("a.astype('int32')"),
        "f16" => save("a.astype('float64')"),
        "f1" => save("a.view(TYPE).astype('float32')") + ", where TYPE is that of ml_dtypes",
        integer if integer.starts_with(['i', 'u']) => {
            save("a.astype('float64')")
                + ", which is exact up to 2^53, or with `a.astype('int32')` if its numbers fit"
        }
        complex if complex.starts_with('c') => {
            let what = format!("holds complex numbers ({descr}), but kernels multiply real ones");
            return Refusal::Unfit(what, "multiply `a.real` and `a.imag` by themselves".into());
        }
        _ => "save numbers of one of these types".to_string(),
    };
    Refusal::Unfit(what, advice)
}
