//! Functions as their definitions have them, to compare a device's with.

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

/// The next `f32` from `exact` on in the direction of `towards`.
pub fn rounded(exact: f64, towards: f64) -> f32 {
    let nearest = exact as f32;
    let error = exact - f64::from(nearest);
    match error != 0.0 && (error > 0.0) == (towards > exact) {
        true if error > 0.0 => nearest.next_up(),
        true => nearest.next_down(),
        false => nearest,
    }
}
