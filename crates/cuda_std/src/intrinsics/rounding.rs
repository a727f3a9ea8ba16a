//! Rounds in a direction, for the simulator.
//!
//! The CPU rounds to nearest. The other roundings give that number or its neighbour; which one
//! follows from the sign of the error, and that is computed without error (Knuth's sum of two,
//! fused products).

/// Where to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Nearest,
    Zero,
    Up,
    Down,
}

/// The nearest number, and the exact one minus it: at least the sign is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounded<T> {
    nearest: T,
    error: f64,
    /// Whether it is the zero of a sum of opposite numbers, which is negative if rounded down.
    cancels: bool,
}

macro_rules! rounded {
    ($($float:ty)*) => {
        $(
            impl Rounded<$float> {
                fn new(nearest: $float, error: f64) -> Self {
                    Self { nearest, error, cancels: false }
                }

                pub fn to(self, direction: Direction) -> $float {
                    let Self { nearest, error, cancels } = self;
                    let is_away = if nearest > 0.0 { error < 0.0 } else { error > 0.0 };
                    match direction {
                        Direction::Up if error > 0.0 => nearest.next_up(),
                        Direction::Down if error < 0.0 => nearest.next_down(),
                        Direction::Down if cancels => -0.0,
                        Direction::Zero if nearest > 0.0 && is_away => nearest.next_down(),
                        Direction::Zero if nearest < 0.0 && is_away => nearest.next_up(),
                        _ => nearest,
                    }
                }
            }
        )*
    };
}
rounded!(f32 f64);

/// A number as an unevaluated sum of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    high: f64,
    low: f64,
    cancels: bool,
}

impl Sum {
    pub fn exact(x: f64) -> Self {
        Self {
            high: x,
            low: 0.0,
            cancels: false,
        }
    }

    /// `x + y`.
    pub fn of(x: f64, y: f64) -> Self {
        let high = x + y;
        let of_y = high - x;
        let low = (x - (high - of_y)) + (y - of_y);
        let cancels = high == 0.0 && x.is_sign_negative() != y.is_sign_negative();
        // Infinite numbers are exact.
        let low = if low.is_nan() { 0.0 } else { low };
        Self { high, low, cancels }
    }

    pub fn of_integer(x: i128) -> Self {
        let high = x as f64;
        Self {
            high,
            low: (x - high as i128) as f64,
            cancels: false,
        }
    }

    /// Beside the nearest `f32`.
    pub fn rounded(self, nearest: f32) -> Rounded<f32> {
        let error = (self.high - f64::from(nearest)) + self.low;
        Rounded {
            cancels: self.cancels,
            ..Rounded::<f32>::new(nearest, error)
        }
    }
}

pub(super) fn divide_single(x: f32, y: f32) -> Rounded<f32> {
    let nearest = x / y;
    let remainder = f64::from(x) - f64::from(nearest) * f64::from(y);
    Rounded::<f32>::new(nearest, remainder * f64::from(y).signum())
}

pub(super) fn square_root_single(x: f32) -> Rounded<f32> {
    let nearest = x.sqrt();
    let root = f64::from(nearest);
    Rounded::<f32>::new(nearest, f64::from(x) - root * root)
}

pub(super) fn of_integer(x: i128) -> Rounded<f64> {
    let sum = Sum::of_integer(x);
    Rounded::<f64>::new(sum.high, sum.low)
}

/// Infinite although its operands are not: too large.
fn overflow(nearest: f64, operands: &[f64]) -> Option<Rounded<f64>> {
    let overflows = nearest.is_infinite() && operands.iter().all(|operand| operand.is_finite());
    overflows.then(|| Rounded::<f64>::new(nearest, -nearest))
}

pub(super) fn add(x: f64, y: f64) -> Rounded<f64> {
    let sum = Sum::of(x, y);
    overflow(sum.high, &[x, y]).unwrap_or(Rounded {
        cancels: sum.cancels,
        ..Rounded::<f64>::new(sum.high, sum.low)
    })
}

