; `x as i32`, `x as u128`: the limits out of range, 0 for NaN.

define void @kernel(ptr %out, float %a, double %b) section ".nvvm.kernel" {
start:
  %signed = call i32 @llvm.fptosi.sat.i32.f32(float %a)
  store i32 %signed, ptr %out, align 4
  %wide = call i128 @llvm.fptoui.sat.i128.f32(float %a)
  store i128 %wide, ptr %out, align 16
  %byte = call i8 @llvm.fptoui.sat.i8.f64(double %b)
  store i8 %byte, ptr %out, align 1
  ret void
}

declare i32 @llvm.fptosi.sat.i32.f32(float)

declare i128 @llvm.fptoui.sat.i128.f32(float)

declare i8 @llvm.fptoui.sat.i8.f64(double)
