//! Expressions of the standard library's, as Rust with gaps.
//!
//! `{0}`, `{1}` are the parts, `@T` the type of the whole, `@U` the same without a sign, `@W` its
//! width, `@S` another integer type, `@K` a small number, and `@L` the length of an
//! array; of what a block does together, `@G` is a shuffle's kind and width, `@P` a reduction, and
//! `@O` an odd number.

/// What a part is.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Of the type of the whole.
    Same,
    /// As wide as the whole, with a sign.
    Signed,
    /// Any integer, the same one throughout a template.
    Other,
    /// Any integer or float, the same one throughout a template.
    Number,
    /// `f16` or `bf16`, the same one throughout a template.
    Half,
    Bool,
    U32,
    I32,
    U64,
    F32,
    F64,
}

use Part::{Bool, F32, F64, Half, I32, Number, Other, Same, Signed, U32, U64};

pub type Template = (&'static str, &'static [Part]);

/// Of booleans.
pub const BOOLEANS: &[Template] = &[
    ("(!{0})", &[Bool]),
    ("({0} && {1})", &[Bool; 2]),
    ("({0} || {1})", &[Bool; 2]),
    ("({0} ^ {1})", &[Bool; 2]),
    ("{0}.overflowing_add({1}).1", &[Other; 2]),
    ("{0}.overflowing_sub({1}).1", &[Other; 2]),
    ("{0}.overflowing_mul({1}).1", &[Other; 2]),
    ("({0} == {1})", &[Number; 2]),
    ("({0} != {1})", &[Number; 2]),
    ("({0} < {1})", &[Number; 2]),
    ("({0} <= {1})", &[Number; 2]),
    ("({0} > {1})", &[Number; 2]),
    ("({0} >= {1})", &[Number; 2]),
    ("(({0}, {1}) < ({1}, {2}))", &[Other; 3]),
    ("([{0}, {1}] == [{2}, {1}])", &[Other; 3]),
    ("({0}..{1}).contains(&{2})", &[Number; 3]),
    ("matches!({0}, 3..=9 | 77)", &[Other]),
    ("{0}.checked_add({1}).is_none_or(|v| v > 3)", &[Other; 2]),
    ("({0} as u16).is_multiple_of({1} as u16)", &[Other; 2]),
    ("({0} == {1})", &[Half; 2]),
    ("({0} < {1})", &[Half; 2]),
    ("({0} >= {1})", &[Half; 2]),
    ("({0}..{1}).contains(&{2})", &[Half; 3]),
    ("{0}.is_nan()", &[Half]),
    ("{0}.is_finite()", &[Half]),
];

