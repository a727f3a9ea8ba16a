@VTABLE = internal constant <{ ptr }> <{ ptr @_ZN4core3fmt5write17h0123456789abcdefE }>, align 8

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store ptr @VTABLE, ptr %out, align 8
  ret void
}
declare i1 @_ZN4core3fmt5write17h0123456789abcdefE(ptr)
