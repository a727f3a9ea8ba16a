; `i32::abs`.

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %r = call i32 @llvm.abs.i32(i32 %a, i1 false)
  store i32 %r, ptr %out, align 4
  ret void
}

declare i32 @llvm.abs.i32(i32, i1 immarg)
