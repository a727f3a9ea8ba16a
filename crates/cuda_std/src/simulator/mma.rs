//! What tensor cores compute, and how they round: see [`mma`](crate::mma).

use crate::mma::Layout;

/// Registers of one lane that hold its fragment of a matrix, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers(pub [u64; 8]);

impl Registers {
    pub fn of<T>(elements: &[T], bits: impl Fn(&T) -> u64) -> Self {
        let mut registers = Self::default();
        for (register, element) in registers.0.iter_mut().zip(elements) {
            *register = bits(element);
        }
        registers
    }
}

/// What is multiplied, and added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    F64,
    Tf32,
    Bf16,
    F16,
}

/// One kind of multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiplication {
    pub function: &'static str,
    pub layout: Layout,
    pub products: Products,
}

impl Multiplication {
    /// Replaces the lanes' C, the last of their fragments, by `A * B + C`.
    pub fn perform(self, lanes: &mut [[Registers; 3]]) {
        let layout = self.layout;
        let mut a = [[0_u64; 16]; 16]; // (row, k)
        let mut b = [[0_u64; 16]; 8]; // (col, k)
        for (lane, [of_a, of_b, _]) in (0..).zip(lanes.iter()) {
            for i in 0..layout.a_elements() as u32 {
                let (row, k) = layout.a(lane, i);
                a[row as usize][k as usize] = self.element(of_a, i);
            }
            for i in 0..layout.b_elements() as u32 {
                let (k, col) = layout.b(lane, i);
                b[col as usize][k as usize] = self.element(of_b, i);
            }
        }
        let depth = layout.depth as usize;
        match self.products {
            Products::F64 => self.replace_sums(lanes, |row, col, c| {
                fused_sum(&a[row][..depth], &b[col][..depth], c)
            }),
            Products::Tf32 => self.truncate_sums(lanes, &Format::TF32, (&a, &b)),
            Products::Bf16 => self.truncate_sums(lanes, &Format::BF16, (&a, &b)),
            Products::F16 => self.truncate_sums(lanes, &Format::F16, (&a, &b)),
        }
    }

    /// Element `i` of a fragment, as bits.
    fn element(self, registers: &Registers, i: u32) -> u64 {
        let register = registers.0[(i / self.layout.packed) as usize];
        match self.layout.packed {
            1 => register,
            _ => register >> (16 * (i % 2)) & 0xFFFF,
        }
    }

    /// Replaces the sum C at each row and column by `sum` of it.
    fn replace_sums(self, lanes: &mut [[Registers; 3]], sum: impl Fn(usize, usize, u64) -> u64) {
        for (lane, [_, _, sums]) in (0..).zip(lanes) {
            for (i, c) in (0..self.layout.c_elements() as u32).zip(&mut sums.0) {
                let (row, col) = self.layout.c(lane, i);
                *c = sum(row as usize, col as usize, *c);
            }
        }
    }

    /// The same by [`truncated_sum`], of elements of a format.
    fn truncate_sums(
        self,
        lanes: &mut [[Registers; 3]],
        format: &Format,
        (a, b): (&[[u64; 16]; 16], &[[u64; 16]; 8]),
    ) {
        let number = |bits: u64| format.number((bits >> format.ignored_bits) as u32);
        let (a, b) = (a.map(|row| row.map(number)), b.map(|col| col.map(number)));
        let depth = self.layout.depth as usize;
        self.replace_sums(lanes, |row, col, c| {
            let mut terms = [Format::F32.number(c as u32); 17];
            for k in 0..depth {
                terms[k + 1] = a[row][k].times(b[col][k]);
            }
            truncated_sum(&terms[..=depth]).into()
        });
    }
}

impl Products {
    /// The sum of `c` and of the products of a row of A and a column of B, at most 16, as bits.
    pub fn sum(self, a: &[u64], b: &[u64], c: u64) -> u64 {
        let format = match self {
            Products::F64 => return fused_sum(a, b, c),
            Products::Tf32 => Format::TF32,
            Products::Bf16 => Format::BF16,
            Products::F16 => Format::F16,
        };
        let number = |bits: u64| format.number((bits >> format.ignored_bits) as u32);
        let mut terms = [Format::F32.number(c as u32); 17];
        for ((term, &a), &b) in terms[1..].iter_mut().zip(a).zip(b) {
            *term = number(a).times(number(b));
        }
        truncated_sum(&terms[..=a.len()]).into()
    }
}

/// One FMA after the other.
fn fused_sum(a: &[u64], b: &[u64], c: u64) -> u64 {
    let factors = a.iter().zip(b);
    let sum = factors.fold(f64::from_bits(c), |sum, (&a, &b)| {
        f64::from_bits(a).mul_add(f64::from_bits(b), sum)
    });
    sum.to_bits()
}

/// A binary float: a sign, an exponent and a fraction, as IEEE 754 lays them out.
struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// Bits of a register below the fraction.
    ignored_bits: u32,
}

impl Format {
    const F32: Self = Self::new(8, 23, 0);
    const TF32: Self = Self::new(8, 10, 13);
    const BF16: Self = Self::new(8, 7, 0);
    const F16: Self = Self::new(5, 10, 0);

