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
        let depth = self.layout.depth as usize;
        let Some(format) = self.products.format() else {
            let (a, b) = self.matrices(lanes, f64::from_bits);
            return self.replace_sums(lanes, |row, col, c| {
                fused_sum(&a[row][..depth], &b[col][..depth], c)
            });
        };
        let (a, b) = self.matrices(lanes, |bits| format.number(bits));
        self.replace_sums(lanes, |row, col, c| {
            let sum = format.sum(&a[row][..depth], &b[col][..depth], c as u32);
            sum.into()
        });
    }

    /// The elements of A by row and k, and of B by column and k.
    #[inline(always)]
    fn matrices<T: Copy>(
        self,
        lanes: &[[Registers; 3]],
        number: impl Fn(u64) -> T,
    ) -> ([[T; 16]; 16], [[T; 16]; 8]) {
        let layout = self.layout;
        let (mut a, mut b) = ([[number(0); 16]; 16], [[number(0); 16]; 8]);
        for (lane, [of_a, of_b, _]) in (0..).zip(lanes) {
            for i in 0..layout.a_elements() as u32 {
                let (row, k) = layout.a(lane, i);
                a[row as usize][k as usize] = number(self.element(of_a, i));
            }
            for i in 0..layout.b_elements() as u32 {
                let (k, col) = layout.b(lane, i);
                b[col as usize][k as usize] = number(self.element(of_b, i));
            }
        }
        (a, b)
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
}

impl Products {
    /// The format of A and B, whose products are truncated; `None` for f64, which FMAs sum.
    pub(super) fn format(self) -> Option<&'static Format> {
        match self {
            Self::F64 => None,
            Self::Tf32 => Some(&Format::TF32),
            Self::Bf16 => Some(&Format::BF16),
            Self::F16 => Some(&Format::F16),
        }
    }
}

/// One FMA after the other.
fn fused_sum(a: &[f64], b: &[f64], c: u64) -> u64 {
    let factors = a.iter().zip(b);
    let sum = factors.fold(f64::from_bits(c), |sum, (a, &b)| a.mul_add(b, sum));
    sum.to_bits()
}

/// A binary float: a sign, an exponent and a fraction, as IEEE 754 lays them out.
pub(super) struct Format {
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

    /// What a register holds.
    #[inline]
    pub fn number(&self, register: u64) -> Number {
        let bits = (register >> self.ignored_bits) as u32;
        let most = (1 << self.exponent_bits) - 1;
        let exponent = bits >> self.fraction_bits & most;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
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
            is_negative: bits >> (self.fraction_bits + self.exponent_bits) & 1 == 1,
            significand,
            exponent: match significand {
                0 => OF_ZERO,
                _ => exponent.max(1).cast_signed() - bias,
            },
        }
    }

    /// The sum of `c` and of the products of a row of A and a column of B, at most 16: each term is
    /// cut off below the last bit that is kept of the largest one, and so is the f32 that comes of
    /// it. All are bits of an f32.
    pub fn sum(&self, a: &[Number], b: &[Number], c: u32) -> u32 {
        let c = Self::F32.number(c.into());
        let (mut largest, mut is_finite) = (c.exponent, c.kind == Kind::Finite);
        for (a, b) in a.iter().zip(b) {
            largest = largest.max(a.exponent + b.exponent);
            is_finite &= (a.kind == Kind::Finite) & (b.kind == Kind::Finite);
        }
        let products = a.iter().zip(b);
        if !is_finite {
            let products = products.map(|(a, b)| (a.kind_times(b), a.is_negative != b.is_negative));
            return special_sum(products.chain([(c.kind, c.is_negative)]));
        }
        if largest < OF_ZERO / 2 {
            let mut products = products;
            let is_negative =
                c.is_negative && products.all(|(a, b)| a.is_negative != b.is_negative);
            return u32::from(is_negative) << 31; // a sum of zeros
        }
        let mut sum = truncated(c.significand, 23, largest - c.exponent, c.is_negative);
        for (a, b) in products {
            let below = largest - (a.exponent + b.exponent);
            let is_negative = a.is_negative != b.is_negative;
            let product = a.significand * b.significand;
            sum += truncated(product, 2 * self.fraction_bits, below, is_negative);
        }
        truncated_to_f32(sum, largest - KEPT_BITS)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finite,
    Infinite,
    Nan,
}

/// The exponent of zero: below that of any product, even twice.
const OF_ZERO: i32 = -(1 << 16);

/// A number, exactly: `significand * 2^(exponent - fraction_bits)` of its format.
#[derive(Clone, Copy)]
pub(super) struct Number {
    kind: Kind,
    is_negative: bool,
    significand: u32,
    exponent: i32,
}

impl Number {
    fn kind_times(&self, other: &Self) -> Kind {
        let is_zero = |number: &Self| number.exponent == OF_ZERO && number.kind == Kind::Finite;
        match (self.kind, other.kind) {
            (Kind::Nan, _) | (_, Kind::Nan) => Kind::Nan,
            (Kind::Finite, Kind::Finite) => Kind::Finite,
            _ if is_zero(self) || is_zero(other) => Kind::Nan,
            _ => Kind::Infinite,
        }
    }
}

/// Bits that are kept of the largest term: those of an f32's fraction, and two more.
const KEPT_BITS: i32 = 23 + 2;

/// What the hardware gives for NaN.
const NAN: u32 = 0x7FFF_FFFF;

/// A term whose exponent is `below` the largest one, in units of the last bit that is kept of that;
/// what is less than one of them is cut off.
#[inline]
fn truncated(significand: u32, fraction_bits: u32, below: i32, is_negative: bool) -> i64 {
    // At most 2^28: 24 bits of an f32, or twice the bits of another format.
    let kept = significand << (KEPT_BITS.cast_unsigned() - fraction_bits);
    let magnitude = i64::from(kept >> below.min(31));
    if is_negative { -magnitude } else { magnitude }
}

/// The sum where a term is infinite or NaN, of kinds and signs.
fn special_sum(terms: impl Iterator<Item = (Kind, bool)> + Clone) -> u32 {
    let has = |kind, is_negative| terms.clone().any(|term| term == (kind, is_negative));
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
