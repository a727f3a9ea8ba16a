; What `f32::sin` and its like are where a crate links std.

define void @kernel(ptr %out, float %x, double %y, i32 %n) section ".nvvm.kernel" {
start:
  %v0 = call float @llvm.acos.f32(float %x)
  store float %v0, ptr %out, align 8
  %v1 = call double @llvm.acos.f64(double %y)
  store double %v1, ptr %out, align 8
  %v2 = call float @llvm.asin.f32(float %x)
  store float %v2, ptr %out, align 8
  %v3 = call double @llvm.asin.f64(double %y)
  store double %v3, ptr %out, align 8
  %v4 = call float @llvm.atan.f32(float %x)
  store float %v4, ptr %out, align 8
  %v5 = call double @llvm.atan.f64(double %y)
  store double %v5, ptr %out, align 8
  %v6 = call float @llvm.atan2.f32(float %x, float %x)
  store float %v6, ptr %out, align 8
  %v7 = call double @llvm.atan2.f64(double %y, double %y)
  store double %v7, ptr %out, align 8
  %v8 = call float @llvm.cos.f32(float %x)
  store float %v8, ptr %out, align 8
  %v9 = call double @llvm.cos.f64(double %y)
  store double %v9, ptr %out, align 8
  %v10 = call float @llvm.cosh.f32(float %x)
  store float %v10, ptr %out, align 8
  %v11 = call double @llvm.cosh.f64(double %y)
  store double %v11, ptr %out, align 8
  %v12 = call float @llvm.exp.f32(float %x)
  store float %v12, ptr %out, align 8
  %v13 = call double @llvm.exp.f64(double %y)
  store double %v13, ptr %out, align 8
  %v14 = call float @llvm.exp10.f32(float %x)
  store float %v14, ptr %out, align 8
  %v15 = call double @llvm.exp10.f64(double %y)
  store double %v15, ptr %out, align 8
  %v16 = call float @llvm.exp2.f32(float %x)
  store float %v16, ptr %out, align 8
  %v17 = call double @llvm.exp2.f64(double %y)
  store double %v17, ptr %out, align 8
  %v18 = call float @llvm.ldexp.f32.i32(float %x, i32 %n)
  store float %v18, ptr %out, align 8
  %v19 = call double @llvm.ldexp.f64.i32(double %y, i32 %n)
  store double %v19, ptr %out, align 8
  %v20 = call float @llvm.log.f32(float %x)
  store float %v20, ptr %out, align 8
  %v21 = call double @llvm.log.f64(double %y)
  store double %v21, ptr %out, align 8
  %v22 = call float @llvm.log10.f32(float %x)
  store float %v22, ptr %out, align 8
  %v23 = call double @llvm.log10.f64(double %y)
  store double %v23, ptr %out, align 8
  %v24 = call float @llvm.log2.f32(float %x)
  store float %v24, ptr %out, align 8
  %v25 = call double @llvm.log2.f64(double %y)
  store double %v25, ptr %out, align 8
  %v26 = call float @llvm.pow.f32(float %x, float %x)
  store float %v26, ptr %out, align 8
  %v27 = call double @llvm.pow.f64(double %y, double %y)
  store double %v27, ptr %out, align 8
  %v28 = call float @llvm.powi.f32.i32(float %x, i32 %n)
  store float %v28, ptr %out, align 8
  %v29 = call double @llvm.powi.f64.i32(double %y, i32 %n)
  store double %v29, ptr %out, align 8
  %v30 = call float @llvm.round.f32(float %x)
  store float %v30, ptr %out, align 8
  %v31 = call double @llvm.round.f64(double %y)
  store double %v31, ptr %out, align 8
  %v32 = call float @llvm.sin.f32(float %x)
  store float %v32, ptr %out, align 8
  %v33 = call double @llvm.sin.f64(double %y)
  store double %v33, ptr %out, align 8
  %v34 = call float @llvm.sinh.f32(float %x)
  store float %v34, ptr %out, align 8
  %v35 = call double @llvm.sinh.f64(double %y)
  store double %v35, ptr %out, align 8
  %v36 = call float @llvm.tan.f32(float %x)
  store float %v36, ptr %out, align 8
  %v37 = call double @llvm.tan.f64(double %y)
  store double %v37, ptr %out, align 8
  %v38 = call float @llvm.tanh.f32(float %x)
  store float %v38, ptr %out, align 8
  %v39 = call double @llvm.tanh.f64(double %y)
  store double %v39, ptr %out, align 8
  ret void
}

declare float @llvm.acos.f32(float)

declare double @llvm.acos.f64(double)

declare float @llvm.asin.f32(float)

declare double @llvm.asin.f64(double)

declare float @llvm.atan.f32(float)

declare double @llvm.atan.f64(double)

declare float @llvm.atan2.f32(float, float)

declare double @llvm.atan2.f64(double, double)

declare float @llvm.cos.f32(float)

declare double @llvm.cos.f64(double)

declare float @llvm.cosh.f32(float)

declare double @llvm.cosh.f64(double)

declare float @llvm.exp.f32(float)

declare double @llvm.exp.f64(double)

declare float @llvm.exp10.f32(float)

declare double @llvm.exp10.f64(double)

declare float @llvm.exp2.f32(float)

declare double @llvm.exp2.f64(double)

declare float @llvm.ldexp.f32.i32(float, i32)

declare double @llvm.ldexp.f64.i32(double, i32)

declare float @llvm.log.f32(float)

declare double @llvm.log.f64(double)

declare float @llvm.log10.f32(float)

declare double @llvm.log10.f64(double)

declare float @llvm.log2.f32(float)

declare double @llvm.log2.f64(double)

declare float @llvm.pow.f32(float, float)

declare double @llvm.pow.f64(double, double)

declare float @llvm.powi.f32.i32(float, i32)

declare double @llvm.powi.f64.i32(double, i32)

declare float @llvm.round.f32(float)

declare double @llvm.round.f64(double)

declare float @llvm.sin.f32(float)

declare double @llvm.sin.f64(double)

declare float @llvm.sinh.f32(float)

declare double @llvm.sinh.f64(double)

declare float @llvm.tan.f32(float)

declare double @llvm.tan.f64(double)

declare float @llvm.tanh.f32(float)

declare double @llvm.tanh.f64(double)
