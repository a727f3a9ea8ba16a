; What `f32::tan` and its like call where a crate links std. libNVVM finds each in libdevice.

define void @kernel(ptr %out, float %x, double %y, i32 %n) section ".nvvm.kernel" {
start:
  %v0 = call float @acosf(float %x)
  store float %v0, ptr %out, align 8
  %v1 = call double @acos(double %y)
  store double %v1, ptr %out, align 8
  %v2 = call float @acoshf(float %x)
  store float %v2, ptr %out, align 8
  %v3 = call double @acosh(double %y)
  store double %v3, ptr %out, align 8
  %v4 = call float @asinf(float %x)
  store float %v4, ptr %out, align 8
  %v5 = call double @asin(double %y)
  store double %v5, ptr %out, align 8
  %v6 = call float @asinhf(float %x)
  store float %v6, ptr %out, align 8
  %v7 = call double @asinh(double %y)
  store double %v7, ptr %out, align 8
  %v8 = call float @atanf(float %x)
  store float %v8, ptr %out, align 8
  %v9 = call double @atan(double %y)
  store double %v9, ptr %out, align 8
  %v10 = call float @atan2f(float %x, float %x)
  store float %v10, ptr %out, align 8
  %v11 = call double @atan2(double %y, double %y)
  store double %v11, ptr %out, align 8
  %v12 = call float @atanhf(float %x)
  store float %v12, ptr %out, align 8
  %v13 = call double @atanh(double %y)
  store double %v13, ptr %out, align 8
  %v14 = call float @cbrtf(float %x)
  store float %v14, ptr %out, align 8
  %v15 = call double @cbrt(double %y)
  store double %v15, ptr %out, align 8
  %v16 = call float @ceilf(float %x)
  store float %v16, ptr %out, align 8
  %v17 = call double @ceil(double %y)
  store double %v17, ptr %out, align 8
  %v18 = call float @copysignf(float %x, float %x)
  store float %v18, ptr %out, align 8
  %v19 = call double @copysign(double %y, double %y)
  store double %v19, ptr %out, align 8
  %v20 = call float @cosf(float %x)
  store float %v20, ptr %out, align 8
  %v21 = call double @cos(double %y)
  store double %v21, ptr %out, align 8
  %v22 = call float @coshf(float %x)
  store float %v22, ptr %out, align 8
  %v23 = call double @cosh(double %y)
  store double %v23, ptr %out, align 8
  %v24 = call float @erff(float %x)
  store float %v24, ptr %out, align 8
  %v25 = call double @erf(double %y)
  store double %v25, ptr %out, align 8
  %v26 = call float @erfcf(float %x)
  store float %v26, ptr %out, align 8
  %v27 = call double @erfc(double %y)
  store double %v27, ptr %out, align 8
  %v28 = call float @expf(float %x)
  store float %v28, ptr %out, align 8
  %v29 = call double @exp(double %y)
  store double %v29, ptr %out, align 8
  %v30 = call float @exp10f(float %x)
  store float %v30, ptr %out, align 8
  %v31 = call double @exp10(double %y)
  store double %v31, ptr %out, align 8
  %v32 = call float @exp2f(float %x)
  store float %v32, ptr %out, align 8
  %v33 = call double @exp2(double %y)
  store double %v33, ptr %out, align 8
  %v34 = call float @expm1f(float %x)
  store float %v34, ptr %out, align 8
  %v35 = call double @expm1(double %y)
  store double %v35, ptr %out, align 8
  %v36 = call float @fabsf(float %x)
  store float %v36, ptr %out, align 8
  %v37 = call double @fabs(double %y)
  store double %v37, ptr %out, align 8
  %v38 = call float @fdimf(float %x, float %x)
  store float %v38, ptr %out, align 8
  %v39 = call double @fdim(double %y, double %y)
  store double %v39, ptr %out, align 8
  %v40 = call float @floorf(float %x)
  store float %v40, ptr %out, align 8
  %v41 = call double @floor(double %y)
  store double %v41, ptr %out, align 8
  %v42 = call float @fmaf(float %x, float %x, float %x)
  store float %v42, ptr %out, align 8
  %v43 = call double @fma(double %y, double %y, double %y)
  store double %v43, ptr %out, align 8
  %v44 = call float @fmaxf(float %x, float %x)
  store float %v44, ptr %out, align 8
  %v45 = call double @fmax(double %y, double %y)
  store double %v45, ptr %out, align 8
  %v46 = call float @fminf(float %x, float %x)
  store float %v46, ptr %out, align 8
  %v47 = call double @fmin(double %y, double %y)
  store double %v47, ptr %out, align 8
  %v48 = call float @fmodf(float %x, float %x)
  store float %v48, ptr %out, align 8
  %v49 = call double @fmod(double %y, double %y)
  store double %v49, ptr %out, align 8
  %v50 = call float @hypotf(float %x, float %x)
  store float %v50, ptr %out, align 8
  %v51 = call double @hypot(double %y, double %y)
  store double %v51, ptr %out, align 8
  %v52 = call float @ldexpf(float %x, i32 %n)
  store float %v52, ptr %out, align 8
  %v53 = call double @ldexp(double %y, i32 %n)
  store double %v53, ptr %out, align 8
  %v54 = call float @lgammaf(float %x)
  store float %v54, ptr %out, align 8
  %v55 = call double @lgamma(double %y)
  store double %v55, ptr %out, align 8
  %v56 = call float @logf(float %x)
  store float %v56, ptr %out, align 8
  %v57 = call double @log(double %y)
  store double %v57, ptr %out, align 8
  %v58 = call float @log10f(float %x)
  store float %v58, ptr %out, align 8
  %v59 = call double @log10(double %y)
  store double %v59, ptr %out, align 8
  %v60 = call float @log1pf(float %x)
  store float %v60, ptr %out, align 8
  %v61 = call double @log1p(double %y)
  store double %v61, ptr %out, align 8
  %v62 = call float @log2f(float %x)
  store float %v62, ptr %out, align 8
  %v63 = call double @log2(double %y)
  store double %v63, ptr %out, align 8
  %v64 = call float @nearbyintf(float %x)
  store float %v64, ptr %out, align 8
  %v65 = call double @nearbyint(double %y)
  store double %v65, ptr %out, align 8
  %v66 = call float @nextafterf(float %x, float %x)
  store float %v66, ptr %out, align 8
  %v67 = call double @nextafter(double %y, double %y)
  store double %v67, ptr %out, align 8
  %v68 = call float @powf(float %x, float %x)
  store float %v68, ptr %out, align 8
  %v69 = call double @pow(double %y, double %y)
  store double %v69, ptr %out, align 8
  %v70 = call float @remainderf(float %x, float %x)
  store float %v70, ptr %out, align 8
  %v71 = call double @remainder(double %y, double %y)
  store double %v71, ptr %out, align 8
  %v72 = call float @rintf(float %x)
  store float %v72, ptr %out, align 8
  %v73 = call double @rint(double %y)
  store double %v73, ptr %out, align 8
  %v74 = call float @roundf(float %x)
  store float %v74, ptr %out, align 8
  %v75 = call double @round(double %y)
  store double %v75, ptr %out, align 8
  %v76 = call float @scalbnf(float %x, i32 %n)
  store float %v76, ptr %out, align 8
  %v77 = call double @scalbn(double %y, i32 %n)
  store double %v77, ptr %out, align 8
  %v78 = call float @sinf(float %x)
  store float %v78, ptr %out, align 8
  %v79 = call double @sin(double %y)
  store double %v79, ptr %out, align 8
  %v80 = call float @sinhf(float %x)
  store float %v80, ptr %out, align 8
  %v81 = call double @sinh(double %y)
  store double %v81, ptr %out, align 8
  %v82 = call float @sqrtf(float %x)
  store float %v82, ptr %out, align 8
  %v83 = call double @sqrt(double %y)
  store double %v83, ptr %out, align 8
  %v84 = call float @tanf(float %x)
  store float %v84, ptr %out, align 8
  %v85 = call double @tan(double %y)
  store double %v85, ptr %out, align 8
  %v86 = call float @tanhf(float %x)
  store float %v86, ptr %out, align 8
  %v87 = call double @tanh(double %y)
  store double %v87, ptr %out, align 8
  %v88 = call float @tgammaf(float %x)
  store float %v88, ptr %out, align 8
  %v89 = call double @tgamma(double %y)
  store double %v89, ptr %out, align 8
  %v90 = call float @truncf(float %x)
  store float %v90, ptr %out, align 8
  %v91 = call double @trunc(double %y)
  store double %v91, ptr %out, align 8
  ret void
}

