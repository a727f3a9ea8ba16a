; run 1 groups of 1
; with 0x3f800000
; gives 0x40000000 0x3f800000 2 0
; The same word as an integer, as a float, and as bytes; a pointer that is stored is the same pointer.
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @reinterpret(ptr %out) section ".nvvm.kernel" {
start:
  %slot = alloca [16 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %slot, i8 0, i64 16, i1 false)
  %old = load i32, ptr %out, align 4
  store float 2.000000e+00, ptr %out, align 4
  %new = load i32, ptr %out, align 4
  store i32 %new, ptr %out, align 4
  %second = getelementptr inbounds i8, ptr %out, i64 4
  store ptr %second, ptr %slot, align 8
  %again = load ptr, ptr %slot, align 8
  store i32 %old, ptr %again, align 4
  %third = getelementptr inbounds i8, ptr %out, i64 8
  store i8 2, ptr %third, align 1
  ret void
}