/// Of all integers.
pub const ALL_INTEGERS: &[Template] = &[
    ("{0}.wrapping_add({1})", &[Same; 2]),
    ("{0}.wrapping_sub({1})", &[Same; 2]),
    ("{0}.wrapping_mul({1})", &[Same; 2]),
    ("({0} & {1})", &[Same; 2]),
    ("({0} | {1})", &[Same; 2]),
    ("({0} ^ {1})", &[Same; 2]),
    ("{0}.saturating_add({1})", &[Same; 2]),
    ("{0}.saturating_sub({1})", &[Same; 2]),
    ("{0}.saturating_mul({1})", &[Same; 2]),
    ("{0}.min({1})", &[Same; 2]),
    ("{0}.max({1})", &[Same; 2]),
    ("{0}.checked_add({1}).unwrap_or(7)", &[Same; 2]),
    ("{0}.checked_sub({1}).unwrap_or(7)", &[Same; 2]),
    ("{0}.checked_mul({1}).unwrap_or(7)", &[Same; 2]),
    ("{0}.overflowing_sub({1}).0", &[Same; 2]),
    ("{0}.midpoint({1})", &[Same; 2]),
    ("{0}.checked_div({1}).unwrap_or(3)", &[Same; 2]),
    ("{0}.checked_rem({1}).unwrap_or(3)", &[Same; 2]),
    ("{0}.wrapping_div({1} | 1)", &[Same; 2]),
    ("{0}.wrapping_rem({1} | 1)", &[Same; 2]),
    ("{0}.wrapping_rem_euclid({1} | 1)", &[Same; 2]),
    ("{0}.wrapping_div_euclid({1} | 1)", &[Same; 2]),
    ("{0}.wrapping_pow({1} & 15)", &[Same, U32]),
    ("{0}.saturating_pow({1} & 7)", &[Same, U32]),
    ("{0}.checked_pow({1} & 7).unwrap_or(2)", &[Same, U32]),
    ("{0}.wrapping_shl({1})", &[Same, U32]),
    ("{0}.wrapping_shr({1})", &[Same, U32]),
    ("{0}.unbounded_shl({1} & 255)", &[Same, U32]),
    ("{0}.unbounded_shr({1} & 255)", &[Same, U32]),
    ("{0}.checked_shl({1}).unwrap_or(5)", &[Same, U32]),
    ("{0}.checked_shr({1} & 255).unwrap_or(5)", &[Same, U32]),
    ("{0}.rotate_left({1})", &[Same, U32]),
    ("{0}.rotate_right({1})", &[Same, U32]),
    ("{0}.rotate_left(@K)", &[Same]),
    ("({0} as @T).rotate_right(@K)", &[Other]),
    ("({0} as @T).rotate_left(@K)", &[Other]),
    ("({0}.wrapping_shl(@K) | {1}.wrapping_shr(@K))", &[Same; 2]),
    ("{0}.wrapping_neg()", &[Same]),
    ("(!{0})", &[Same]),
    ("{0}.reverse_bits()", &[Same]),
    ("{0}.swap_bytes()", &[Same]),
    ("({0}.count_ones() as @T)", &[Other]),
    ("({0}.leading_zeros() as @T)", &[Other]),
    ("({0}.trailing_zeros() as @T)", &[Other]),
    ("({0}.leading_ones() as @T)", &[Other]),
    ("({0}.checked_ilog2().unwrap_or(9) as @T)", &[Other]),
    ("({0}.checked_ilog10().unwrap_or(9) as @T)", &[Other]),
    ("({0}.checked_ilog({1}).unwrap_or(9) as @T)", &[Other; 2]),
    ("({0}.cmp(&{1}) as i8 as @T)", &[Other; 2]),
    ("({0}.abs_diff({1}) as @T)", &[Other; 2]),
    ("@T::try_from({0}).unwrap_or(6)", &[Other]),
    ("({0} as @T)", &[Other]),
    ("({0} as @T)", &[Other]),
    ("({0} as @T)", &[Number]),
    ("({0} as @T)", &[Bool]),
    ("({0}.bits16() as @T)", &[Half]),
    ("({0}.to_f32() as @T)", &[Half]),
    ("(bits32({0}) as @T)", &[F32]),
    ("(bits64({0}) as @T)", &[F64]),
    ("(m[({0} & 7) as usize] as @T)", &[U64]),
    ("(x[({0} & 7) as usize] as @T)", &[U32]),
    (
        "({0}.checked_sub({1}).is_some_and(|v| v > 3) as @T)",
        &[Other; 2],
    ),
    (
        "{ let mut b = {0}.to_be_bytes(); let n = b.len(); b.rotate_left({1} as usize % n); @T::from_le_bytes(b) }",
        &[Same, U32],
    ),
    (
        "(match {0} { 3..=5 => {1}, z if z > 7 => {2}, _ => 10 })",
        &[Other, Same, Same],
    ),
    (
        "(match ({0}, {1}) { (0..=9, true) => {2}, (_, false) => {3}, (z, _) => z as @T })",
        &[Other, Bool, Same, Same],
    ),
    (
        "(match ({0} as u128) << ({1} & 127) { 0x1_0000_0000_0000_0000..=0x5_0000_0000_0000_0000_0000 => {2}, \
         z if z > 1 << 127 => {3}, z => (z >> 3) as @T })",
        &[Other, U32, Same, Same],
    ),
    (
        "(match {0} % 3 { 0 => Some(Some({1})), 1 => Some(None), _ => None }).flatten().map_or(3, |v: @T| v ^ 1)",
        &[U32, Same],
    ),
    (
        "(|| -> Option<@T> { {0}.checked_add({1})?.checked_mul(3) })().unwrap_or(11)",
        &[Same; 2],
    ),
    (
        "(|| -> Result<@T, @S> { let v = {0}.checked_add({1}).ok_or({2})?; if {3} { return Err({2}); } Ok(v ^ 5) })()\
         .unwrap_or_else(|e| e as @T)",
        &[Same, Same, Other, Bool],
    ),
    (
        "{ enum E { A(@T), B(@S, u32), C } \
         let e = match {0} % 3 { 0 => E::A({1}), 1 => E::B({2}, {0}), _ => E::C }; \
         match e { E::A(v) => v, E::B(v, n) if n & 4 == 0 => v.rotate_left(n) as @T, E::B(v, _) => !v as @T, E::C => 5 } }",
        &[U32, Same, Other],
    ),
    (
        "{ #[derive(Clone, Copy)] struct P { a: @S, b: @T, c: [u16; 3] } \
         let mut p = [P { a: {0}, b: {1}, c: [1, 2, 3] }; 3]; \
         p[({2} % 3) as usize].b = {3}; p.swap(0, ({2} % 3) as usize); p[1].c[({2} & 1) as usize] = {0} as u16; \
         p.iter().fold({1}, |s: @T, p| s.wrapping_mul(7) ^ p.b ^ p.a as @T ^ p.c[1] as @T) }",
        &[Other, Same, U32, Same],
    ),
    (
        "{ trait F { fn f(&self, v: @T) -> @T; } struct A(@T); struct B(@S, bool); \
         impl F for A { fn f(&self, v: @T) -> @T { v ^ self.0 } } \
         impl F for B { fn f(&self, v: @T) -> @T { if self.1 { v } else { self.0 as @T } } } \
         let (a, b) = (A({0}), B({1}, {2})); let f: &dyn F = if {3} { &a } else { &b }; f.f({4}) }",
        &[Same, Other, Bool, Bool, Same],
    ),
    (
        "{ fn l(v: @T, w: @S) -> @T { v.wrapping_add(w as @T) } fn r(v: @T, w: @S) -> @T { (w as @T).rotate_left(3) ^ v } \
         let f: fn(@T, @S) -> @T = if {0} { l } else { r }; f({1}, {2}) }",
        &[Bool, Same, Other],
    ),
    (
        "{ let (b, v, t): (bool, @T, @T) = ({0}, {1}, {2}); \
         'a: { if b { break 'a v; } if t < v { break 'a t.wrapping_add(1); } t } }",
        &[Bool, Same, Same],
    ),
    (
        "{ let (v, n): (@T, u32) = ({0}, {1}); let mut t = v; \
         'a: { for p in 0..4_u32 { for q in 0..3_u32 { if t.count_ones() == p + q { break 'a t; } \
         if q == n { break; } t = t.rotate_left(q).wrapping_add(v); } } t } }",
        &[Same, U32],
    ),
];