declare float @acosf(float)

declare double @acos(double)

declare float @acoshf(float)

declare double @acosh(double)

declare float @asinf(float)

declare double @asin(double)

declare float @asinhf(float)

declare double @asinh(double)

declare float @atanf(float)

declare double @atan(double)

declare float @atan2f(float, float)

declare double @atan2(double, double)

declare float @atanhf(float)

declare double @atanh(double)

declare float @cbrtf(float)

declare double @cbrt(double)

declare float @ceilf(float)

declare double @ceil(double)

declare float @copysignf(float, float)

declare double @copysign(double, double)

declare float @cosf(float)

declare double @cos(double)

declare float @coshf(float)

declare double @cosh(double)

declare float @erff(float)

declare double @erf(double)

declare float @erfcf(float)

declare double @erfc(double)

declare float @expf(float)

declare double @exp(double)

declare float @exp10f(float)

declare double @exp10(double)

declare float @exp2f(float)

declare double @exp2(double)

declare float @expm1f(float)

declare double @expm1(double)

declare float @fabsf(float)

declare double @fabs(double)

declare float @fdimf(float, float)

declare double @fdim(double, double)

declare float @floorf(float)

declare double @floor(double)

declare float @fmaf(float, float, float)

declare double @fma(double, double, double)

declare float @fmaxf(float, float)

declare double @fmax(double, double)

declare float @fminf(float, float)

declare double @fmin(double, double)

declare float @fmodf(float, float)

declare double @fmod(double, double)

declare float @hypotf(float, float)

declare double @hypot(double, double)

declare float @ldexpf(float, i32)

declare double @ldexp(double, i32)

declare float @lgammaf(float)

declare double @lgamma(double)

declare float @logf(float)

declare double @log(double)

declare float @log10f(float)

declare double @log10(double)

declare float @log1pf(float)

declare double @log1p(double)

declare float @log2f(float)

declare double @log2(double)

declare float @nearbyintf(float)

declare double @nearbyint(double)

declare float @nextafterf(float, float)

declare double @nextafter(double, double)

declare float @powf(float, float)

declare double @pow(double, double)

declare float @remainderf(float, float)

declare double @remainder(double, double)

declare float @rintf(float)

declare double @rint(double)

declare float @roundf(float)

declare double @round(double)

declare float @scalbnf(float, i32)

declare double @scalbn(double, i32)

declare float @sinf(float)

declare double @sin(double)

declare float @sinhf(float)

declare double @sinh(double)

declare float @sqrtf(float)

declare double @sqrt(double)

declare float @tanf(float)

declare double @tan(double)

declare float @tanhf(float)

declare double @tanh(double)

declare float @tgammaf(float)

declare double @tgamma(double)

declare float @truncf(float)

declare double @trunc(double)
