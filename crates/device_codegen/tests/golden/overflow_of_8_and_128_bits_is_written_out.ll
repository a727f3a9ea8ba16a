; libNVVM has the intrinsics for 16, 32 and 64 bits.

define void @kernel(ptr %out, i8 %a, i8 %b, i128 %c, i128 %d, i32 %e, i32 %f) section ".nvvm.kernel" {
start:
  %sum = call { i8, i1 } @llvm.sadd.with.overflow.i8(i8 %a, i8 %b)
  %sum.overflows = extractvalue { i8, i1 } %sum, 1
  store i1 %sum.overflows, ptr %out, align 1
  %product = call { i8, i1 } @llvm.umul.with.overflow.i8(i8 %a, i8 %b)
  %product.overflows = extractvalue { i8, i1 } %product, 1
  store i1 %product.overflows, ptr %out, align 1
  %wide = call { i128, i1 } @llvm.smul.with.overflow.i128(i128 %c, i128 %d)
  %wide.overflows = extractvalue { i128, i1 } %wide, 1
  store i1 %wide.overflows, ptr %out, align 1
  %kept = call { i32, i1 } @llvm.umul.with.overflow.i32(i32 %e, i32 %f)
  %kept.overflows = extractvalue { i32, i1 } %kept, 1
  store i1 %kept.overflows, ptr %out, align 1
  ret void
}

declare { i8, i1 } @llvm.sadd.with.overflow.i8(i8, i8)

declare { i8, i1 } @llvm.umul.with.overflow.i8(i8, i8)

declare { i128, i1 } @llvm.smul.with.overflow.i128(i128, i128)

declare { i32, i1 } @llvm.umul.with.overflow.i32(i32, i32)
