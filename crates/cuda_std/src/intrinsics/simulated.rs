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

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() <= 4e-15 * want.abs(), "{got} != {want}");
    }

    #[test]
    fn functions_have_the_values_of_the_tables() {
        // Abramowitz and Stegun, tables 7.1 and 26.1, and Wolfram Alpha.
        assert_close(erf_inv(0.5), 0.476_936_276_204_469_9);
        assert_close(erf_inv(-0.1), -0.088_855_990_494_257_69);
        assert_close(erfc_inv(1e-10), 4.572_824_967_389_486);
        assert_close(erfc_inv(1.9), -1.163_087_153_676_674);
        assert_close(erfc_scaled(1.0), 0.427_583_576_155_807);
        assert_close(erfc_scaled(10.0), 0.056_140_992_743_822_58);
        assert_close(normal_cdf(1.0), 0.841_344_746_068_542_9);
        assert_close(normal_cdf_inv(0.975), 1.959_963_984_540_054);
    }

    #[test]
    fn inverses_undo() {
        for i in 1..200 {
            let x = f64::from(i) / 100.0;
            assert_close(libm::erfc(erfc_inv(x)), x);
            assert_close(libm::erf(erf_inv(x / 2.01)), x / 2.01);
        }
    }

    #[test]
    fn multiples_of_pi_are_exact_at_halves() {
        for i in -8..8_i32 {
            let sign = if i.rem_euclid(2) == 0 { 1.0 } else { -1.0 };
            assert_eq!(sin_pi(f64::from(i)), 0.0);
            assert_eq!(sin_pi(f64::from(i) + 0.5), sign);
            assert_eq!(cos_pi(f64::from(i)), sign);
            assert_eq!(cos_pi(f64::from(i) + 0.5), 0.0);
            assert_close(sin_pi(f64::from(i) + 0.25), sign * 0.5_f64.sqrt());
        }
    }
}
