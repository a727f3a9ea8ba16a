; fabs, trunc and rint under names of its own, copysign by bits.

define void @kernel(ptr %out, float %a, double %b) section ".nvvm.kernel" {
start:
  %root = call noundef float @__nvvm_sqrt_f32(float noundef %a)
  %fused = call noundef float @__nvvm_fma_f32(float noundef %root, float noundef %a, float noundef 0x3FB99999A0000000)
  %positive = call float @llvm.fabs.f32(float %fused)
  %whole = call noundef float @__nvvm_rint_f32(float noundef %positive)
  store float %whole, ptr %out, align 4
  %least = call noundef double @__nvvm_fmin_f64(double noundef %b, double noundef 1.000000e+00)
  %cut = call noundef double @__nvvm_trunc_f64(double noundef %least)
  %signed = call double @llvm.copysign.f64(double %cut, double -1.000000e+00)
  store double %signed, ptr %out, align 8
  ret void
}

declare noundef float @__nvvm_sqrt_f32(float noundef) unnamed_addr

declare noundef float @__nvvm_fma_f32(float noundef, float noundef, float noundef) unnamed_addr

declare float @llvm.fabs.f32(float)

declare noundef float @__nvvm_rint_f32(float noundef) unnamed_addr

declare noundef double @__nvvm_fmin_f64(double noundef, double noundef) unnamed_addr

declare noundef double @__nvvm_trunc_f64(double noundef) unnamed_addr

declare double @llvm.copysign.f64(double, double)
