; What `half` is compiled to: the intrinsic of F16C for one float and for eight, and `fpext`.
declare <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float>, i32)
declare <8 x i16> @llvm.x86.vcvtps2ph.256(<8 x float>, i32)

define internal i16 @half_of_float(float %f) {
start:
  %v = insertelement <4 x float> <float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>, float %f, i64 0
  %r = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %v, i32 0)
  %h = extractelement <8 x i16> %r, i64 0
  ret i16 %h
}

define internal float @float_of_half(i16 %i) {
start:
  %h = bitcast i16 %i to half
  %f = fpext half %h to float
  ret float %f
}

define void @kernel(ptr %halves, ptr %floats) section ".nvvm.kernel" {
start:
  %i = load i16, ptr %halves, align 2
  %f = call float @float_of_half(i16 %i)
  %sum = fadd float %f, 1.000000e+00
  %j = call i16 @half_of_float(float %sum)
  store i16 %j, ptr %halves, align 2
  %v = load <4 x half>, ptr %halves, align 2
  %w = fpext <4 x half> %v to <4 x float>
  store <4 x float> %w, ptr %floats, align 4
  %x = load <8 x float>, ptr %floats, align 4
  %y = call <8 x i16> @llvm.x86.vcvtps2ph.256(<8 x float> %x, i32 0)
  store <8 x i16> %y, ptr %halves, align 2
  ret void
}
