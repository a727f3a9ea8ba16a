; `u64::min`, `i32::max`.

define void @kernel(ptr %out, i32 %a, i32 %b, i64 %c, i64 %d) section ".nvvm.kernel" {
start:
  %greatest = call i32 @llvm.smax.i32(i32 %a, i32 %b)
  store i32 %greatest, ptr %out, align 4
  %least = call i64 @llvm.umin.i64(i64 %c, i64 %d)
  store i64 %least, ptr %out, align 8
  ret void
}

declare i32 @llvm.smax.i32(i32, i32)

declare i64 @llvm.umin.i64(i64, i64)
