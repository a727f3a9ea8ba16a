; `Ord::cmp` of integers.

define void @kernel(ptr %out, i32 %a, i32 %b) section ".nvvm.kernel" {
start:
  %signed = call i8 @llvm.scmp.i8.i32(i32 %a, i32 %b)
  store i8 %signed, ptr %out, align 1
  %unsigned = call i8 @llvm.ucmp.i8.i32(i32 %a, i32 %b)
  store i8 %unsigned, ptr %out, align 1
  ret void
}

declare range(i8 -1, 2) i8 @llvm.scmp.i8.i32(i32, i32)

declare range(i8 -1, 2) i8 @llvm.ucmp.i8.i32(i32, i32)