/// Of integers with a sign, also.
pub const SIGNED: &[Template] = &[
    ("{0}.wrapping_abs()", &[Same]),
    ("{0}.signum()", &[Same]),
    ("{0}.saturating_neg()", &[Same]),
    ("{0}.saturating_abs()", &[Same]),
    ("{0}.checked_neg().unwrap_or(9)", &[Same]),
    ("{0}.checked_isqrt().unwrap_or(9)", &[Same]),
    ("{0}.saturating_add_unsigned({1} as @U)", &[Same; 2]),
    ("({0} as @U).cast_signed()", &[Same]),
];

/// Of integers without a sign, also.
pub const UNSIGNED: &[Template] = &[
    ("{0}.unsigned_abs()", &[Signed]),
    ("{0}.isqrt()", &[Same]),
    ("{0}.checked_next_power_of_two().unwrap_or(1)", &[Same]),
    ("{0}.div_ceil({1} | 1)", &[Same; 2]),
    ("(if {1} == 0 { 7 } else { {0}.div_ceil({1}) })", &[Same; 2]),
    ("{0}.checked_next_multiple_of({1}).unwrap_or(8)", &[Same; 2]),
    ("({0} >> 1).next_multiple_of({1} >> 1 | 1)", &[Same; 2]),
    // Funnel shifts: a window on two numbers in a row.
    (
        "({0}.wrapping_shl(@K) | {1}.wrapping_shr(@W - @K))",
        &[Same; 2],
    ),
    (
        "{ let (h, l, n): (@T, @T, u32) = ({0}, {1}, {2}); (h << (n % @W)) | (l >> 1 >> (!n % @W)) }",
        &[Same, Same, U32],
    ),
    (
        "{ let (h, l, n): (@T, @T, u32) = ({0}, {1}, {2}); (h << 1 << (!n % @W)) | (l >> (n % @W)) }",
        &[Same, Same, U32],
    ),
    // Multiplications of twice the width.
    ("{0}.carrying_mul({1}, 0).0", &[Same; 2]),
    ("{0}.carrying_mul({1}, 0).1", &[Same; 2]),
    (
        "((({0} as u128).wrapping_mul({1} as u128) >> @K) as @T)",
        &[Same; 2],
    ),
    ("{0}.carrying_add({1}, {2}).0", &[Same, Same, Bool]),
    ("({0}.carrying_add({1}, {2}).1 as @T)", &[Same, Same, Bool]),
    ("{0}.borrowing_sub({1}, {2}).0", &[Same, Same, Bool]),
    ("({0}.borrowing_sub({1}, {2}).1 as @T)", &[Same, Same, Bool]),
    ("{0}.carrying_mul({1}, {2}).0", &[Same; 3]),
    ("{0}.carrying_mul({1}, {2}).1", &[Same; 3]),
    ("{0}.carrying_mul(@T::MAX - @K, {1}).1", &[Same; 2]),
    ("{0}.carrying_mul_add({1}, {2}, {3}).0", &[Same; 4]),
    ("{0}.carrying_mul_add({1}, {2}, {3}).1", &[Same; 4]),
    (
        "({0}.checked_signed_diff({1}).unwrap_or(4) as @T)",
        &[Same; 2],
    ),
    ("{0}.saturating_add_signed({1})", &[Same, Signed]),
];

