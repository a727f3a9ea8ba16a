define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %a, ptr %out, align 4, !vcall_visibility !0
  ret void
}
!0 = !{}
