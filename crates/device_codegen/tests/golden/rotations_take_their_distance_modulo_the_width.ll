; libNVVM's own rotation of 64 bits does not; that of 32 does.

define void @kernel(ptr %out, i64 %wide, i32 %word, i64 %by) section ".nvvm.kernel" {
start:
  %left = call i64 @llvm.fshl.i64(i64 %wide, i64 %wide, i64 %by)
  store i64 %left, ptr %out, align 8
  %right = call i64 @llvm.fshr.i64(i64 %wide, i64 %wide, i64 %by)
  store i64 %right, ptr %out, align 8
  %kept = call i32 @llvm.fshl.i32(i32 %word, i32 %word, i32 %word)
  store i32 %kept, ptr %out, align 4
  ret void
}

declare i64 @llvm.fshl.i64(i64, i64, i64)

declare i64 @llvm.fshr.i64(i64, i64, i64)

declare i32 @llvm.fshl.i32(i32, i32, i32)