/// Of floats.
pub const FLOATS: &[Template] = &[
    ("({0} + {1})", &[Same; 2]),
    ("({0} - {1})", &[Same; 2]),
    ("({0} * {1})", &[Same; 2]),
    ("({0} / {1})", &[Same; 2]),
    ("({0} % {1})", &[Same; 2]),
    ("(-{0})", &[Same]),
    ("{0}.abs()", &[Same]),
    ("{0}.clamp(-100.0, 1e6)", &[Same]),
    ("{0}.midpoint({1})", &[Same; 2]),
    ("{0}.next_up()", &[Same]),
    ("({0} as @T)", &[F32]),
    ("({0} as @T)", &[F64]),
    ("f@W::from_bits({0} as u@W)", &[Other]),
    ("({0} as @T)", &[Other]),
    ("({0} as @T)", &[Other]),
    (
        "[{0}, {1}, {2}].iter().fold(1.5, |s: @T, v| s * *v + 0.5)",
        &[Same; 3],
    ),
    ("{0}.to_f@W()", &[Half]),
    ("{0}.to_f@W()", &[Half]),
    ("{0}.mul_add({1}, {2})", &[Same; 3]),
];

/// Of floats of 16 bits. `f16::from_f64` rounds to f32 first, or ignores the lower 32 bits: where
/// the last three bits of an f32 are 0, both give the same.
pub const HALVES: &[Template] = &[
    ("({0} + {1})", &[Same; 2]),
    ("({0} - {1})", &[Same; 2]),
    ("({0} * {1})", &[Same; 2]),
    ("({0} / {1})", &[Same; 2]),
    ("({0} % {1})", &[Same; 2]),
    ("({0} * {1} + {2})", &[Same; 3]),
    ("(-{0})", &[Same]),
    ("@T::from_f32({0})", &[F32]),
    ("@T::from_f32({0})", &[F32]),
    (
        "@T::from_f64(f32::from_bits({0}.to_bits() & !7) as f64)",
        &[F32],
    ),
    ("@T::from_f32(bf16::from_f64({0}).to_f32())", &[F64]),
    ("@T::from_f32({0} as f32)", &[Number]),
    ("@T::from_bits({0} as u16)", &[Other]),
    ("@T::from_f32({0}.to_f32())", &[Half]),
    (
        "@T::from_f32({0}.to_f32().mul_add({1}.to_f32(), {2}.to_f32()))",
        &[Same; 3],
    ),
    (
        "@T::from_f32({0}.to_f32() / {1}.to_f32() + {2})",
        &[Same, Same, F32],
    ),
    ("(if {0} < {1} { {0} } else { {1} })", &[Same; 2]),
    ("(if {0} > {1} { {0} } else { {1} })", &[Same; 2]),
    ("{0}.max({1})", &[Same; 2]),
    ("{0}.min({1})", &[Same; 2]),
    ("{0}.signum()", &[Same]),
    ("{0}.clamp(-@T::ONE, @T::MAX)", &[Same]),
    (
        "[{0}, {1}, {2}].iter().fold(@T::ONE, |s, v| s * *v + @T::EPSILON)",
        &[Same; 3],
    ),
];

