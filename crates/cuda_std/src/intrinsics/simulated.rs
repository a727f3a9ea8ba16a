//! Functions that neither `std` nor the `libm` crate has, for the simulator.

use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

/// `x` modulo 2, from -1 to 1.
fn half_turns(x: f64) -> f64 {
    x - 2.0 * (x / 2.0).round()
}

/// The sine of `x * pi`.
pub(super) fn sin_pi(x: f64) -> f64 {
    let turns = half_turns(x);
    let folded = if turns.abs() > 0.5 {
        turns.signum() - turns
    } else {
        turns
    };
    // A whole number gives a zero with the sign of `x`.
    if folded == 0.0 {
        0.0_f64.copysign(x)
    } else {
        (PI * folded).sin()
    }
}

/// The cosine of `x * pi`.
pub(super) fn cos_pi(x: f64) -> f64 {
    let turns = half_turns(x).abs();
    if turns < 0.25 {
        (PI * turns).cos()
    } else {
        (PI * (0.5 - turns)).sin()
    }
}

/// The exponent to base 2.
pub(super) fn exponent(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_finite() {
        f64::from(libm::ilogb(x))
    } else {
        x.abs()
    }
}

/// The inverse of the complementary error function.
pub(super) fn erfc_inv(x: f64) -> f64 {
    if x > 1.0 {
        return -erfc_inv(2.0 - x);
    }
    if x > 0.5 {
        return erf_inv(1.0 - x);
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    // A rational approximation with three digits (Abramowitz and Stegun, 26.2.22), and Halley's
    // method, which triples the digits each time.
    let t = (-2.0 * (x / 2.0).ln()).sqrt();
    let mut root = (t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))) / SQRT_2;
    for _ in 0..3 {
        let error = libm::erfc(root) - x;
        root += error / (FRAC_2_SQRT_PI * (-root * root).exp() - root * error);
    }
    root
}

/// The inverse of the error function.
pub(super) fn erf_inv(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return erfc_inv(1.0 - x.abs()).copysign(x);
    }
    let mut root = x / FRAC_2_SQRT_PI;
    for _ in 0..4 {
        let error = libm::erf(root) - x;
        root -= error / (FRAC_2_SQRT_PI * (-root * root).exp() + root * error);
    }
    root
}

/// The scaled complementary error function.
pub(super) fn erfc_scaled(x: f64) -> f64 {
    if x < 3.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    if x.is_infinite() {
        return 0.0;
    }
    // The continued fraction 1 / (x + (1/2) / (x + (2/2) / (x + (3/2) / ...))).
    let fraction = (1..=80)
        .rev()
        .fold(x, |rest, n| x + f64::from(n) / 2.0 / rest);
    FRAC_2_SQRT_PI / 2.0 / fraction
}

/// The probability that a standard normal variable is at most `x`.
pub(super) fn normal_cdf(x: f64) -> f64 {
    libm::erfc(-x / SQRT_2) / 2.0
}

/// The inverse of [`normal_cdf`].
pub(super) fn normal_cdf_inv(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}
