; 516: `is_infinite`. 144: `is_subnormal`. 32: is it -0.

define void @kernel(ptr %out, double %a, float %b) section ".nvvm.kernel" {
start:
  %infinite = call i1 @llvm.is.fpclass.f64(double %a, i32 516)
  store i1 %infinite, ptr %out, align 1
  %subnormal = call i1 @llvm.is.fpclass.f32(float %b, i32 144)
  store i1 %subnormal, ptr %out, align 1
  %minus_zero = call i1 @llvm.is.fpclass.f32(float %b, i32 32)
  store i1 %minus_zero, ptr %out, align 1
  ret void
}

declare i1 @llvm.is.fpclass.f64(double, i32 immarg)

declare i1 @llvm.is.fpclass.f32(float, i32 immarg)