/// Changes of an array `a`; `n` is a `usize`.
pub const CHANGES: &[&str] = &[
    "a.reverse();",
    "a.rotate_left(n % @L);",
    "a.rotate_right(n % @L);",
    "a.rotate_left(1);",
    "a.copy_within(1.., 0);",
    "a.copy_within(..2, 1);",
    "a.copy_within(n % @L.., 0);",
    "{ let end = @L - n % @L; a.copy_within(..end, n % @L); }",
    "a.swap(n % 3, (n >> 2) % @L);",
    "a[..3].reverse();",
    "a[1..].fill({0});",
    "a[n % @L] = {0};",
];

/// Changes of an array of integers, also.
pub const INTEGER_CHANGES: &[&str] = &[
    "a.sort_unstable();",
    "a.sort_unstable_by(|l, r| r.cmp(l));",
    "a[n % 3..].iter_mut().for_each(|e| *e = e.wrapping_mul(3));",
    "for k in 1..@L { a[k] = a[k].wrapping_add(a[k - 1]); }",
];

/// Changes of an array of floats, also. Which NaN an operation returns is not promised, and the
/// order of all floats tells them apart.
pub const FLOAT_CHANGES: &[&str] = &[
    "for e in &mut a { *e = f@W::from_bits(bits@W(*e)); } a.sort_unstable_by(|l, r| l.total_cmp(r));",
    "a.sort_unstable_by_key(|e| core::cmp::Reverse(bits@W(*e)));",
    "a[n % 3..].iter_mut().for_each(|e| *e *= -1.5);",
    "for k in 1..@L { a[k] = a[k] + a[k - 1]; }",
];

/// Changes of an array of 16-bit floats, also.
pub const HALF_CHANGES: &[&str] = &[
    "for e in &mut a { *e = e.canonical(); } a.sort_unstable_by(|l, r| l.total_cmp(r));",
    "a.sort_unstable_by_key(|e| core::cmp::Reverse(e.bits16()));",
    "a[n % 3..].iter_mut().for_each(|e| *e *= @T::from_f32_const(-1.5));",
    "for k in 1..@L { a[k] = a[k] + a[k - 1]; }",
];

/// What becomes of the array.
pub const RESULTS: &[&str] = &[
    "a.iter().fold(0, |p: @T, q| p.wrapping_mul(7) ^ *q)",
    "a.iter().rev().step_by(2).fold(1, |p: @T, q| p.wrapping_mul(5) ^ *q)",
    "a[n % @L]",
    "a[n % 3..].iter().copied().max().unwrap_or(0)",
    "a.iter().position(|e| *e == {0}).unwrap_or(9) as @T",
    "a.windows(2).filter(|w| w[0] < w[1]).count() as @T",
    "a.chunks(2).fold(3, |p: @T, c| p.rotate_left(1) ^ c[0])",
    "a.iter().zip(a.iter().skip(1)).fold(0, |p: @T, (l, r)| p.wrapping_add(l.wrapping_mul(*r)))",
    "a.binary_search(&{0}).unwrap_or_else(|at| at) as @T",
    "(if a.iter().any(|e| *e == {0}) { 1 } else { a[1] })",
];

/// What becomes of an array of floats.
pub const FLOAT_RESULTS: &[&str] = &[
    "f@W::from_bits(a.iter().fold(0, |p: u@W, q| p.wrapping_mul(7) ^ bits@W(*q)))",
    "a.iter().rev().step_by(2).fold(1.0, |p: @T, q| p / *q)",
    "a[n % @L]",
    "(if a.windows(2).any(|w| w[0] < w[1]) { {0} } else { a[1] })",
    "a.iter().filter(|e| **e == {0}).count() as @T",
];

