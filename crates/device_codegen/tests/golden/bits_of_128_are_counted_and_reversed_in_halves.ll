; libNVVM has the intrinsics up to 64 bits.

define void @kernel(ptr %out, i128 %a, i32 %b) section ".nvvm.kernel" {
start:
  %zeros = call i128 @llvm.ctlz.i128(i128 %a, i1 false)
  store i128 %zeros, ptr %out, align 16
  %swapped = call i128 @llvm.bswap.i128(i128 %a)
  store i128 %swapped, ptr %out, align 16
  %kept = call i32 @llvm.ctlz.i32(i32 %b, i1 true)
  store i32 %kept, ptr %out, align 4
  %rotated = call i32 @llvm.fshl.i32(i32 %b, i32 %b, i32 7)
  store i32 %rotated, ptr %out, align 4
  ret void
}

declare i128 @llvm.ctlz.i128(i128, i1 immarg)

declare i128 @llvm.bswap.i128(i128)

declare i32 @llvm.ctlz.i32(i32, i1 immarg)

declare i32 @llvm.fshl.i32(i32, i32, i32)
