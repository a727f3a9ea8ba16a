@TILE = internal global [4 x i8] c"\00\00\00\01", section ".nvvm.addrspace.3", align 4

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %a, ptr @TILE, align 4
  ret void
}
