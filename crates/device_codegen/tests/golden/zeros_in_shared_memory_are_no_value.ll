@TILE = internal global [4 x i8] zeroinitializer, section ".nvvm.addrspace.3", align 4
@PAIR = internal global <{ [4 x i8], [4 x i8] }> <{ [4 x i8] zeroinitializer, [4 x i8] undef }>, section ".nvvm.addrspace.3", align 4

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %a, ptr @TILE, align 4
  store i32 %a, ptr @PAIR, align 4
  ret void
}