/// Results below this have an error that may be too small to represent, and are scaled.
const SMALL: f64 = 1e-250;
/// 2^400.
const SCALE: f64 = f64::from_bits((1023 + 400) << 52);

pub(super) fn multiply(x: f64, y: f64) -> Rounded<f64> {
    let nearest = x * y;
    overflow(nearest, &[x, y]).unwrap_or_else(|| {
        let (smaller, larger) = if x.abs() < y.abs() { (x, y) } else { (y, x) };
        let scale = if nearest.abs() < SMALL { SCALE } else { 1.0 };
        let error = (smaller * scale).mul_add(larger, -(nearest * scale));
        Rounded::<f64>::new(nearest, error)
    })
}

pub(super) fn divide(x: f64, y: f64) -> Rounded<f64> {
    let nearest = x / y;
    if y == 0.0 {
        return Rounded::<f64>::new(nearest, 0.0);
    }
    overflow(nearest, &[x, y]).unwrap_or_else(|| {
        let scale = if x.abs() < SMALL { SCALE } else { 1.0 };
        let remainder = (-nearest * scale).mul_add(y, x * scale);
        Rounded::<f64>::new(nearest, remainder * y.signum())
    })
}

pub(super) fn square_root(x: f64) -> Rounded<f64> {
    let nearest = x.sqrt();
    let scale = if x < SMALL { SCALE } else { 1.0 };
    let root = nearest * scale.sqrt();
    Rounded::<f64>::new(nearest, (-root).mul_add(root, x * scale))
}

/// The error of a fused sum is a sum of two (Boldo and Muller, 2005).
pub(super) fn multiply_add(x: f64, y: f64, z: f64) -> Rounded<f64> {
    let nearest = x.mul_add(y, z);
    overflow(nearest, &[x, y, z]).unwrap_or_else(|| {
        let product = x * y;
        let of_product = x.mul_add(y, -product);
        let small = Sum::of(z, of_product);
        let large = Sum::of(product, small.high);
        let error = ((large.high - nearest) + large.low) + small.low;
        let cancels =
            nearest == 0.0 && error == 0.0 && product.is_sign_negative() != z.is_sign_negative();
        Rounded {
            cancels,
            ..Rounded::<f64>::new(nearest, error)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Direction::{Down, Nearest, Up, Zero};
    use super::*;

    const TINY: f64 = f64::from_bits(1);

    fn all(rounded: Rounded<f64>) -> [f64; 4] {
        [Nearest, Zero, Up, Down].map(|direction| rounded.to(direction))
    }

    #[test]
    fn large_and_small_results_go_where_they_are_told() {
        let (max, inf) = (f64::MAX, f64::INFINITY);
        assert_eq!(all(add(max, max)), [inf, max, inf, max]);
        assert_eq!(all(multiply(max, -2.0)), [-inf, -max, -max, -inf]);
        assert_eq!(all(divide(1.0, 0.0)), [inf; 4]);
        assert_eq!(all(multiply(TINY, 0.25)), [0.0, 0.0, TINY, 0.0]);
        assert_eq!(all(divide(TINY, -4.0)), [-0.0, -0.0, -0.0, -TINY]);
        assert_eq!(all(square_root(TINY)), [TINY.sqrt(); 4]); // 2^-537
        assert!(add(1.0, -1.0).to(Down).is_sign_negative());
        assert!(add(1.0, -1.0).to(Up).is_sign_positive());
    }

    #[test]
    fn integers_go_where_they_are_told() {
        let x = (1_i128 << 60) + 1;
        let below = (1_u64 << 60) as f64;
        assert_eq!(all(of_integer(x)), [below, below, below.next_up(), below]);
        assert_eq!(
            all(of_integer(-x)),
            [-below, -below, -below, -below.next_up()]
        );
    }
}
