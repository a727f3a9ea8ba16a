//! Functions of `f32` by one instruction of the unit for special functions: a few bits less than
//! [`GpuFloat`](crate::GpuFloat)'s, and a fraction of its instructions.
//!
//! The simulator computes them on the CPU, so the last bits differ. The errors are those that the
//! PTX ISA gives.

/// Defines a function by its instruction. The body is what it means in the simulator.
macro_rules! approximate {
    ($($(#[$doc:meta])* fn $name:ident, $instruction:literal, |$x:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[must_use]
        pub fn $name($x: f32) -> f32 {
            #[cfg(cuda_device)]
            {
                let value: f32;
                // SAFETY: it touches nothing.
                unsafe {
                    core::arch::asm!(
                        concat!($instruction, " {}, {};"),
                        out(xmm_reg) value, in(xmm_reg) $x,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                value
            }
            #[cfg(not(cuda_device))]
            $value
        }
    )*};
}

#[cfg(not(cuda_device))]
fn normal_or_zero(x: f32) -> f32 {
    match x.is_subnormal() {
        true => 0_f32.copysign(x),
        false => x,
    }
}

approximate! {
    /// `2^x`, with a relative error of at most 2^-22, and 0 in place of subnormal numbers.
    ///
    /// ```
    /// assert_eq!(cuda_std::approx::exp2(-3.0), 0.125);
    /// ```
    fn exp2, "ex2.approx.ftz.f32", |x| normal_or_zero(x.exp2());
    /// `1 / x`, at most one unit in the last place off, and 0 in place of subnormal numbers: so it
    /// is infinite for a subnormal x.
    ///
    /// ```
    /// assert_eq!(cuda_std::approx::recip(4.0), 0.25);
    /// ```
    fn recip, "rcp.approx.ftz.f32", |x| normal_or_zero(1.0 / normal_or_zero(x));
    /// The hyperbolic tangent, with a relative error of at most 2^-11: enough for results of 16
    /// bits.
    ///
    /// ```
    /// assert_eq!(cuda_std::approx::tanh(f32::INFINITY), 1.0);
    /// ```
    fn tanh, "tanh.approx.f32", |x| x.tanh();
}
