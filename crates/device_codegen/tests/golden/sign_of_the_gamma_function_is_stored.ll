; What `f32::ln_gamma` and `f64::ln_gamma` call where a crate links std.

define void @kernel(ptr %out, float %x, double %y) section ".nvvm.kernel" {
start:
  %a = call float @lgammaf_r(float %x, ptr %out)
  store float %a, ptr %out, align 4
  %b = call double @lgamma_r(double %y, ptr %out)
  store double %b, ptr %out, align 8
  ret void
}

declare float @lgammaf_r(float, ptr)

declare double @lgamma_r(double, ptr)
