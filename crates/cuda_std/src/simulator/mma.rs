//! What tensor cores compute, and how they round: see [`mma`](crate::mma).

use crate::mma::{Layout, of_bf16, of_e4m3, of_e5m2, of_f16};

/// Registers of one lane that hold its fragment of a matrix, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers(pub [u64; 8]);

impl Registers {
    #[inline]
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
    /// Of A and of B.
    Floats8(Float8, Float8),
    Integers8(Integer8, Integer8),
}

/// A float of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float8 {
    E4m3,
    E5m2,
}

/// An integer of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer8 {
    S8,
    U8,
}

impl Integer8 {
    fn number(self, bits: u64) -> i16 {
        match self {
            Self::S8 => (bits as i8).into(),
            Self::U8 => (bits as u8).into(),
        }
    }
}

/// One kind of multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiplication {
    pub layout: Layout,
    pub products: Products,
}

impl Multiplication {
    /// Replaces the lanes' C, the last of their fragments, by `A * B + C`.
    pub fn perform(self, lanes: &mut [[Registers; 3]]) {
        let depth = self.layout.depth as usize;
        match self.products {
            Products::F64 => {
                let (a, b) = self.matrices::<_, 16>(lanes, [f64::from_bits; 2]);
                return self.replace_sums(lanes, |row, col, c| {
                    fused_sum(&a[row][..depth], &b[col][..depth], c)
                });
            }
            Products::Integers8(of_a, of_b) => {
                let numbers = [of_a, of_b].map(|of| move |bits| of.number(bits));
                let (a, b) = self.matrices::<_, 32>(lanes, numbers);
                return self.replace_sums(lanes, |row, col, c| {
                    wrapping_sum(&a[row], &b[col], c as u32).into()
                });
            }
            _ => {}
        }
        let (a, b) = self.matrices::<_, 16>(lanes, [|bits| bits; 2]);
        let [of_a, of_b] = [0, 1].map(|operand| {
            move |bits: &[u64; 16]| self.products.factors::<16>(&bits[..depth], operand)
        });
        let (a, b) = (a.each_ref().map(of_a), b.each_ref().map(of_b));
        let accumulator = self.products.accumulator();
        self.replace_sums(lanes, |row, col, c| {
            truncated_sum(&a[row], &b[col], c as u32, accumulator).into()
        });
    }

    /// The elements of A by row and k, and of B by column and k, at most `DEPTH`, as these functions
    /// make them of bits.
    #[inline(always)]
    fn matrices<T: Copy, const DEPTH: usize>(
        self,
        lanes: &[[Registers; 3]],
        [of_a, of_b]: [impl Fn(u64) -> T; 2],
    ) -> ([[T; DEPTH]; 16], [[T; DEPTH]; 8]) {
        let layout = self.layout;
        let (mut a, mut b) = ([[of_a(0); DEPTH]; 16], [[of_b(0); DEPTH]; 8]);
        for (lane, [fragment_a, fragment_b, _]) in (0..).zip(lanes) {
            for i in 0..layout.a_elements() as u32 {
                let (row, k) = layout.a(lane, i);
                a[row as usize][k as usize] = of_a(self.element(fragment_a, i));
            }
            for i in 0..layout.b_elements() as u32 {
                let (k, col) = layout.b(lane, i);
                b[col as usize][k as usize] = of_b(self.element(fragment_b, i));
            }
        }
        (a, b)
    }

    /// Element `i` of a fragment, as bits.
    fn element(self, registers: &Registers, i: u32) -> u64 {
        let packed = self.layout.packed;
        let register = registers.0[(i / packed) as usize];
        match packed {
            1 => register,
            _ => register >> (32 / packed * (i % packed)) & ((1 << (32 / packed)) - 1),
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
    /// The integers of registers, as [`Products::factors`].
    pub(super) fn integers(self, registers: &[u64], operand: usize) -> Vec<i16> {
        let Self::Integers8(a, b) = self else {
            unreachable!("they are floats")
        };
        let of = [a, b][operand];
        registers.iter().map(|bits| of.number(*bits)).collect()
    }

    /// The numbers of 8, 16 or 19 bits in registers, at most `MOST`: elements of A, operand 0, or of
    /// B, operand 1.
    pub(super) fn factors<const MOST: usize>(
        self,
        registers: &[u64],
        operand: usize,
    ) -> Factors<MOST> {
        let mut factors = Factors {
            values: [0.0; MOST],
            exponents: [0; MOST],
            depth: registers.len(),
        };
        for (k, register) in registers.iter().enumerate() {
            let number = self.number(*register, operand);
            (factors.values[k], factors.exponents[k]) = (number.value, number.exponent);
        }
        factors
    }

    /// The accumulator for its sums.
    pub(super) fn accumulator(self) -> Accumulator {
        match self {
            Self::Floats8(..) => Accumulator {
                aligned: 13,
                fraction: 13,
            },
            _ => Accumulator {
                aligned: 23 + 2,
                fraction: 23,
            },
        }
    }

    /// The number of 8, 16 or 19 bits in a register.
    #[inline]
    fn number(self, register: u64, operand: usize) -> Number {
        let bits = register as u32;
        match self {
            Self::Tf32 => Number::new(f32::from_bits(bits & !0x1FFF), -126),
            Self::Bf16 => Number::new(of_bf16(bits as u16), -126),
            Self::F16 => Number::new(of_f16(bits as u16), -14),
            Self::Floats8(a, b) => match [a, b][operand] {
                Float8::E4m3 => Number::new(of_e4m3(bits as u8), -6),
                Float8::E5m2 => Number::new(of_e5m2(bits as u8), -14),
            },
            Self::F64 | Self::Integers8(..) => unreachable!("their sums are not truncated"),
        }
    }
}

/// One FMA after the other.
fn fused_sum(a: &[f64], b: &[f64], c: u64) -> u64 {
    let factors = a.iter().zip(b);
    let sum = factors.fold(f64::from_bits(c), |sum, (a, &b)| a.mul_add(b, sum));
    sum.to_bits()
}

/// The sum of `c` and of the products of a row of A and a column of B, exact, modulo 2^32.
pub(super) fn wrapping_sum(a: &[i16], b: &[i16], c: u32) -> u32 {
    let products = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b));
    // At most 32 products of 16 bits.
    c.wrapping_add_signed(products.sum())
}

