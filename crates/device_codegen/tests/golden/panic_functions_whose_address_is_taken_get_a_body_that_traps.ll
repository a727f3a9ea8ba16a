define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  store ptr @_ZN4core6option13unwrap_failed17h0123456789abcdefE, ptr %out, align 8
  ret void
}

declare void @_ZN4core6option13unwrap_failed17h0123456789abcdefE(ptr) unnamed_addr #0

attributes #0 = { cold noreturn nounwind }
