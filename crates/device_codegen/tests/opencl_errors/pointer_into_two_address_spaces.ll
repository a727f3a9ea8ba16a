@_ZN4test4TILE17h0123456789abcdefE = internal global [8 x i8] undef, section ".nvvm.addrspace.3", align 4
define void @refused(ptr %out, i1 %which) section ".nvvm.kernel" {
start:
  %pointer = select i1 %which, ptr %out, ptr @_ZN4test4TILE17h0123456789abcdefE
  store i32 1, ptr %pointer, align 4
  ret void
}