/// A number, and the exponent by which it is aligned.
#[derive(Clone, Copy)]
struct Number {
    value: f64,
    exponent: i32,
}

/// A row of A or a column of B: values and exponents in arrays of their own, read four at a time,
/// so that the compiler uses vector instructions. The depth is a multiple of 4.
pub(super) struct Factors<const MOST: usize> {
    values: [f64; MOST],
    exponents: [i32; MOST],
    depth: usize,
}

impl<const MOST: usize> Factors<MOST> {
    fn values(&self) -> &[[f64; 4]] {
        self.values[..self.depth].as_chunks().0
    }

    fn exponents(&self) -> &[[i32; 4]] {
        self.exponents[..self.depth].as_chunks().0
    }
}

/// The exponent of zero: far below that of any product.
const OF_ZERO: i32 = -(1 << 16);
/// The exponent of infinity and NaN: far above that of any product, even with zero.
const OF_SPECIAL: i32 = 1 << 20;

impl Number {
    /// A number of a format in which subnormal numbers have the exponent `least`.
    #[inline]
    fn new(value: f32, least: i32) -> Self {
        let exponent = (value.to_bits() >> 23 & 0xFF).cast_signed() - 127;
        Self {
            value: value.into(),
            exponent: match value {
                0.0 => OF_ZERO,
                _ if exponent == 128 => OF_SPECIAL,
                _ => exponent.max(least),
            },
        }
    }
}

/// How wide a sum is: the bits that terms keep below the largest one's exponent, and those of the
/// result's fraction. As found on an H100 for elements of 16 and 32 bits, and on an H200 for e4m3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accumulator {
    aligned: i32,
    fraction: i32,
}

/// The bits of a sum that is NaN.
const NAN: u32 = 0x7FFF_FFFF;

/// The sum of `c` and of the products of a row of A and a column of B, at most 32: each term is cut
/// off below the last bit that is kept of the largest one, and so is the f32 that comes of it. `c`
/// and the sum are bits of an f32. No sum of integers here overflows; a dev build's checks would
/// keep the compiler from making vectors.
pub(super) fn truncated_sum<const MOST: usize>(
    a: &Factors<MOST>,
    b: &Factors<MOST>,
    c: u32,
    accumulator: Accumulator,
) -> u32 {
    let c = Number::new(f32::from_bits(c), -126);
    let mut largest = [c.exponent; 4];
    for (a, b) in a.exponents().iter().zip(b.exponents()) {
        for i in 0..4 {
            largest[i] = largest[i].max(a[i].wrapping_add(b[i]));
        }
    }
    let largest = largest.into_iter().fold(c.exponent, i32::max);
    let factors = a.values().iter().zip(b.values());
    if !(OF_ZERO / 2..OF_SPECIAL / 2).contains(&largest) {
        // All terms are zero, or one is infinite or NaN.
        let factors = factors.flat_map(|(a, b)| a.iter().zip(b));
        let sum = factors.fold(c.value, |sum, (a, b)| sum + a * b);
        return match sum.is_nan() {
            true => NAN,
            false => (sum as f32).to_bits(),
        };
    }
    let unit = largest - accumulator.aligned;
    // 2^-unit
    let scale = f64::from_bits(((1023 - unit) as u64) << 52);
    // SAFETY: its magnitude is less than 2^27, as that of a product is less than 2^(largest + 2),
    // and at most 25 bits are kept below.
    let truncated = |term: f64| unsafe { (term * scale).to_int_unchecked::<i32>() };
    let mut sums = [0_i32; 4];
    for (a, b) in factors {
        for i in 0..4 {
            // The f64 of a product is exact.
            sums[i] = sums[i].wrapping_add(truncated(a[i] * b[i]));
        }
    }
    let sums = sums.map(i64::from).into_iter().sum::<i64>();
    let sum = sums + i64::from(truncated(c.value));
    truncated_to_f32(sum, unit, accumulator.fraction)
}

/// `sum * 2^unit` as the bits of an f32: what does not fit into `fraction` bits after the
/// leading one is cut off, and what is too large is infinite.
fn truncated_to_f32(sum: i64, unit: i32, fraction: i32) -> u32 {
    if sum == 0 {
        return 0; // of terms that cancel each other
    }
    let sign = u32::from(sum < 0) << 31;
    let magnitude = sum.unsigned_abs();
    let length = (u64::BITS - magnitude.leading_zeros()).cast_signed();
    // The exponent of the first bit, or that of subnormal numbers.
    let exponent = (unit + length - 1).max(-126);
    let shift = exponent - fraction - unit;
    let significand = match u32::try_from(shift) {
        Ok(right) => magnitude.checked_shr(right).unwrap_or(0),
        Err(_) => magnitude << shift.unsigned_abs(),
    } as u32;
    let significand = significand << (23 - fraction);
    if exponent > 127 {
        return sign | f32::INFINITY.to_bits();
    }
    // The leading bit of a normal number adds one to the exponent's field; a subnormal number has
    // none.
    let field = (exponent + 126).cast_unsigned();
    sign | ((field << 23) + significand)
}
