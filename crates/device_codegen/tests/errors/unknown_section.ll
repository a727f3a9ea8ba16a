@TILE = internal global [4 x i8] undef, section ".bss.mine", align 4

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %a, ptr @TILE, align 4
  ret void
}