    const fn new(exponent_bits: u32, fraction_bits: u32, ignored_bits: u32) -> Self {
        Self {
            exponent_bits,
            fraction_bits,
            ignored_bits,
        }
    }

    fn number(&self, bits: u32) -> Number {
        let most = (1 << self.exponent_bits) - 1;
        let exponent = bits >> self.fraction_bits & most;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let is_negative = bits >> (self.fraction_bits + self.exponent_bits) & 1 == 1;
        let significand = match exponent {
            0 => fraction, // zero, or subnormal
            _ => fraction | 1 << self.fraction_bits,
        };
        let bias = (most / 2).cast_signed();
        Number {
            kind: match (exponent == most, fraction) {
                (false, _) => Kind::Finite,
                (true, 0) => Kind::Infinite,
                (true, _) => Kind::Nan,
            },
            is_negative,
            significand: significand.into(),
            exponent: exponent.max(1).cast_signed() - bias,
            fraction_bits: self.fraction_bits,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finite,
    Infinite,
    Nan,
}

/// A number, exactly: `significand * 2^(exponent - fraction_bits)`. A product keeps the sum of its
/// factors' exponents, so that its significand may be anything below 4.
#[derive(Clone, Copy)]
struct Number {
    kind: Kind,
    is_negative: bool,
    significand: u64,
    exponent: i32,
    fraction_bits: u32,
}

impl Number {
    fn is_zero(&self) -> bool {
        self.kind == Kind::Finite && self.significand == 0
    }

    fn times(self, other: Self) -> Self {
        let kind = match (self.kind, other.kind) {
            (Kind::Nan, _) | (_, Kind::Nan) => Kind::Nan,
            (Kind::Finite, Kind::Finite) => Kind::Finite,
            _ if self.is_zero() || other.is_zero() => Kind::Nan,
            _ => Kind::Infinite,
        };
        Self {
            kind,
            is_negative: self.is_negative != other.is_negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
            fraction_bits: self.fraction_bits + other.fraction_bits,
        }
    }

    /// In units of `2^unit`, what is less than one of them cut off.
    fn truncated(&self, unit: i32) -> i64 {
        let shift = self.exponent - self.fraction_bits.cast_signed() - unit;
        let magnitude = match u32::try_from(shift) {
            _ if self.significand == 0 => 0, // its exponent says nothing
            Ok(left) => self.significand << left,
            Err(_) => self
                .significand
                .checked_shr(shift.unsigned_abs())
                .unwrap_or(0),
        };
        match self.is_negative {
            true => -magnitude.cast_signed(),
            false => magnitude.cast_signed(),
        }
    }
}

/// Bits that are kept of the largest term: those of an f32's fraction, and two more.
const KEPT_BITS: i32 = 23 + 2;

/// What the hardware gives for NaN.
const NAN: u32 = 0x7FFF_FFFF;

/// The sum of all terms, each cut off below the last bit that is kept of the largest one, as the
/// bits of an f32, which is cut off, too.
fn truncated_sum(terms: &[Number]) -> u32 {
    if terms.iter().any(|term| term.kind != Kind::Finite) {
        return special_sum(terms);
    }
    let exponents = terms.iter().filter(|term| !term.is_zero());
    let Some(largest) = exponents.map(|term| term.exponent).max() else {
        let is_negative = terms.iter().all(|term| term.is_negative);
        return u32::from(is_negative) << 31; // a sum of zeros
    };
    let unit = largest - KEPT_BITS;
    let sum: i64 = terms.iter().map(|term| term.truncated(unit)).sum();
    truncated_to_f32(sum, unit)
}

/// The sum where a term is infinite or NaN.
fn special_sum(terms: &[Number]) -> u32 {
    let has = |kind, is_negative| {
        let mut terms = terms.iter();
        terms.any(|term| (term.kind, term.is_negative) == (kind, is_negative))
    };
    let is_nan = has(Kind::Nan, false) || has(Kind::Nan, true);
    match [false, true].map(|is_negative| has(Kind::Infinite, is_negative)) {
        [true, false] if !is_nan => f32::INFINITY.to_bits(),
        [false, true] if !is_nan => f32::NEG_INFINITY.to_bits(),
        _ => NAN,
    }
}

/// `sum * 2^unit` as the bits of an f32: what does not fit into its fraction is cut off, and what
/// is too large is infinite.
fn truncated_to_f32(sum: i64, unit: i32) -> u32 {
    if sum == 0 {
        return 0; // of terms that cancel each other
    }
    let sign = u32::from(sum < 0) << 31;
    let magnitude = sum.unsigned_abs();
    let length = (u64::BITS - magnitude.leading_zeros()).cast_signed();
    // The exponent of the first bit, or that of subnormal numbers.
    let exponent = (unit + length - 1).max(-126);
    let shift = exponent - 23 - unit;
    let significand = match u32::try_from(shift) {
        Ok(right) => magnitude.checked_shr(right).unwrap_or(0),
        Err(_) => magnitude << shift.unsigned_abs(),
    } as u32;
    if exponent > 127 {
        return sign | f32::INFINITY.to_bits();
    }
    // The leading bit of a normal number adds one to the exponent's field; a subnormal number has
    // none.
    let field = (exponent + 126).cast_unsigned();
    sign | ((field << 23) + significand)
}