/// What becomes of an array of 16-bit floats.
pub const HALF_RESULTS: &[&str] = &[
    "@T::from_bits(a.iter().fold(0, |p: u16, q| p.wrapping_mul(7) ^ q.bits16()))",
    "a.iter().rev().step_by(2).fold(@T::ONE, |p, q| p / *q)",
    "a.iter().map(|e| e.to_f32()).fold(@T::ZERO, |p, q| @T::from_f32(p.to_f32() + q))",
    "a[n % @L]",
    "(if a.windows(2).any(|w| w[0] < w[1]) { {0} } else { a[1] })",
    "@T::from_f32(a.iter().filter(|e| **e == {0}).count() as f32)",
];

/// What is done with each number of a range of `u32`.
pub const ADAPTERS: &[&str] = &[
    ".filter(|e| e & 1 == {1} & 1)",
    ".filter(|_| false)",
    ".step_by(2)",
    ".take_while(|e| *e < {1} & 7)",
    ".skip_while(|e| *e < {1} & 3)",
    ".skip(1)",
    ".take(3)",
    ".map(|e| e.wrapping_mul(5) ^ {1})",
    ".enumerate().map(|(k, e)| k as u32 ^ e)",
    ".scan({1}, |s, e| { *s = s.wrapping_add(e); (*s & 15 != 9).then_some(*s) })",
    ".flat_map(|e| [e, e + 1])",
    ".inspect(|_| ())",
];

/// How such a chain ends, `{0}` being of the type of the whole.
pub const ENDS: &[&str] = &[
    ".fold({0}, |p: @T, e| p.wrapping_mul(5).wrapping_add(e as @T))",
    ".fold(({0} as @T).rotate_right(2), |p: @T, e| p.wrapping_mul(5).wrapping_add(e as @T))",
    ".position(|e| e & 3 == {1} & 3).unwrap_or(6) as @T",
    ".find(|e| e & 3 == 2).map_or({0}, |e| e as @T)",
    ".max_by_key(|e| e ^ 2).unwrap_or(1) as @T",
    ".last().unwrap_or(3) as @T",
    ".try_fold({0}, |p: @T, e| p.checked_add(e as @T)).unwrap_or(12)",
];

/// What the threads of a block do together with a value of any type.
pub const TOGETHER: &[Template] = &[
    ("block.shuffle({0}, @G)", &[Same]),
    ("block.shuffle({0}, 2, {1}, 32)", &[Same, U32]),
    (
        "block.shared({0}, @O, {1}, || shared_array![@T; 64])",
        &[Same, U32],
    ),
];

/// With integers, also.
pub const INTEGERS_TOGETHER: &[Template] = &[
    ("(block.all({0}) as @T)", &[Bool]),
    ("(block.any({0}) as @T)", &[Bool]),
    ("(block.ballot({0}) as @T)", &[Bool]),
    ("(block.match_any({0} & 3) as @T)", &[U32]),
    ("(block.match_any({0}) as @T)", &[U64]),
    ("(block.match_all({0} & 1) as @T)", &[U32]),
    ("(block.match_all({0}) as @T)", &[U64]),
    ("(block.reaches({0}, @G) as @T)", &[Other]),
    ("(block.reduce({0}, WarpReductionOp::@P) as @T)", &[U32]),
    ("(block.reduce({0}, WarpReductionOp::@P) as @T)", &[I32]),
    (
        "(block.block_reduce({0}, WarpReductionOp::@P) as @T)",
        &[U32],
    ),
    (
        "(block.block_reduce({0}, WarpReductionOp::@P) as @T)",
        &[I32],
    ),
    ("(block.block_count({0}) as @T)", &[Bool]),
];

/// Booleans that are the same for all threads of a block.
pub const UNIFORM: &[Template] = &[
    ("block.block_all({0})", &[Bool]),
    ("block.block_any({0})", &[Bool]),
    ("(block.block_count({0}) & 1 == 0)", &[Bool]),
    ("(block.block_reduce({0}, WarpReductionOp::@P) > 9)", &[U32]),
];
