//! Functions of `f32` by one instruction of the unit for special functions: a few bits less than
//! [`GpuFloat`](crate::GpuFloat)'s, and a fraction of its instructions.
//!
//! Numbers below the smallest normal one are taken and returned as 0 of the same sign. The simulator
//! computes the functions on the CPU, so the last bits differ. The errors are from the PTX ISA.

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
            {
                let $x = without_subnormals($x);
                without_subnormals($value)
            }
        }
    )*};
}

#[cfg(not(cuda_device))]
fn without_subnormals(x: f32) -> f32 {
    match x.is_subnormal() {
        true => 0_f32.copysign(x),
        false => x,
    }
}

approximate! {
    /// `2^x`, with a relative error of at most 2^-22.
    ///
    /// ```
    /// assert_eq!(cuda_std::approx::exp2(-3.0), 0.125);
    /// ```
    fn exp2, "ex2.approx.ftz.f32", |x| x.exp2();
    /// `1 / x`, at most one unit in the last place off.
    fn recip, "rcp.approx.ftz.f32", |x| 1.0 / x;
    /// The hyperbolic tangent, with a relative error of 2^-11: enough for results of 16 bits.
    fn tanh, "tanh.approx.f32", |x| x.tanh();
}
