//! Functions computed from their definitions, to compare a device's with.

use std::f64::consts::{FRAC_2_PI, FRAC_2_SQRT_PI, PI};

/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// The error function, by its power series.
pub fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..80 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    FRAC_2_SQRT_PI * sum
}

/// The Bessel function of the first kind, by its power series.
pub fn bessel_j(order: i32, x: f64) -> f64 {
    let mut term = (1..=order).fold(1.0, |term, n| term * x / 2.0 / f64::from(n));
    let mut sum = term;
    for k in 1..40 {
        term *= -x * x / 4.0 / f64::from(k * (k + order));
        sum += term;
    }
    sum
}

/// The Bessel function of the second kind: of order 0 by its power series, of order 1 by the
/// Wronskian, of others by their recurrence.
pub fn bessel_y(order: i32, x: f64) -> f64 {
    let (j0, j1) = (bessel_j(0, x), bessel_j(1, x));
    let (mut term, mut harmonic, mut sum) = (1.0, 0.0, 0.0);
    for k in 1..40 {
        term *= -x * x / 4.0 / f64::from(k * k);
        harmonic += 1.0 / f64::from(k);
        sum -= harmonic * term;
    }
    let y0 = FRAC_2_PI * (((x / 2.0).ln() + GAMMA) * j0 + sum);
    let y1 = (j1 * y0 - FRAC_2_PI / x) / j0;
    match order {
        0 => y0,
        1 => y1,
        _ => 2.0 * f64::from(order - 1) / x * bessel_y(order - 1, x) - bessel_y(order - 2, x),
    }
}

/// The logarithm of the gamma function, by Stirling's series.
pub fn ln_gamma(x: f64) -> f64 {
    let (product, z) = (0..12).fold((1.0, x), |(product, z), _| (product * z, z + 1.0));
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5));
    (z - 0.5) * z.ln() - z + (2.0 * PI).ln() / 2.0 + series - f64::ln(product)
}

/// The next `f32` from `exact` in the direction of `towards`.
pub fn rounded(exact: f64, towards: f64) -> f32 {
    let nearest = exact as f32;
    let error = exact - f64::from(nearest);
    match error != 0.0 && (error > 0.0) == (towards > exact) {
        true if error > 0.0 => nearest.next_up(),
        true => nearest.next_down(),
        false => nearest,
    }
}

/// A format of floats of 16 bits: the number of fraction bits, and the exponent's bias.
#[derive(Clone, Copy)]
pub struct Half {
    pub fraction: i32,
    pub bias: i32,
}

impl Half {
    /// 1.0
    pub fn one(self) -> u16 {
        (self.bias << self.fraction) as u16
    }

    /// A finite float as an integer and the exponent of its last bit.
    fn take_apart(self, bits: u16) -> (i128, i32) {
        let exponent = i32::from(bits & 0x7FFF) >> self.fraction;
        let first = if exponent == 0 { 0 } else { 1 << self.fraction };
        let digits = i128::from(i32::from(bits) & ((1 << self.fraction) - 1) | first);
        let sign = if bits >> 15 == 1 { -1 } else { 1 };
        (sign * digits, exponent.max(1) - self.bias - self.fraction)
    }

    /// The float nearest to `number * 2^exponent`; ties go to even. It counts the floats with a
    /// midpoint to the next one that is below the number.
    pub fn nearest(self, number: i128, exponent: i32) -> u16 {
        let infinity = 0x7FFF >> self.fraction << self.fraction;
        let is_below = |bits: &u16| {
            let (digits, last) = self.take_apart(*bits);
            let (mut middle, mut number) = (2 * digits + 1, number.abs());
            match last - 1 - exponent {
                more @ 0.. => middle = shifted(middle, more),
                less => number = shifted(number, -less),
            }
            middle < number || middle == number && bits % 2 == 1
        };
        let sign = if number < 0 { 0x8000 } else { 0 };
        sign | (0..infinity).take_while(is_below).count() as u16
    }

    /// `a * b + c` of finite floats, rounded once.
    pub fn fused(self, a: u16, b: u16, c: u16) -> u16 {
        let [(a_digits, a_last), (b_digits, b_last), (c_digits, c_last)] =
            [a, b, c].map(|bits| match bits & 0x7FFF {
                0 => (0, 0),
                _ => self.take_apart(bits),
            });
        let last = (a_last + b_last).min(c_last);
        let product = shifted(a_digits * b_digits, a_last + b_last - last);
        match product + shifted(c_digits, c_last - last) {
            // Negative only if both are.
            0 => (a ^ b) & c & 0x8000,
            sum => self.nearest(sum, last),
        }
    }
}

/// `number * 2^places`, saturated.
fn shifted(number: i128, places: i32) -> i128 {
    match places as u32 + 1 < number.unsigned_abs().leading_zeros() {
        true => number << places,
        false => i128::MAX * number.signum(),
    }
}
