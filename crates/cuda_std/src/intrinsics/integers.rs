//! Operations on integers. Those whose name begins with `u` take theirs to be unsigned.

libdevice! {
    /// The magnitude, modulo 2^32.
    fn abs(x: i32) -> i32 { x.wrapping_abs() }
    /// The magnitude, modulo 2^64.
    fn llabs(x: i64) -> i64 { x.wrapping_abs() }
    /// The lesser of the two.
    fn min(x: i32, y: i32) -> i32 { x.min(y) }
    /// The lesser of the two.
    fn llmin(x: i64, y: i64) -> i64 { x.min(y) }
    /// The lesser of the two.
    fn umin(x: i32, y: i32) -> i32 { x.cast_unsigned().min(y.cast_unsigned()).cast_signed() }
    /// The lesser of the two.
    fn ullmin(x: i64, y: i64) -> i64 { x.cast_unsigned().min(y.cast_unsigned()).cast_signed() }
    /// The greater of the two.
    fn max(x: i32, y: i32) -> i32 { x.max(y) }
    /// The greater of the two.
    fn llmax(x: i64, y: i64) -> i64 { x.max(y) }
    /// The greater of the two.
    fn umax(x: i32, y: i32) -> i32 { x.cast_unsigned().max(y.cast_unsigned()).cast_signed() }
    /// The greater of the two.
    fn ullmax(x: i64, y: i64) -> i64 { x.cast_unsigned().max(y.cast_unsigned()).cast_signed() }

    /// The bits in reverse.
    fn brev(x: i32) -> i32 { x.reverse_bits() }
    /// The bits in reverse.
    fn brevll(x: i64) -> i64 { x.reverse_bits() }
    /// The zeros above the highest 1.
    fn clz(x: i32) -> i32 { x.leading_zeros() as i32 }
    /// The zeros above the highest 1.
    fn clzll(x: i64) -> i32 { x.leading_zeros() as i32 }
    /// The place of the lowest 1, counted from 1; 0 if there is none.
    fn ffs(x: i32) -> i32 { if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 } }
    /// The place of the lowest 1, counted from 1; 0 if there is none.
    fn ffsll(x: i64) -> i32 { if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 } }
    /// The number of ones.
    fn popc(x: i32) -> i32 { x.count_ones() as i32 }
    /// The number of ones.
    fn popcll(x: i64) -> i32 { x.count_ones() as i32 }
    /// Four of the eight bytes of `x` (0 to 3) and `y` (4 to 7): byte i of the result is the one
    /// that bits 4 i to 4 i + 2 of `selector` name.
    fn byte_perm(x: i32, y: i32, selector: i32) -> i32 {
        let bytes = u64::from(y.cast_unsigned()) << 32 | u64::from(x.cast_unsigned());
        let byte = |i: u32| (bytes >> (8 * (selector >> (4 * i) & 7)) & 0xFF) << (8 * i);
        (0..4).map(byte).sum::<u64>() as i32
    }

    /// The mean, rounded down.
    fn hadd(x: i32, y: i32) -> i32 { ((i64::from(x) + i64::from(y)) >> 1) as i32 }
    /// The mean, rounded up.
    fn rhadd(x: i32, y: i32) -> i32 { ((i64::from(x) + i64::from(y) + 1) >> 1) as i32 }
    /// The mean, rounded down.
    fn uhadd(x: i32, y: i32) -> i32 { ((wide(x) + wide(y)) >> 1) as i32 }
    /// The mean, rounded up.
    fn urhadd(x: i32, y: i32) -> i32 { ((wide(x) + wide(y) + 1) >> 1) as i32 }
    /// The distance of `x` and `y`, plus `z`.
    fn sad(x: i32, y: i32, z: i32) -> i32 {
        z.wrapping_add(x.abs_diff(y).cast_signed())
    }
    /// The distance of `x` and `y`, plus `z`.
    fn usad(x: i32, y: i32, z: i32) -> i32 {
        z.wrapping_add(x.cast_unsigned().abs_diff(y.cast_unsigned()).cast_signed())
    }
    /// The lower 32 bits of the product of the lower 24 bits.
    fn mul24(x: i32, y: i32) -> i32 { (x << 8 >> 8).wrapping_mul(y << 8 >> 8) }
    /// The lower 32 bits of the product of the lower 24 bits.
    fn umul24(x: i32, y: i32) -> i32 { (x & 0xFF_FFFF).wrapping_mul(y & 0xFF_FFFF) }
    /// The upper half of the product.
    fn mulhi(x: i32, y: i32) -> i32 { ((i64::from(x) * i64::from(y)) >> 32) as i32 }
    /// The upper half of the product.
    fn umulhi(x: i32, y: i32) -> i32 { ((wide(x) * wide(y)) >> 32) as i32 }
    /// The upper half of the product.
    fn mul64hi(x: i64, y: i64) -> i64 { ((i128::from(x) * i128::from(y)) >> 64) as i64 }
    /// The upper half of the product.
    fn umul64hi(x: i64, y: i64) -> i64 {
        ((u128::from(x.cast_unsigned()) * u128::from(y.cast_unsigned())) >> 64) as i64
    }
}

#[cfg(not(cuda_device))]
fn wide(x: i32) -> u64 {
    x.cast_unsigned().into()
}
